// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/tsmm.hpp"

#include "blockvec/scalar_list.hpp"
#include "kernels/dispatch.hpp"
#include "kernels/operation.hpp"

namespace quiver {
namespace {

constexpr UpdateNames names{operations::tsmm.name, "X", "C", "Y"};

/// Y = alpha X C + beta Y, or with beta Y D if D is not empty.
template <class T, class Kernel>
void update(Context& ctx, const Kernel& kernel, T alpha, const BlockView<const T>& x,
            const BlockView<const T>& c, T beta, const BlockView<T>& y,
            const BlockView<const T>& d) {
    if (y.empty()) {
        return;
    }
    const LeafArray<T> c_array(ctx, c);
    const LeafArray<T> d_array(ctx, d);
    kernel(TsmmArgs<T>{y.rows, x.cols, y.cols, alpha, x.data, x.ld, c_array.data(), c_array.ld(),
                       beta, y.data, y.ld, d.empty() ? nullptr : d_array.data(), d_array.ld()});
}

template <class T>
void require_pair(const Context& ctx, const BlockView<const T>& x, const BlockView<const T>& c,
                  const BlockView<T>& y, const BlockView<const T>& d) {
    require_update(ctx, names, x, c, y);
    require_small(ctx, d, y.cols, y.cols, names.operation, "D",
                  "columns of the result x columns of the result");
    require_shape(!overlap(x, y), names.operation, "the blocks overlap",
                  [&] { return describe("X", x, "Y", y); });
    require_shape(!overlap(d, y) && !overlap(d, x), names.operation,
                  "the small matrix overlaps a block",
                  [&] { return describe("X", x, "Y", y) + "; D: " + describe(d); });
}

}  // namespace

template <class T>
void tsmm(Context& ctx, std::type_identity_t<T> alpha, std::type_identity_t<BlockView<const T>> x,
          std::type_identity_t<BlockView<const T>> c, std::type_identity_t<T> beta,
          BlockView<T> y) {
    const auto product = [&](const auto& kernel) {
        require_update(ctx, names, x, c, y);
        update<T>(ctx, kernel, alpha, x, c, beta, y, {});
    };
    dispatch<operations::tsmm, T>(ctx, product, alpha, x, c, beta, y);
}

template <class T>
void tsmm(Context& ctx, std::type_identity_t<T> alpha, std::type_identity_t<BlockView<const T>> x,
          std::type_identity_t<BlockView<const T>> c, std::type_identity_t<T> beta, BlockView<T> y,
          std::type_identity_t<BlockView<const T>> d) {
    const auto product = [&](const auto& kernel) {
        require_pair(ctx, x, c, y, d);
        if (beta == T(0)) {
            update<T>(ctx, kernel, alpha, x, c, beta, y, {});
        } else if (x.cols == 0) {
            update<T>(ctx, kernel, beta, y, d, T(0), y, {});
        } else {
            update<T>(ctx, kernel, alpha, x, c, beta, y, d);
        }
    };
    dispatch<operations::tsmm, T>(ctx, product, alpha, x, c, beta, y, d);
}

#define QUIVER_INSTANTIATE(T)                                                                 \
    template void tsmm(Context&, T, BlockView<const T>, BlockView<const T>, T, BlockView<T>); \
    template void tsmm(Context&, T, BlockView<const T>, BlockView<const T>, T, BlockView<T>,  \
                       BlockView<const T>);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
