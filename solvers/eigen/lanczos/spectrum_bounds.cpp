// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/lanczos/spectrum_bounds.hpp"

#include <string>

#include "blockvec/number_text.hpp"
#include "blockvec/scalar_list.hpp"
#include "solvers/eigen/lanczos/lanczos_basis.hpp"
#include "solvers/orth/indefinite_error.hpp"

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

template <class T>
CountedBounds bounds_of_mass(Context& ctx, Operator<T>& b, std::uint64_t seed, const char* method) {
    constexpr double rounding_units = 16;
    CountedBounds found = bounds_of_spectrum(ctx, b, seed);
    if (found.least < -rounding_units * static_cast<double>(epsilon_v<T>) * found.bounds.norm) {
        throw_indefinite(
            IndefiniteError::Operand::mass,
            std::string(method) + ": B is not positive definite: " + number_text(found.least) +
                " is one of its Ritz values, its norm about " + number_text(found.bounds.norm));
    }
    return found;
}

#define QUIVER_INSTANTIATE(T)                                                         \
    template CountedBounds bounds_of_spectrum(Context&, Operator<T>&, std::uint64_t); \
    template CountedBounds bounds_of_mass(Context&, Operator<T>&, std::uint64_t, const char*);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
