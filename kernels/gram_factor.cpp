// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/gram_factor.hpp"

#include "blockvec/scalar_list.hpp"
#include "kernels/dispatch.hpp"
#include "kernels/operation.hpp"

namespace quiver {

template <class T>
void gram_factor(Context& ctx, std::type_identity_t<BlockView<const T>> g, BlockView<T> r,
                 BlockView<T> s) {
    constexpr const char* operation = operations::gram_factor.name;
    require_operand(ctx, g, operation, "G");
    require_operand(ctx, r, operation, "R");
    require_operand(ctx, s, operation, "S");
    const auto all = [&] { return describe("G", g, "R", r) + "; S: " + describe(s); };
    const auto square = [&](const auto& view) {
        return view.rows == g.cols && view.cols == g.cols;
    };
    require_shape(square(g) && square(r) && square(s) && g.cols <= largest_gram_factor, operation,
                  "G, R and S are not square, of one order up to 64", all);
    require_shape(!overlap(g, r) && !overlap(g, s) && !overlap(r, s), operation,
                  "G, R and S overlap", all);
    if (g.empty()) {
        return;
    }
    dispatch<operations::gram_factor, T>(ctx, [&](const auto& kernel) {
        kernel(GramFactorArgs<T>{g.cols, g.data, g.ld, r.data, r.ld, s.data, s.ld});
    });
}

#define QUIVER_INSTANTIATE(T) \
    template void gram_factor(Context&, BlockView<const T>, BlockView<T>, BlockView<T>);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
