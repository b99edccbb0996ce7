// SPDX-License-Identifier: BSD-3-Clause
// Helpers for the public operations around dispatch (kernels/operation.hpp): uploads of small
// arrays, reductions over ranks, checks of operands. Private to kernels/.
#pragma once

#include <complex>
#include <cstring>
#include <optional>
#include <span>

#include "blockvec/context.hpp"
#include "blockvec/overhead.hpp"
#include "blockvec/shape.hpp"
#include "kernels/operation_table.hpp"
#include "kernels/rank_links.hpp"
#include "kernels/tsmttsm.hpp"

namespace quiver {

/// A host array of a call, such as coefficients per column, made accessible to the leaves. For a
/// device the array is staged in pageable memory, which the runtime reads before the copy returns.
/// The caller may therefore change the array right after the call, whatever kind of memory holds
/// it.
template <class V>
class LeafArray {
  public:
    LeafArray(Context& ctx, std::span<const V> values)
        : LeafArray(ctx, BlockView<const V>(values.data(), 1, static_cast<int>(values.size()),
                                            static_cast<std::int64_t>(values.size()))) {}
    /// A small matrix in either place. If it must go to the device, the copy has no gaps between
    /// rows.
    LeafArray(Context& ctx, BlockView<const V> values) : data_(values.data), ld_(values.ld) {
        if (ctx.place() == values.place || values.empty()) {
            return;
        }
        const Scratch staged = ctx.scratch(MemoryKind::host, bytes_of(values));
        for (std::int64_t i = 0; i < values.rows; ++i) {
            std::memcpy(staged.as<V>() + i * values.cols, values.data + i * values.ld,
                        static_cast<std::size_t>(values.cols) * sizeof(V));
        }
        device_.emplace(ctx.memory(), MemoryKind::device, bytes_of(values));
        OverheadCounts::of(ctx).count(Overhead::upload, static_cast<double>(bytes_of(values)));
        device::copy(device_->template as<void>(), staged.as<void>(), bytes_of(values),
                     ctx.stream());
        data_ = device_->template as<V>();
        ld_ = values.cols;
    }

    const V* data() const { return data_; }
    std::int64_t ld() const { return ld_; }

  private:
    static std::size_t bytes_of(const BlockView<const V>& values) {
        return static_cast<std::size_t>(values.rows) * static_cast<std::size_t>(values.cols) *
               sizeof(V);
    }
    const V* data_;
    std::int64_t ld_;
    std::optional<Scratch> device_;
};

/// True if a reduction must include the other ranks.
inline bool needs_ranks(const Context& ctx, Reduce reduce) {
    return reduce == Reduce::all_ranks && ctx.comm().size() > 1;
}

/// The ledger entry of an all-reduce of `count` values; all shapes share one line.
template <class T>
KernelCall sum_call(const Context& ctx, std::size_t count) {
    KernelCall call;
    call.name = "sum over ranks";
    call.dtype = dtype_v<T>;
    call.place = ctx.place();
    call.rows = ctx.comm().size();
    call.bytes = static_cast<double>(count * sizeof(T));
    return call;
}

/// values <- their sums over the ranks, in device memory. Requires links.sums_on_device().
template <class T>
void sum_on_device(Context& ctx, RankLinks& links, T* values, std::size_t count) {
    const Ledger::Entry entry(ctx.ledger(), sum_call<T>(ctx, count));
    const OverheadCounts::Pause pause(ctx, Overhead::all_reduce,
                                      static_cast<double>(count * sizeof(T)));
    links.sum(ctx, values, count);
}

/// Reduces `count` values in the place of the Context over the ranks if `reduce` is all_ranks, and
/// calls use(values) with the result in host memory. Overwrites `partial`.
template <class T, class Use>
void reduce_to_host(Context& ctx, T* partial, std::size_t count, Reduce reduce, Use&& use) {
    const std::size_t bytes = count * sizeof(T);
    // Creating RankLinks is collective, so every rank requests it, host ranks included.
    RankLinks* const links = needs_ranks(ctx, reduce) ? &ctx.service<RankLinks>() : nullptr;
    const bool on_device = links != nullptr && links->sums_on_device(bytes);
    const auto finish = [&](T* values) {
        if (links != nullptr && !on_device) {
            const Ledger::Entry entry(ctx.ledger(), sum_call<T>(ctx, count));
            const OverheadCounts::Pause pause(ctx, Overhead::all_reduce,
                                              static_cast<double>(bytes));
            ctx.comm().sum(std::span<T>(values, count));
        }
        use(static_cast<const T*>(values));
    };
    if (ctx.place() == Place::host) {
        OverheadCounts::of(ctx).count(Overhead::result, static_cast<double>(bytes));
        finish(partial);
        return;
    }
    if (on_device) {
        sum_on_device(ctx, *links, partial, count);
    }
    const Scratch pinned = ctx.scratch(MemoryKind::pinned, bytes);
    {
        const OverheadCounts::Pause pause(ctx, Overhead::result, static_cast<double>(bytes));
        device::copy(pinned.as<void>(), partial, bytes, ctx.stream());
        ctx.synchronize();
    }
    if (on_device) {
        links->check();
    }
    finish(pinned.as<T>());
}

/// The same for values that compute(partial) writes.
template <class T, class Compute, class Use>
void reduce_to_host(Context& ctx, std::size_t count, Reduce reduce, Compute&& compute, Use&& use) {
    const Scratch partial = ctx.scratch(memory_kind(ctx.place()), count * sizeof(T));
    compute(partial.as<T>());
    reduce_to_host(ctx, partial.as<T>(), count, reduce, use);
}

/// C = sum + beta C. On a device, `sum` and C may be in either place; if C is in host memory, so
/// is `sum`.
template <class T>
void add_scaled(Context& ctx, const BlockView<const T>& sum, T beta, const BlockView<T>& c) {
    if (c.place == Place::host) {
        host::axpby(1, AxpbyArgs<T>{c.rows, c.cols, T(1), nullptr, sum.data, sum.ld, beta, nullptr,
                                    c.data, c.ld});
        return;
    }
    const LeafArray<T> uploaded(ctx, sum);
    run_leaf(ctx, operations::axpby.leaf,
             AxpbyArgs<T>{c.rows, c.cols, T(1), nullptr, uploaded.data(), uploaded.ld(), beta,
                          nullptr, c.data, c.ld});
}

/// C = sum + beta C, with the sum reduced over the ranks if `reduce` is all_ranks.
/// compute(factor, target, ld) sets target = this rank's sum + factor target in the Context's
/// place.
template <class T, class Compute>
void sum_small(Context& ctx, T beta, const BlockView<T>& c, Reduce reduce, Compute&& compute) {
    if (c.place == ctx.place() && !needs_ranks(ctx, reduce)) {
        compute(beta, c.data, c.ld);
        return;
    }
    const std::size_t count = static_cast<std::size_t>(c.rows) * static_cast<std::size_t>(c.cols);
    if (c.place == Place::device && count > 0) {
        RankLinks& links = ctx.service<RankLinks>();
        if (links.sums_on_device(count * sizeof(T))) {
            const Scratch sum = ctx.scratch(MemoryKind::device, count * sizeof(T));
            compute(T(0), sum.as<T>(), c.cols);
            sum_on_device(ctx, links, sum.as<T>(), count);
            add_scaled(ctx, BlockView<const T>(sum.as<T>(), c.rows, c.cols, c.cols, Place::device),
                       beta, c);
            return;
        }
    }
    reduce_to_host<T>(
        ctx, count, reduce, [&](T* partial) { compute(T(0), partial, c.cols); },
        [&](const T* sum) {
            add_scaled(ctx, BlockView<const T>(sum, c.rows, c.cols, c.cols), beta, c);
        });
}

/// Throws ShapeError unless the view is valid and lies in the Context's place.
template <class T>
void require_operand(const Context& ctx, const BlockView<T>& view, const char* operation,
                     const char* name) {
    require_valid(view, operation, name);
    require_shape(view.empty() || view.place == ctx.place(), operation,
                  "a block is not in the Context's place", [&] {
                      return std::string(name) + ": " + describe(view) +
                             "; Context: " + to_string(ctx.place());
                  });
}

/// Describes two views as "X: ..., Y: ...".
template <class T, class U>
std::string describe(const char* name_a, const BlockView<T>& a, const char* name_b,
                     const BlockView<U>& b) {
    return std::string(name_a) + ": " + describe(a) + "; " + name_b + ": " + describe(b);
}

/// Throws ShapeError unless a small matrix is rows x cols, as `expected` explains, and lies in host
/// memory or, with a Context on a device, in device memory.
template <class T>
void require_small(const Context& ctx, const BlockView<T>& small, std::int64_t rows, int cols,
                   const char* operation, const char* name, const char* expected) {
    require_valid(small, operation, name);
    require_shape(small.empty() || small.place == Place::host || ctx.place() == Place::device,
                  operation,
                  "a small matrix is in device memory, but the Context works on the host",
                  [&] { return std::string(name) + ": " + describe(small); });
    require_shape(small.rows == rows && small.cols == cols, operation,
                  "a small matrix has the wrong shape", [&] {
                      return std::string(name) + ": " + describe(small) + " instead of " +
                             std::to_string(rows) + " x " + std::to_string(cols) + ", " + expected;
                  });
}

/// Throws ShapeError unless C = A^H B can be formed.
template <class T, class V>
void require_product(const Context& ctx, const char* operation, const BlockView<const T>& a,
                     const BlockView<const T>& b, const BlockView<V>& c) {
    require_operand(ctx, a, operation, "A");
    require_operand(ctx, b, operation, "B");
    const auto blocks = [&] { return describe("A", a, "B", b); };
    require_shape(a.rows == b.rows, operation, "A and B differ in rows", blocks);
    require_small(ctx, c, a.cols, b.cols, operation, "C", "columns of A x columns of B");
    require_shape(!overlap(a, c) && !overlap(b, c), operation, "C overlaps A or B",
                  [&] { return blocks() + "; C: " + describe(c); });
}

/// The names of an operation and its operands in messages.
struct UpdateNames {
    const char* operation;
    const char* x;
    const char* c;
    const char* y;
};

/// Throws ShapeError unless Y = X C + Y can be formed; X may be Y.
template <class T, class V, class U>
void require_update(const Context& ctx, const UpdateNames& names, const BlockView<const T>& x,
                    const BlockView<const V>& c, const BlockView<U>& y) {
    const auto blocks = [&] { return describe(names.x, x, names.y, y); };
    require_operand(ctx, x, names.operation, names.x);
    require_operand(ctx, y, names.operation, names.y);
    require_shape(x.rows == y.rows, names.operation, "the blocks differ in rows", blocks);
    require_small(ctx, c, x.cols, y.cols, names.operation, names.c,
                  "columns of the factor x columns of the result");
    require_shape(!overlap(x, y) || same_block(x, y), names.operation,
                  "the blocks overlap but are not the same", blocks);
    require_shape(!overlap(c, y) && !overlap(c, x), names.operation,
                  "the small matrix overlaps a block",
                  [&] { return blocks() + "; " + names.c + ": " + describe(c); });
}

}  // namespace quiver
