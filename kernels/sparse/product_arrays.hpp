// SPDX-License-Identifier: BSD-3-Clause
// ProductArrays: shifts and dots of a fused sparse product. Private to kernels/sparse/.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

#include "blockvec/context.hpp"
#include "blockvec/overhead.hpp"
#include "kernels/operations/spmmv.hpp"
#include "kernels/operator.hpp"
#include "kernels/rank_links.hpp"

namespace quiver {

/// The small arrays of one product, in the place of the blocks: shifts, and the dots of each part
/// of the rows.
template <class T>
class ProductArrays {
  public:
    /// `parts`: number of parts in which the rows are computed.
    ProductArrays(Context& ctx, int width, std::size_t parts, const ApplyOptions<T>& options)
        : ctx_(ctx),
          width_(static_cast<std::size_t>(width)),
          parts_(parts),
          options_(options),
          shifts_(options.shift.size() > 1 ? width_ : 0),
          dots_((options.dot_yy.empty() ? 0 : 1) + (options.dot_xy.empty() ? 0 : 1) +
                (options.dot_xx.empty() ? 0 : 1)),
          memory_(ctx.memory(), memory_kind(ctx.place()),
                  (shifts_ + parts * dots_ * width_) * sizeof(T)) {
        if (ctx.place() == Place::device) {
            if (shifts_ > 0) {
                OverheadCounts::of(ctx).count(Overhead::upload,
                                              static_cast<double>(shifts_ * sizeof(T)));
                device::copy(base(), options.shift.data(), shifts_ * sizeof(T), ctx.stream());
            }
            if (dots_ > 0) {
                device::set_zero(part(0), parts * dots_ * width_ * sizeof(T), ctx.stream());
            }
        } else {
            std::copy(options.shift.begin(),
                      options.shift.begin() + static_cast<std::ptrdiff_t>(shifts_), base());
            std::fill_n(part(0), parts * dots_ * width_, T(0));
        }
    }

    const T* shifts() const { return shifts_ > 0 ? base() : nullptr; }
    /// Sets where the leaf stores its dots of part number `rows`.
    void set_dots(SpmmvArgs<T>& args, std::size_t rows) const {
        T* next = part(rows);
        const auto place = [&](std::span<T> wanted) {
            return wanted.empty() ? nullptr : std::exchange(next, next + width_);
        };
        args.dot_yy = place(options_.dot_yy);
        args.dot_xy = place(options_.dot_xy);
        args.dot_xx = place(options_.dot_xx);
    }
    /// Adds the parts and reduces over the ranks into the caller's arrays.
    void reduce() const {
        if (dots_ == 0) {
            return;
        }
        const std::size_t count = dots_ * width_;
        const std::size_t all = parts_ * count;
        const bool staged = ctx_.place() == Place::device;
        const Scratch staging = ctx_.scratch(staged ? MemoryKind::pinned : MemoryKind::host,
                                             staged ? all * sizeof(T) : 0);
        T* sums = part(0);
        const double bytes = static_cast<double>(count * sizeof(T));
        // Creating RankLinks is collective, so every rank requests it, host ranks included.
        RankLinks* const links = ctx_.comm().size() > 1 ? &ctx_.service<RankLinks>() : nullptr;
        const bool on_device = links != nullptr && links->sums_on_device(all * sizeof(T));
        if (on_device) {
            const OverheadCounts::Pause pause(ctx_, Overhead::all_reduce,
                                              static_cast<double>(parts_) * bytes);
            links->sum(ctx_, sums, all);
        }
        if (!staged) {
            OverheadCounts::of(ctx_).count(Overhead::result, bytes);
        } else {
            const OverheadCounts::Pause pause(ctx_, Overhead::result,
                                              static_cast<double>(parts_) * bytes);
            sums = staging.as<T>();
            device::copy(sums, part(0), all * sizeof(T), ctx_.stream());
            ctx_.synchronize();
        }
        if (on_device) {
            links->check();
        }
        for (std::size_t j = count; j < all; ++j) {
            sums[j % count] += sums[j];
        }
        if (links != nullptr && !on_device) {
            const OverheadCounts::Pause pause(ctx_, Overhead::all_reduce, bytes);
            ctx_.comm().sum(std::span<T>(sums, count));
        }
        for (const std::span<T> to : {options_.dot_yy, options_.dot_xy, options_.dot_xx}) {
            std::copy_n(sums, to.size(), to.begin());
            sums += to.size();
        }
    }

  private:
    T* base() const { return memory_.as<T>(); }
    T* part(std::size_t rows) const { return base() + shifts_ + rows * dots_ * width_; }

    Context& ctx_;
    std::size_t width_;
    std::size_t parts_;
    const ApplyOptions<T>& options_;
    std::size_t shifts_;
    std::size_t dots_;
    Scratch memory_;
};

}  // namespace quiver
