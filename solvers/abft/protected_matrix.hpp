// SPDX-License-Identifier: BSD-3-Clause
// ProtectedMatrix: a sparse matrix whose products are checked and repaired.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/operator.hpp"
#include "kernels/sparse/sparse_matrix.hpp"
#include "solvers/abft/abft.hpp"
#include "solvers/abft/checksum.hpp"

namespace quiver {

/// An Operator for any solver. Let w be the plain and mixed weights of kernels/checksum.hpp and s =
/// A^H w of this rank's rows, formed once. Every product is checked by
///    w^H Y = alpha (s^H X - shift w^H X) + beta w^H Y_old
/// up to the rounding errors of both sides (bound()). The check is local to the rank: no additional
/// messages and no additional all-reduces.
///
/// If a check fails, the rank computes its rows again, from the halo that it has already received.
/// If the second result passes, chunks of Y that differ from it are replaced: the fault was in Y.
/// If it fails as well, the memory of the matrix, of s and, if its checksums are known
/// (expect_input), of X is compared with its reference and repaired, and the product is repeated. A
/// difference that persists with sound memory is rounding.
///
/// Not detected: a fault whose effect on the checksums is below bound(); faults in X before its
/// checksums were formed; faults in the halo in flight. Cost of a product: reads of X (not after
/// expect_input), of s and of Y; with `correct` and beta a copy of Y. Source: Huang and Abraham
/// 1984; Tao et al., New-Sum, HPDC 2016, section 3.
template <class T>
class ProtectedMatrix final : public Operator<T> {
  public:
    using Sum = checksum_t<T>;

    /// `a` must outlive this object. Collective: a memory error is thrown on all ranks. Cost: one
    /// pass over the entries on one thread, and a parity of all arrays.
    ProtectedMatrix(Context& ctx, SparseMatrix<T>& a, const AbftOptions& options);

    const RowMap& row_map() const override { return a_.row_map(); }
    /// Throws NumericalError, on this rank alone, if a fault cannot be repaired.
    void apply(Context& ctx, BlockView<const T> x, BlockView<T> y) override;
    /// Dot products are formed after the check, in separate passes and with one all-reduce.
    void apply_fused(Context& ctx, BlockView<const T> x, BlockView<T> y,
                     const ApplyOptions<T>& options) override;
    void prepare(Context& ctx, std::span<const int> widths, bool dots = false) override {
        a_.prepare(ctx, widths, dots);
    }

    /// apply() in two parts, between which the device continues: begin() enqueues the product and
    /// its checksums. Without finish() the product is discarded; faults injected into it remain.
    void begin(Context& ctx, BlockView<const T> x, BlockView<T> y);
    /// Checks the product of begin(); `x_sums` are the checksums of X from when it was known to be
    /// correct. Returns false if the first comparison failed: X and Y may have been repaired.
    /// Throws as apply(). later_work: whether work was enqueued after begin().
    bool finish(Context& ctx, Checksum<T> x_sums, bool later_work);

    /// Forms all checksums of a block that will be the X of a later product.
    Checksum<T> encode_input(Context& ctx, BlockView<const T> x) const;
    /// The same without waiting.
    void begin_encoding(Context& ctx, BlockView<const T> x, ChecksumUnderWay<T>& sums) const;
    /// Tells that the X of the next product, if its memory begins at `x`, had these checksums when
    /// it was known to be correct.
    void expect_input(const T* x, Checksum<T> sums);
    /// True if the last product found its X changed and restored it, bit for bit.
    bool input_restored() const { return input_restored_; }
    /// True if the last product found X changed but could not locate the change: Y is the product
    /// with X as it is.
    bool input_lost() const { return input_lost_; }
    /// The checksums of the present Y of the last completed product; empty if it was not checked.
    const Checksum<T>& output_sums() const { return output_; }
    /// Bound of the rounding error of the plain (k = 0) or mixed (1) checksum of column j in the
    /// last product: 4 eps ((sqrt(longest row) + 4) sqrt(||A||_1 ||A||_inf) + 4 |shift|) |alpha|
    /// ||x|| + ..., twice that for complex scalars, with norms over this rank's rows. This is eight
    /// standard deviations of a sum of independent rounding errors of maximal size.
    double bound(int k, int column) const {
        return bound_[static_cast<std::size_t>(2 * column + k)];
    }

    /// Compares all memory of the matrix and of the checks with its parity, bit for bit; with
    /// `correct` repairs it where possible and counts the rest as failed. Faults that only this
    /// call finds had no effect above the bounds. Local.
    void audit(Context& ctx) override;
    /// Faults left: with `detect` all that were found, with `correct` words of the matrix that
    /// audit() could not repair.
    OperatorFaults faults() const override;

    /// Lets the injector put a fault into the solver's basis before the next product.
    void strike_basis(Context& ctx, BlockView<T> basis) {
        injector_.set_step(step_ + 1);
        strike<T>(ctx, FaultPlace::basis, basis);
    }

    /// ||A||_inf over all ranks' rows: an upper bound of all |eigenvalues|. 0 with AbftMode::off.
    double largest_row() const { return largest_row_; }
    AbftMode mode() const { return options_.mode; }
    const AbftOptions& options() const { return options_; }
    int log_chunk() const { return options_.log_chunk; }
    AbftCounts& counts() { return counts_; }
    FaultInjector& injector() { return injector_; }

  private:
    /// The expected checksums of a product.
    struct Expected {
        Checksum<T> x;
        bool x_known = false;  // X's checksums are from before the product
        Checksum<T> old;
        std::vector<Sum> sums;  // plain and mixed sums by column
        bool finite = true;
    };
    /// A product whose checksums have not been compared yet.
    struct Product {
        BlockView<const T> x;
        BlockView<T> y;
        ApplyOptions<T> options;
        Expected expected;
        std::optional<Scratch> kept;
        BlockView<T> old;  // a copy of Y before the product, for `correct`
    };
    struct Guarded {
        MatrixArray array;
        std::vector<std::uint64_t> parity;
    };

    void start(Context& ctx, BlockView<const T> x, BlockView<T> y, const ApplyOptions<T>& options,
               bool sums_follow);
    bool look(Context& ctx, bool later_work);
    void complete(const ApplyOptions<T>& options, int width, const Checksum<T>& halo,
                  Expected& expected);
    bool agrees(const Checksum<T>& y, const Expected& expected) const;
    void resolve(Context& ctx, BlockView<const T> x, BlockView<T> y, BlockView<const T> old,
                 const ApplyOptions<T>& options, Expected& expected);
    void resolve_without_old(Context& ctx, BlockView<const T> x, BlockView<T> y,
                             const ApplyOptions<T>& options, const Expected& expected);
    /// Memory that products only read: changed pieces, and how many of them were repaired.
    struct Repair {
        int found = 0;
        int mended = 0;
    };
    Repair repair_memory(Context& ctx);
    bool repair_input(Context& ctx, BlockView<const T> x, const Expected& expected);
    void form_dots(Context& ctx, BlockView<const T> x, BlockView<const T> y,
                   const ApplyOptions<T>& options) const;
    template <class V>
    void strike(Context& ctx, FaultPlace place, BlockView<V> block) {
        counts_.injected += injector_.strike(ctx, place, block) ? 1 : 0;
    }
    void tell(Context& ctx, const char* where, const char* what);
    /// Word sums are needed only to restore X, so not with `detect`.
    WordSums words_of_input() const {
        return options_.mode == AbftMode::correct ? WordSums::yes : WordSums::no;
    }
    BlockView<const Sum> guards(std::int64_t first, std::int64_t rows) const;
    BlockView<const Sum> halo_guards() const {
        return guards(a_.row_map().local_rows(), a_.halo_size());
    }

    SparseMatrix<T>& a_;
    Place place_;
    AbftOptions options_;
    AbftCounts counts_;
    Repair audited_;  // by all calls of audit()
    FaultInjector injector_;
    Buffer guards_;  // s of this rank's rows, then of the halo's rows
    std::vector<Guarded> guarded_;
    double lost_[2] = {0, 0};
    double norm_ = 0;
    double largest_row_ = 0;
    std::int64_t longest_row_ = 0;
    const T* expected_input_ = nullptr;
    Checksum<T> expected_sums_;
    std::int64_t step_ = 0;  // of the injector: number of products begun
    std::optional<Product> product_;
    ChecksumUnderWay<T> y_sums_, halo_sums_;
    bool input_restored_ = false;
    bool input_lost_ = false;
    Checksum<T> output_;
    std::vector<double> bound_;
};

}  // namespace quiver
