// SPDX-License-Identifier: BSD-3-Clause
// ProtectedMatrix: a sparse matrix whose products are checked and repaired.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "kernels/block_sums.hpp"
#include "kernels/operator.hpp"
#include "kernels/sparse/matrix_sums.hpp"
#include "kernels/sparse/sparse_matrix.hpp"
#include "solvers/abft/operand.hpp"

namespace quiver {

template <class T>
class WantedSums;
template <class T>
class ProductChecksums;
template <class T>
struct RowCheck;

/// An Operator for any solver. Let w be the plain and mixed weights of kernels/checksum.hpp and s =
/// A^H w of this rank's rows, formed once. Every product is checked by
///    w^H Y = alpha (s^H X - shift w^H X) + beta w^H Y_old
/// up to the rounding errors of both sides (bound()). The check is local to the rank: no additional
/// messages and no additional all-reduces. The product itself forms these checksums while its rows
/// are in the caches or registers (kernels/sparse/product_sums.hpp). A recurrence can hand the
/// checksums of its blocks on from product to product (ApplyOptions::x_sums, y_sums). A product
/// then forms only the checksums of Y, and faults in the blocks between two products are found.
///
/// The range of every index of the matrix is checked before a product uses it, so that a fault in
/// an index array gives a wrong product, which the checksums show, and no access to other memory.
///
/// If a check fails, the rank computes its rows again, from the halo that it has already received,
/// in the sequence of recovery.hpp. The operands of that sequence are the memory of the matrix, the
/// memory of s and, if its checksums are known, X. With `correct`, NumericalError is thrown if
/// memory of the matrix or of s cannot be repaired.
///
/// On a device with one rank, the host checks a product of a repeatable recurrence while the next
/// product is in flight (ApplyOptions::repeatable, BlockSums::may_wait). An alarm then counts as a
/// fault without a second computation, because the next product overwrites X.
///
/// Not detected: a fault whose effect on the checksums is below bound(); faults in X before its
/// checksums were formed, and in Y after that; faults in the halo in flight. Cost of a product: a
/// read of s; on a device with beta not 0 also a read of Y, unless its checksums are known; with
/// `correct` and beta not 0 a copy of Y, unless ApplyOptions::repeatable is set. Source: Huang and
/// Abraham 1984; Tao et al., New-Sum, HPDC 2016, section 3.
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
    /// Dot products are reduced over the ranks after the check, by one all-reduce. On a device, a
    /// product with beta = 0 forms the dots with Y itself; after a repair the product is computed
    /// once more to form them. In all other cases, and for dot_xx, separate passes over X and Y
    /// form the dots.
    void apply_fused(Context& ctx, BlockView<const T> x, BlockView<T> y,
                     const ApplyOptions<T>& options) override;
    void prepare(Context& ctx, std::span<const int> widths, bool dots = false) override {
        a_.prepare(ctx, widths, dots);
    }

    /// The outcome of a product's check.
    struct Outcome {
        /// False if the first comparison failed: X and Y may have been repaired.
        bool agreed = true;
        /// X had changed. input_restored: X was restored bit for bit. input_lost: the change could
        /// not be located, so Y is the product with the changed X.
        bool input_restored = false;
        bool input_lost = false;
        /// The checksums of the present Y; empty if it was not checked.
        Checksum<T> sums = {};
    };
    /// apply() with the checksums of X that encode_input() formed while X was correct.
    const Outcome& apply(Context& ctx, BlockView<const T> x, BlockView<T> y, Checksum<T> x_sums);
    /// The same in two parts, between which the device continues: begin() enqueues the product and
    /// its checksums. Without finish() the product is discarded; faults injected into it remain.
    void begin(Context& ctx, BlockView<const T> x, BlockView<T> y);
    /// Checks the product of begin(). Throws as apply(). later_work: whether work was enqueued
    /// after begin().
    const Outcome& finish(Context& ctx, Checksum<T> x_sums, bool later_work);
    /// The outcome of the last completed product.
    const Outcome& outcome() const { return outcome_; }

    /// Forms all checksums of a block that will be the X of a later product.
    Checksum<T> encode_input(Context& ctx, BlockView<const T> x) const;
    /// The same without waiting.
    void begin_encoding(Context& ctx, BlockView<const T> x, ChecksumUnderWay<T>& sums) const;
    /// Bound of the rounding error of the plain (k = 0) or mixed (1) checksum of column j in the
    /// last product: 4 eps ((sqrt(longest row) + 4) sqrt(||A||_1 ||A||_inf) + 4 |shift|) |alpha|
    /// ||x|| + ..., twice that for complex scalars, with norms over this rank's rows. This is eight
    /// standard deviations of a sum of independent rounding errors of maximal size.
    double bound(int k, int column) const {
        return guard_.bounds[static_cast<std::size_t>(k) * guard_.bounds.size() / 2 +
                             static_cast<std::size_t>(column)];
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
        guard_.injector.set_step(step_ + 1);
        guard_.strike(ctx, FaultPlace::basis, basis);
    }

    /// ||A||_inf over all ranks' rows: an upper bound of all |eigenvalues|. 0 with AbftMode::off.
    double largest_row() const { return largest_row_; }
    /// The matrix itself, for products without checks.
    SparseMatrix<T>& matrix() { return a_; }
    AbftMode mode() const { return options().mode; }
    const AbftOptions& options() const { return guard_.options; }
    int log_chunk() const { return options().log_chunk; }
    AbftCounts& counts() { return guard_.counts; }
    FaultInjector& injector() { return guard_.injector; }

  private:
    /// A product whose checksums have not been compared yet.
    struct Product {
        Product(Operand<T> x_, bool known, BlockView<T> y_, const ApplyOptions<T>& options_)
            : x(std::move(x_)), x_known(known), y(y_), options(options_) {
            options.dot_yy = options.dot_xy = options.dot_xx = {};
        }
        Operand<T> x;
        bool x_known;            // its checksums were formed before the product
        bool x_carried = false;  // these are totals that the caller handed on
        BlockView<T> y;
        ApplyOptions<T> options;  // without dots
        bool formed = false;      // Y has been computed
        bool summed = true;       // the product forms the checksums
        bool dots = false;        // the product forms the dots as well
        Checksum<T> old_sums;     // of Y before the product, if beta is not 0
        // Checksums in flight. x_later, old_later: those of X and of the old Y, which the check of
        // an earlier product fills in. x_given, y_given: those of X and of Y, which the check of
        // this product fills in if the product `waits` for its check until the next product.
        std::shared_ptr<std::vector<Sum>> x_later, old_later, x_given, y_given;
        bool waits = false;
        std::optional<Kept<T>> old;  // with `correct`, a copy of Y before the product
    };

    void start(Context& ctx, BlockView<const T> x, BlockView<T> y, const ApplyOptions<T>& options,
               bool sums_follow);
    void prepare_sums(Context& ctx, Product& product);
    void look_at_earlier(Context& ctx);
    bool take_sums(Product& product, bool later_work);
    std::optional<Product>& current() { return product_[turn_]; }
    ProductChecksums<T>& current_sums() { return *sums_[turn_]; }
    void multiply_struck(Context& ctx, Product& product);
    void multiply_summed(Context& ctx, Product& product);
    SpmmvSums& ask_sums(Context& ctx, const Product& product);
    void hand_on_sums(const Product& product);
    const Outcome& look(Context& ctx, bool later_work);
    WantedSums<T> wanted_of(const Product& product, const Checksum<T>& halo) const;
    bool finite_norms(const Product& product, const Checksum<T>& halo) const;
    void repair_column_sums(Context& ctx, Product& product, WantedSums<T>& wanted);
    OperandRepair repair_operands(Context& ctx, Product& product, WantedSums<T>& sums);
    RowCheck<T> check_of(Context& ctx, Product& product, WantedSums<T> wanted);
    bool renew_x_sums(Context& ctx, Product& product, WantedSums<T>& sums);
    void resolve_without_old(Context& ctx, Product& product, WantedSums<T>& wanted);
    OperandRepair repair_memory(Context& ctx);
    void require_sound(Context& ctx, const OperandRepair& memory);
    void form_dots(Context& ctx, BlockView<const T> x, BlockView<const T> y,
                   const ApplyOptions<T>& options);
    BlockView<Sum> guards(std::int64_t first, std::int64_t rows) const;
    BlockView<const Sum> halo_guards() const {
        return guards(a_.row_map().local_rows(), a_.halo_size());
    }

    SparseMatrix<T>& a_;
    Place place_;
    OperationGuard guard_;
    OperandRepair audited_;  // by all calls of audit()
    Buffer guards_;          // s of this rank's rows, then of the halo's rows
    std::shared_ptr<const void> index_checks_;
    std::vector<GuardedArray> guarded_;
    MatrixSums<T> norms_;  // of this rank's rows, without the sums themselves
    double largest_row_ = 0;
    std::int64_t lost_ = 0;  // products that the caller repeats
    std::int64_t step_ = 0;  // of the injector: number of products begun
    // The current product, at index turn_, and an earlier one that is not checked yet.
    std::optional<Product> product_[2];
    std::shared_ptr<ProductChecksums<T>> sums_[2];
    int turn_ = 0;
    ChecksumUnderWay<T> struck_sums_, halo_sums_;
    Outcome outcome_;
};

}  // namespace quiver
