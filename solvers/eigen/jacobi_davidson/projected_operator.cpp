// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/jacobi_davidson/projected_operator.hpp"

#include <vector>

#include "blockvec/scalar_list.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/tsmm.hpp"
#include "kernels/tsmttsm.hpp"
#include "solvers/small_dense.hpp"

namespace quiver {
namespace {

std::size_t bytes_of(std::int64_t rows, int cols, std::size_t element) {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols) * element;
}

/// Scratch for `count` blocks of x's shape, one after the other.
template <class T>
class Temporaries {
  public:
    Temporaries(Context& ctx, BlockView<const T> x, int count)
        : shape_(x),
          scratch_(
              ctx.scratch(memory_kind(ctx.place()), bytes_of(x.rows, x.cols * count, sizeof(T)))) {}
    BlockView<T> block(int index) {
        return {scratch_.template as<T>() + index * shape_.rows * shape_.cols, shape_.rows,
                shape_.cols, shape_.cols, shape_.place};
    }

  private:
    BlockView<const T> shape_;
    Scratch scratch_;
};

}  // namespace

template <class T>
void remove_components(Context& ctx, BlockView<const T> p, BlockView<const T> bp, BlockView<T> y) {
    if (p.cols == 0 || y.cols == 0) {
        return;
    }
    SmallMatrix<T> c(p.cols, y.cols);
    tsmttsm(ctx, T(1), p, y, T(0), c);
    tsmm(ctx, T(-1), bp, c.view(), T(1), y);
}

template <class T>
void ProjectedOperator<T>::apply(Context& ctx, BlockView<const T> x, BlockView<T> y) {
    apply_fused(ctx, x, y, {});
}

template <class T>
void ProjectedOperator<T>::apply_fused(Context& ctx, BlockView<const T> x, BlockView<T> y,
                                       const ApplyOptions<T>& options) {
    if (options.alpha != T(1) || options.beta != T(0)) {
        Temporaries<T> memory(ctx, x, 1);
        apply_fused(ctx, x, memory.block(0), {T(1), T(0), options.shift, {}, {}});
        axpby(ctx, options.alpha, memory.block(0), options.beta, y);
        if (!options.dot_xy.empty()) {
            dots(ctx, x, y, options.dot_xy);
        }
    } else if (b_ == nullptr) {
        apply_standard(ctx, x, y, options);
    } else {
        apply_generalised(ctx, x, y, options);
    }
    ApplyOptions<T> left = options;
    left.dot_xy = {};
    form_dots<T>(ctx, x, y, left);
}

template <class T>
void ProjectedOperator<T>::apply_standard(Context& ctx, BlockView<const T> x, BlockView<T> y,
                                          const ApplyOptions<T>& options) {
    // X is orthogonal to P, so the projection does not change its dot products with Y.
    a_.apply_fused(ctx, x, y, {sign_, T(0), options.shift, {}, options.dot_xy});
    remove_components(ctx, p_, bp_, y);
}

template <class T>
void ProjectedOperator<T>::apply_generalised(Context& ctx, BlockView<const T> x, BlockView<T> y,
                                             const ApplyOptions<T>& options) {
    Temporaries<T> memory(ctx, x, 2);
    BlockView<const T> from = x;
    if (project_right_) {
        const BlockView<T> u = memory.block(0);
        copy(ctx, x, u);
        remove_components(ctx, bp_, p_, u);
        from = u;
    }
    a_.apply_fused(ctx, from, y, {sign_, T(0), {}, {}, {}});
    if (!options.shift.empty()) {
        b_->apply(ctx, from, memory.block(1));
        const auto width = static_cast<std::size_t>(x.cols);
        std::vector<T> minus_shift(width);
        for (std::size_t j = 0; j < width; ++j) {
            minus_shift[j] = -sign_ * options.shift[options.shift.size() == 1 ? 0 : j];
        }
        axpby<T>(ctx, minus_shift, memory.block(1), std::vector<T>(width, T(1)), y);
    }
    remove_components(ctx, p_, bp_, y);
    if (!options.dot_xy.empty()) {
        dots(ctx, x, y, options.dot_xy);
    }
}

template <class T>
void ProjectedPreconditioner<T>::apply(Context& ctx, BlockView<const T> x, BlockView<T> y) {
    k_.apply(ctx, x, y);
    if (bp_.cols == 0) {
        return;
    }
    SmallMatrix<T> c(bp_.cols, y.cols);
    tsmttsm(ctx, T(1), bp_, y, T(0), c);
    c = product(g_inverse_, c);
    tsmm(ctx, T(-1), z_, c.view(), T(1), y);
}

#define QUIVER_INSTANTIATE(T)                                                         \
    template void remove_components(Context&, BlockView<const T>, BlockView<const T>, \
                                    BlockView<T>);                                    \
    template class ProjectedOperator<T>;                                              \
    template class ProjectedPreconditioner<T>;
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
