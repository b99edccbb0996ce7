// SPDX-License-Identifier: BSD-3-Clause
// Spectral densities by the kernel polynomial method: moments and Jackson's kernel.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "blockvec/context.hpp"
#include "blockvec/event.hpp"
#include "blockvec/view.hpp"
#include "kernels/operator.hpp"
#include "solvers/eigen/eigen_options.hpp"

namespace quiver {

struct DensityOptions {
    /// Chebyshev moments, at least 2; two of them take one product. The resolution is pi / moments
    /// of half the width of the spectrum.
    int moments = 512;
    /// Random columns of a density of states; 0: the exact trace, by products with all columns of
    /// the identity.
    int columns = 16;
    /// Points of the result, in equal steps.
    int points = 512;
    /// An interval that contains the spectrum; if not set, a short Lanczos run finds one.
    std::optional<Window> bounds = {};
    std::uint64_t seed = 1;
    /// As in EigenOptions; called after each product with a block. The event counts the finished
    /// columns; its residual is the share of the products that the current block still needs.
    std::function<bool(const IterationEvent&)> keep_going = {};
};

/// A density at equally spaced energies; the same on all ranks.
struct SpectralDensity {
    std::vector<double> energies;
    std::vector<double> density;
    /// The standard error of each value, from the spread over the random columns; 0 for exact
    /// traces and in spectral_function().
    std::vector<double> errors;
    /// The moments mu_0, mu_1, ... of H scaled to [-1, 1], without the kernel.
    std::vector<double> moments;
    /// The interval that was mapped to [-1, 1].
    Window bounds;
    /// The standard deviation of the kernel in the middle of the spectrum.
    double resolution = 0;
    bool interrupted = false;
    std::int64_t operator_applications = 0;
};

/// The density of states sum_i delta(E - E_i) of a Hermitian H; its integral is the number of rows.
///
/// Throws on all ranks: InputError for options out of range; NumericalError if a product is not
/// finite, or if given bounds do not contain the spectrum (found bounds are widened). Collective.
/// Cost: columns moments / 2 products with one column, in blocks. Exact traces take rows in place
/// of columns. Source: Weisse, Wellein, Alvermann, Fehske, Rev. Mod. Phys. 78 (2006) 275.
template <class T>
SpectralDensity density_of_states(Context& ctx, Operator<T>& h, const DensityOptions& options);

/// The mean over the columns v of V of <v| delta(E - H) |v>; its integral is the mean of <v|v>. For
/// v = A |0> this is the spectral function of A. Otherwise as density_of_states().
template <class T>
SpectralDensity spectral_function(Context& ctx, Operator<T>& h, BlockView<const T> v,
                                  const DensityOptions& options);

}  // namespace quiver
