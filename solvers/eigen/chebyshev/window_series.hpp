// SPDX-License-Identifier: BSD-3-Clause
// Chebyshev series of windows, and estimated numbers of eigenvalues in them. Private to
// solvers/eigen.
#pragma once

#include <functional>
#include <vector>

#include "blockvec/block_vector.hpp"
#include "blockvec/context.hpp"
#include "solvers/eigen/chebyshev/chebyshev_filter.hpp"
#include "solvers/guarded_operator.hpp"

namespace quiver {

/// Coefficients 0 .. degree of the Chebyshev series on `spectrum` of the indicator function of
/// [low, high], with Jackson's damping: a step of width pi e / degree at both ends (e: half the
/// width of `spectrum`), values in [0, 1]. Source: Weisse, Wellein, Alvermann, Fehske, Rev. Mod.
/// Phys. 78 (2006) 275, sections II.C and II.D.
std::vector<double> window_series(const ChebyshevInterval& spectrum, double low, double high,
                                  int degree);

/// Jackson's factor of moment m of a series with `terms` terms, 0 <= m < terms. Source: as above,
/// section II.C.
double jackson_damping(int m, int terms);

/// A filter for a window. In the angle theta = acos((lambda - c) / e), where c and e are the centre
/// and half the width of the spectrum, it is the indicator function of the window with a step of
/// half width `step` at each end, from 1 (inside) over 1/2 (at the end) to 0, up to `ripple`.
struct WindowDesign {
    double step = 0;
    double ripple = 0;

    /// The smallest degree for this step and ripple. Source: Kaiser, Proc. IEEE Int. Symp. Circuits
    /// and Systems (1974) 20.
    int degree() const;
};

/// Coefficients 0 .. design.degree() of the Chebyshev series on `spectrum` of the indicator
/// function of [low, high], with Kaiser's window as damping. Its ripple falls exponentially with
/// the degree; with Jackson's damping it falls like 1 / degree^3. Source: as above.
std::vector<double> filter_series(const ChebyshevInterval& spectrum, double low, double high,
                                  const WindowDesign& design);

/// The value of the series at `value` (Clenshaw's recurrence).
double series_at(const std::vector<double>& series, const ChebyshevInterval& spectrum,
                 double value);

/// Moments of the density of states: <v, T_m v> for each random column v; the spread over the
/// columns gives the statistical error.
struct SpectralMoments {
    ChebyshevInterval spectrum;
    std::int64_t rows = 0;
    /// columns x moments
    std::vector<std::vector<double>> of_column;

    struct Count {
        double value = 0;
        /// Standard error of the mean over the columns.
        double error = 0;
    };
    /// Estimated number of eigenvalues in [low, high], smeared at both ends like window_series().
    Count count(double low, double high) const;
};

/// 2 `products` + 1 moments from `products` fused products with `columns` random columns; the dot
/// products are fused into the products. `go_on`, if given, is called between two products and must
/// return the same value on all ranks; once it returns false, the moments so far are the result.
/// Collective. Source: as above, section II.B.
template <class T>
SpectralMoments spectral_moments(Context& ctx, GuardedOperator<T>& a,
                                 const ChebyshevInterval& spectrum, int columns, int products,
                                 std::uint64_t seed, const std::function<bool()>& go_on = {});
/// The same with the columns of `first` in place of random ones.
template <class T>
SpectralMoments spectral_moments(Context& ctx, GuardedOperator<T>& a,
                                 const ChebyshevInterval& spectrum, BlockVector<T> first,
                                 int products, const std::function<bool()>& go_on = {});

}  // namespace quiver
