// SPDX-License-Identifier: BSD-3-Clause
// Chebyshev polynomials of an operator, applied to blocks. Private to solvers/eigen.
#pragma once

#include <functional>
#include <vector>

#include "blockvec/block_vector.hpp"
#include "blockvec/context.hpp"
#include "solvers/eigen/guarded_operator.hpp"
#include "solvers/eigen/packed.hpp"

namespace quiver {

/// p(t) = T_d((t - c) / e) / T_d((one - c) / e), c and e the centre and half the width of
/// [low, high]: 1 at `one`, which lies outside, at most 1 / T_d((one - c) / e) in the interval, and
/// growing with the distance from it.
struct ChebyshevInterval {
    double low = 0;
    double high = 0;
    double one = 0;

    double centre() const { return low + (high - low) / 2; }
    double half_width() const { return (high - low) / 2; }
    /// log T_d(t) / d for large d: acosh |(t - c) / e|, 0 within the interval.
    double rate(double value) const;
    /// The least degree whose T_d((value - c) / e) is at least `growth`; most_degree if there is
    /// none below it.
    int degree_for(double value, double growth, int most_degree) const;
};

/// Columns that a filter multiplies at once unless told otherwise. On the host rows of one cache
/// line: a product gathers one line an entry, and what neighbouring rows share of X stays in the
/// second-level cache up to large grids, which is worth more than fewer passes over A (60^3 grid
/// and an unstructured mesh: 0.35 ms a column for 8 of them, 0.5 to 0.9 for 16 to 32).
template <class T>
int default_panel(Place place);

/// Applies such polynomials with panels of at most `width` columns at once.
template <class T>
class ChebyshevFilter {
  public:
    /// `a` is multiplied between two projections onto the complement of the orthonormal
    /// `constraints` (none, as a rule).
    ChebyshevFilter(Context& ctx, GuardedOperator<T>& a, BlockView<const T> constraints, int width);

    int width() const { return width_; }
    /// X = p(A) X by the three-term recurrence, scaled so that no column grows beyond its share at
    /// values farther out than `one`: each product, shift and difference is one fused pass. Degree
    /// at least 1. Cost for each panel: degree products with its columns. Collective. Source: Zhou,
    /// Saad, Tiago, Chelikowsky, J. Comput. Phys. 219 (2006) 172, algorithm 4.3 (scaled filter).
    void apply(BlockView<T> x, const ChebyshevInterval& interval, int degree);
    /// X = sum_m series[m] T_m((A - c) / e) X, c and e the centre and half the width of `interval`,
    /// which holds the spectrum. One pass more a degree than above. Between two panels `go_on` is
    /// asked, if there is one; where it says no, the rest of X stays as it is. It must say the same
    /// on all ranks. Collective.
    void apply_series(BlockView<T> x, const ChebyshevInterval& interval,
                      const std::vector<double>& series, const std::function<bool()>& go_on = {});

  private:
    template <class Panel>
    void by_panels(BlockView<T> x, Panel&& panel, const std::function<bool()>& go_on = {});
    void apply_panel(BlockView<T> x, const ChebyshevInterval& interval, int degree);
    void apply_series_panel(BlockView<T> x, const ChebyshevInterval& interval,
                            const std::vector<double>& series);
    void project(BlockView<T> x);

    Context& ctx_;
    GuardedOperator<T>& a_;
    BlockView<const T> constraints_;
    int width_;
    BlockVector<T> current_;
    BlockVector<T> previous_;
};

}  // namespace quiver
