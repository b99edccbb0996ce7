// SPDX-License-Identifier: BSD-3-Clause
// Chebyshev polynomials of an operator, applied to blocks. Private to solvers/eigen.
#pragma once

#include <functional>
#include <vector>

#include "blockvec/block_vector.hpp"
#include "blockvec/context.hpp"
#include "solvers/eigen/search/packed.hpp"
#include "solvers/guarded_operator.hpp"

namespace quiver {

/// The interval [low, high] that the polynomial p(t) = T_d((t - c) / e) / T_d((one - c) / e) damps;
/// c and e are the centre and half the width of the interval. `one` lies outside; p is 1 there, |p|
/// is at most 1 / |T_d((one - c) / e)| inside the interval, and grows with the distance from it.
struct ChebyshevInterval {
    double low = 0;
    double high = 0;
    double one = 0;

    double centre() const { return low + (high - low) / 2; }
    double half_width() const { return (high - low) / 2; }
    /// acos((value - c) / e); 0 or pi for values beyond an end.
    double angle(double value) const;
    /// The value at an angle of 0 to pi; angles beyond are moved to these ends.
    double at_angle(double angle) const;
    /// The limit of log |T_d(t)| / d for large d at t = (value - c) / e: acosh |t|, and 0 within
    /// the interval.
    double rate(double value) const;
    /// The smallest degree with T_d((value - c) / e) >= `growth`, but at most most_degree.
    int degree_for(double value, double growth, int most_degree) const;
};

/// Default number of columns that a filter multiplies at once. On the host a row of such a panel
/// fills two cache lines. Solves take 0.73 to 0.91 of the time with one line (grid, mesh and spin
/// chain of 6e4 to 2e5 rows; with AVX2 0.76 to 1.09); with three lines they take longer again.
template <class T>
int default_panel(Place place);

/// Applies Chebyshev polynomials of an operator to a block, in panels of at most `width` columns.
/// If the operator checks its products, their checksums travel with the blocks of the recurrence.
/// If it also repairs faults, one more all-reduce for each panel tells whether a product was lost.
/// In that case the recurrence of the panel runs again, with copies that let the operator repair
/// each product.
template <class T>
class ChebyshevFilter {
  public:
    /// Each product with `a` is projected onto the complement of the orthonormal `constraints`
    /// (usually empty).
    ChebyshevFilter(Context& ctx, GuardedOperator<T>& a, BlockView<const T> constraints, int width);

    int width() const { return width_; }
    /// The width of all panels but the last of a block with `columns` columns.
    int panel_width(int columns) const;
    /// X = p(A) X with the scaled polynomial of ChebyshevInterval, by the three-term recurrence;
    /// product, shift and difference of a step are one fused pass. The scaling keeps components at
    /// `one` at their length; only components farther out grow. Degree at least 1. Cost for each
    /// panel: `degree` products with its columns. Collective. Source: Zhou, Saad, Tiago,
    /// Chelikowsky, J. Comput. Phys. 219 (2006) 172, algorithm 4.3 (scaled filter).
    void apply(BlockView<T> x, const ChebyshevInterval& interval, int degree);
    /// X = sum_m series[m] T_m((A - c) / e) X, where c and e are the centre and half the width of
    /// `interval`, which must contain the spectrum. Costs one pass per degree more than apply().
    /// `go_on`, if given, is called between panels and after a few products; once it returns false,
    /// the filter ends: the current panel may hold only a part of its sum, and the remaining
    /// columns of X stay unchanged. It must return the same value on all ranks. Collective.
    void apply_series(BlockView<T> x, const ChebyshevInterval& interval,
                      const std::vector<double>& series, const std::function<bool()>& go_on = {});

  private:
    template <class Panel>
    void by_panels(BlockView<T> x, Panel&& panel, const std::function<bool()>& go_on = {});
    void apply_panel(BlockView<T> x, const ChebyshevInterval& interval, int degree);
    void apply_series_panel(BlockView<T> x, const ChebyshevInterval& interval,
                            const std::vector<double>& series, const std::function<bool()>& go_on);
    void project(BlockView<T> x);
    struct Pair;
    void step(Pair& pair, ApplyOptions<T> options, bool last);
    template <class Sweep>
    void run_repeatable(Sweep&& sweep);

    Context& ctx_;
    GuardedOperator<T>& a_;
    BlockView<const T> constraints_;
    int width_;
    BlockVector<T> current_;
    BlockVector<T> previous_;
};

}  // namespace quiver
