// SPDX-License-Identifier: BSD-3-Clause
// ProtectedMatrix: a sparse matrix whose products are checked, and mended, as they are made.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/operator.hpp"
#include "kernels/sparse/sparse_matrix.hpp"
#include "solvers/abft/abft.hpp"
#include "solvers/abft/checksum.hpp"

namespace quiver {

/// An Operator for any solver. With w the plain and mixed weights of kernels/checksum.hpp and s =
/// A^H w of this rank's rows, made once, every product is checked by
///     w^H Y = alpha (s^H X - shift w^H X) + beta w^H Y_old
/// to the rounding errors of both sides (bound()). All of it is this rank's alone: no message more
/// than the product has, and the same number of all-reduces.
///
/// Where that fails the rank computes its rows once more, from the halo that it has. If the second
/// result passes, chunks of Y that differ from it are replaced: the fault was in Y. If it fails
/// too, the memory of the matrix, of s and, where its sums are known (expect_input), of X is
/// compared with what it was, mended, and the product repeated. What does not change by all that is
/// rounding.
///
/// Not seen: a fault whose effect on the sums is below bound(), faults in X before it was first
/// seen here, and in the halo on its way.
/// Cost a product: reads of X (not after expect_input), of s and of Y; with `correct` and beta a
/// copy of Y. Source: Huang and Abraham 1984; Tao et al., New-Sum, HPDC 2016, section 3.
template <class T>
class ProtectedMatrix final : public Operator<T> {
  public:
    using Sum = checksum_t<T>;

    /// `a` outlives this. Collective: memory errors are those of all ranks. Cost: one pass over the
    /// entries on one thread, and a parity of all arrays.
    ProtectedMatrix(Context& ctx, SparseMatrix<T>& a, const AbftOptions& options);

    const RowMap& row_map() const override { return a_.row_map(); }
    /// Throws NumericalError, on this rank alone, where a fault can not be mended.
    void apply(Context& ctx, BlockView<const T> x, BlockView<T> y) override;
    /// Dots are formed after the check, in passes of their own and with one all-reduce.
    void apply_fused(Context& ctx, BlockView<const T> x, BlockView<T> y,
                     const ApplyOptions<T>& options) override;
    void prepare(Context& ctx, std::span<const int> widths, bool dots = false) override {
        a_.prepare(ctx, widths, dots);
    }

    /// apply() in two parts, between which the device goes on: this one enqueues the product and
    /// its sums. Without finish() it is as if it had not been, but for faults that struck it.
    void begin(Context& ctx, BlockView<const T> x, BlockView<T> y);
    /// Looks at the sums of the product that begin() made, with the sums that X had when it was
    /// known to be right. False where they did not agree at first sight: X and Y may have been
    /// mended. Throws as apply(). later_work: whether something was enqueued meanwhile.
    bool finish(Context& ctx, Checksum<T> x_sums, bool later_work);

    /// All sums of a block that will be X of a later product.
    Checksum<T> encode_input(Context& ctx, BlockView<const T> x) const;
    /// The same without waiting.
    void begin_encoding(Context& ctx, BlockView<const T> x, ChecksumUnderWay<T>& sums) const;
    /// The next product's X, if it begins at `x`, had these sums when it was known to be right.
    void expect_input(const T* x, Checksum<T> sums);
    /// Whether the last product found its X changed, and made it what it had been, bit for bit.
    bool input_restored() const { return input_restored_; }
    /// Whether it found X changed and could not tell where: Y is the product of X as it is.
    bool input_lost() const { return input_lost_; }
    /// Sums of Y as it is now, of the last product that was looked at; empty where it was not
    /// checked.
    const Checksum<T>& output_sums() const { return output_; }
    /// By how much rounding may change the plain (k = 0) or mixed (1) sum of column j of the last
    /// product: 4 eps ((sqrt(longest row) + 4) sqrt(||A||_1 ||A||_inf) + 4 |shift|) |alpha| ||x|| +
    /// ..., twice that for complex scalars, norms over this rank's rows: eight standard deviations
    /// of a sum of independent rounding errors, were all of them as large as they can be.
    double bound(int k, int column) const {
        return bound_[static_cast<std::size_t>(2 * column + k)];
    }

    /// Compares all memory of the matrix and the checks with what it was, bit for bit; with
    /// `correct` mends what it can; the rest is counted as failed. Faults found now had no effect
    /// above the bounds. Local.
    void audit(Context& ctx);

    /// For the injector: the solver's basis before the next product.
    void strike_basis(Context& ctx, BlockView<T> basis) {
        injector_.set_step(step_ + 1);
        strike<T>(ctx, FaultPlace::basis, basis);
    }

    /// ||A||_inf, of all ranks' rows: no eigenvalue is larger. 0 with AbftMode::off.
    double largest_row() const { return largest_row_; }
    AbftMode mode() const { return options_.mode; }
    const AbftOptions& options() const { return options_; }
    int log_chunk() const { return options_.log_chunk; }
    AbftCounts& counts() { return counts_; }
    FaultInjector& injector() { return injector_; }

  private:
    /// What a product is checked with.
    struct Expected {
        Checksum<T> x;
        bool x_known = false;  // from before the product, by expect_input
        Checksum<T> old;
        std::vector<Sum> sums;  // plain and mixed sums by column
        bool finite = true;
    };
    /// A product that nobody has looked at yet.
    struct Product {
        BlockView<const T> x;
        BlockView<T> y;
        ApplyOptions<T> options;
        Expected expected;
        std::optional<Scratch> kept;
        BlockView<T> old;  // what Y was, for `correct`
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
    /// Of memory that only products read: pieces that have changed, and those that are mended.
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
    /// Those that are only looked at are not placed.
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
    FaultInjector injector_;
    Buffer guards_;  // s of own rows, then of the halo's
    std::vector<Guarded> guarded_;
    double lost_[2] = {0, 0};
    double norm_ = 0;
    double largest_row_ = 0;
    std::int64_t longest_row_ = 0;
    const T* expected_input_ = nullptr;
    Checksum<T> expected_sums_;
    std::int64_t step_ = 0;  // of the injector: products that have begun
    std::optional<Product> product_;
    ChecksumUnderWay<T> y_sums_, halo_sums_;
    bool input_restored_ = false;
    bool input_lost_ = false;
    Checksum<T> output_;
    std::vector<double> bound_;
};

}  // namespace quiver
