// SPDX-License-Identifier: BSD-3-Clause
// Products of a real sparse matrix and complex blocks.
#include <complex>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "blockvec/error.hpp"
#include "blockvec/shape.hpp"
#include "kernels/operation.hpp"
#include "kernels/operations/spmmv.hpp"
#include "kernels/sparse/sparse_matrix.hpp"

namespace quiver {
namespace {

/// The real and imaginary parts of a block, as a block of twice the width in the same memory.
template <class R>
BlockView<R> parts_of(BlockView<std::complex<R>> block) {
    return {reinterpret_cast<R*>(block.data), block.rows, 2 * block.cols, 2 * block.ld,
            block.place};
}
template <class R>
BlockView<const R> parts_of(BlockView<const std::complex<R>> block) {
    return {reinterpret_cast<const R*>(block.data), block.rows, 2 * block.cols, 2 * block.ld,
            block.place};
}

template <class R>
R real_factor(std::complex<R> value, const char* name) {
    if (value.imag() != R(0)) {
        throw InputError(std::string("spmmv: ") + name + " is " + std::to_string(value.real()) +
                         " + " + std::to_string(value.imag()) +
                         " i, but a real matrix times complex blocks takes real factors; store the "
                         "matrix with complex entries");
    }
    return value.real();
}

}  // namespace

template <class R>
requires std::is_floating_point_v<R>
void spmmv(Context& ctx, SparseMatrix<R>& a,
           std::type_identity_t<BlockView<const std::complex<R>>> x,
           std::type_identity_t<BlockView<std::complex<R>>> y,
           const std::type_identity_t<ApplyOptions<std::complex<R>>>& options) {
    constexpr const char* name = operations::spmmv.name;
    require_valid(x, name, "X");
    require_valid(y, name, "Y");
    const auto width = static_cast<std::size_t>(x.cols);
    for (const std::size_t dots :
         {options.dot_yy.size(), options.dot_xy.size(), options.dot_xx.size()}) {
        require_shape(dots == 0 || dots == width, name, "there must be one dot per column",
                      [&] { return std::to_string(dots) + " dots; X: " + describe(x); });
    }
    require_shape(options.shift.size() <= 1 || options.shift.size() == width, name,
                  "there must be no shift, one, or one per column", [&] {
                      return std::to_string(options.shift.size()) + " shifts; X: " + describe(x);
                  });
    std::vector<R> shifts;
    for (const std::complex<R>& shift : options.shift) {
        shifts.insert(shifts.end(), options.shift.size() == 1 ? 1 : 2,
                      real_factor(shift, "a shift"));
    }
    std::vector<R> yy(2 * options.dot_yy.size());
    std::vector<R> xx(2 * options.dot_xx.size());
    if (!options.dot_xy.empty()) {
        static_cast<void>(a.row_map());  // refuses dots of X and Y with different distributions
    }
    ApplyOptions<R> parts;
    parts.alpha = real_factor(options.alpha, "alpha");
    parts.beta = real_factor(options.beta, "beta");
    parts.shift = shifts;
    parts.dot_yy = yy;
    parts.dot_xx = xx;
    a.apply_fused(ctx, parts_of<R>(x), parts_of<R>(y), parts);
    for (std::size_t j = 0; j < options.dot_yy.size(); ++j) {
        options.dot_yy[j] = yy[2 * j] + yy[2 * j + 1];
    }
    for (std::size_t j = 0; j < options.dot_xx.size(); ++j) {
        options.dot_xx[j] = xx[2 * j] + xx[2 * j + 1];
    }
    // The imaginary part combines the two parts of X and Y, which the real product does not.
    ApplyOptions<std::complex<R>> left;
    left.dot_xy = options.dot_xy;
    form_dots<std::complex<R>>(ctx, x, y, left);
}

#define QUIVER_INSTANTIATE(R)                                                            \
    template void spmmv<R>(Context&, SparseMatrix<R>&, BlockView<const std::complex<R>>, \
                           BlockView<std::complex<R>>, const ApplyOptions<std::complex<R>>&);
QUIVER_INSTANTIATE(float)
QUIVER_INSTANTIATE(double)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
