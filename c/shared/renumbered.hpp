// SPDX-License-Identifier: BSD-3-Clause
// Operators and blocks in the numbering of a partitioned matrix (AnyOperator::numbering).
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "blockvec/block_vector.hpp"
#include "blockvec/error.hpp"
#include "c/shared/any_operator.hpp"

namespace quiver::doors {

/// A caller's block in the numbering of an operator: a copy, or the block itself if `numbering` is
/// null or the block has no columns. Collective. The caller holds the Context's mutex.
template <class T>
class RenumberedBlock {
  public:
    RenumberedBlock(Context& ctx, const Reordering* numbering, BlockView<const T> given)
        : view_(given) {
        if (numbering != nullptr && given.cols > 0) {
            ctx.comm().agree(
                [&] { moved_ = BlockVector<T>(ctx, numbering->solver_map(), given.cols); });
            numbering->to_solver(ctx, given, moved_.view());
            view_ = std::as_const(moved_).view();
        }
    }
    RenumberedBlock(const RenumberedBlock&) = delete;
    RenumberedBlock& operator=(const RenumberedBlock&) = delete;
    ~RenumberedBlock() = default;
    BlockView<const T> view() const { return view_; }

  private:
    BlockView<const T> view_;
    BlockVector<T> moved_;
};

/// compute(B) writes the result in the numbering of an operator; Y receives it in the caller's.
/// B is Y itself if `numbering` is null. Collective. The caller holds the Context's mutex.
template <class T, class Compute>
auto compute_renumbered(Context& ctx, const Reordering* numbering, BlockView<T> y,
                        Compute&& compute) {
    if (numbering == nullptr) {
        return compute(y);
    }
    BlockVector<T> moved;
    ctx.comm().agree([&] { moved = BlockVector<T>(ctx, numbering->solver_map(), y.cols); });
    const auto deliver = [&] { numbering->to_user(ctx, std::as_const(moved).view(), y); };
    if constexpr (std::is_void_v<decltype(compute(y))>) {
        compute(moved.view());
        deliver();
    } else {
        auto result = compute(moved.view());
        deliver();
        return result;
    }
}

/// Y = A X for blocks in the caller's numbering.
template <class T>
void apply_to_callers_rows(Context& ctx, const AnyOperator& a, BlockView<const T> x,
                           BlockView<T> y) {
    const RenumberedBlock<T> from(ctx, a.numbering.get(), x);
    compute_renumbered(ctx, a.numbering.get(), y,
                       [&](BlockView<T> to) { a.get<T>().apply(ctx, from.view(), to); });
}

/// An operator in the numbering of another one. All blocks move in each product.
template <class T>
class RenumberedOperator final : public Operator<T> {
  public:
    /// One of inner.numbering and `numbering` may be null: the caller's.
    RenumberedOperator(AnyOperator inner, std::shared_ptr<const Reordering> numbering)
        : inner_(std::move(inner)), numbering_(std::move(numbering)) {}
    const RowMap& row_map() const override {
        return numbering_ ? numbering_->solver_map() : inner_.numbering->user_map();
    }
    void apply(Context& ctx, BlockView<const T> x, BlockView<T> y) override {
        if (!numbering_) {
            apply_to_callers_rows(ctx, inner_, x, y);
            return;
        }
        BlockVector<T> from;
        BlockVector<T> to;
        ctx.comm().agree([&] {
            from = BlockVector<T>(ctx, numbering_->user_map(), x.cols);
            to = BlockVector<T>(ctx, numbering_->user_map(), x.cols);
        });
        numbering_->to_user(ctx, x, from.view());
        apply_to_callers_rows(ctx, inner_, std::as_const(from).view(), to.view());
        numbering_->to_solver(ctx, std::as_const(to).view(), y);
    }

  private:
    AnyOperator inner_;
    std::shared_ptr<const Reordering> numbering_;
};

/// Throws InputError if two operators have different numberings.
inline void require_same_numbering(const AnyOperator& a, const AnyOperator& b, const char* name) {
    if (a.numbering != b.numbering) {
        throw InputError(
            std::string(name) +
            ": its rows are partitioned in another way than those of the other matrix; "
            "make it with the partition of that matrix");
    }
}

/// `op` in the numbering of `a`. Throws InputError for two partitions that differ.
template <class T>
AnyOperator in_numbering_of(const AnyOperator& a, const AnyOperator& op, const char* name) {
    if (op.numbering == a.numbering) {
        return op;
    }
    if (op.numbering && a.numbering) {
        require_same_numbering(a, op, name);
    }
    AnyOperator any = AnyOperator::wrap<T>(
        a.home, std::make_shared<RenumberedOperator<T>>(op, a.numbering), op.rows);
    any.numbering = a.numbering;
    return any;
}

}  // namespace quiver::doors
