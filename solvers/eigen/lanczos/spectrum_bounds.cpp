// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/lanczos/spectrum_bounds.hpp"

#include "blockvec/scalar_list.hpp"
#include "solvers/eigen/lanczos/lanczos_basis.hpp"

namespace quiver {
namespace {

/// Steps and columns of the Lanczos run.
constexpr int norm_steps = 6;
constexpr int norm_block = 2;

}  // namespace

template <class T>
CountedBounds bounds_of_spectrum(Context& ctx, Operator<T>& m, std::uint64_t seed) {
    LanczosBasis<T> basis(ctx, EigenProblem<T>{m}, Which::smallest, seed,
                          (norm_steps + 1) * norm_block, 0, norm_block);
    basis.start(norm_block);
    for (int step = 0; step < norm_steps && basis.next_width() > 0 && !basis.full(); ++step) {
        basis.step();
    }
    basis.ritz();
    const int last = basis.size() - 1;
    return {{basis.ritz_value(0) - basis.ritz_residual(0),
             basis.ritz_value(last) + basis.ritz_residual(last), basis.norm()},
            basis.ritz_value(0),
            basis.applications()};
}

#define QUIVER_INSTANTIATE(T) \
    template CountedBounds bounds_of_spectrum(Context&, Operator<T>&, std::uint64_t);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
