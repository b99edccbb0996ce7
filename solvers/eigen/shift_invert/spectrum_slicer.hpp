// SPDX-License-Identifier: BSD-3-Clause
// Finds all eigenvalues between two shifts, and proves by the inertia of the factorisations at both
// shifts that no eigenvalue is missing. Private to solvers/eigen.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "blockvec/block_vector.hpp"
#include "solvers/eigen/eigen_options.hpp"
#include "solvers/eigen/shift_invert/inverse_lanczos.hpp"
#include "solvers/eigen/shift_invert/shifted_pencil.hpp"

namespace quiver {

/// The work and the results of a slicer so far.
struct SlicerProgress {
    std::int64_t factorisations = 0;
    std::int64_t solves = 0;
    int found = 0;
    /// The largest residual of the pairs that are searched, relative to theta.
    double residual = 1;
};

struct SlicerOptions {
    static constexpr std::int64_t no_limit = std::numeric_limits<std::int64_t>::max();

    /// Columns of a step; columns of a basis (0: chosen by the number of wanted pairs).
    int block = 4;
    int max_basis = 0;
    /// A Ritz pair has converged if its residual is this small relative to theta.
    double residual = 1e-11;
    /// In a cluster that no factorisation resolves, a pair has converged if ||A x - lambda B x|| is
    /// this small relative to ||A|| ||x||.
    double cluster_residual = 1e-11;
    /// A pair with a larger residual ||A x - lambda B x|| / ((||A|| + |lambda| ||B||) ||x||) is
    /// left to a shift closer to it.
    double tolerance = 1e-10;
    /// After a few such attempts pairs with residuals up to this, if it is larger, are kept.
    double accepted = 0;
    /// Eigenvalues closer than this count as equal, even if the factorisations tell them apart.
    double resolution = 0;
    std::uint64_t seed = 1;
    /// After this many factorisations the search ends without a result.
    std::int64_t most_factorisations = 10000;
    /// The same, while no pair has been found: such a search rarely finds one later, whereas the
    /// proof that none is missing may take many factorisations.
    std::int64_t most_without_pairs = 300;
    /// find_between() ends without a result if it would have to find more eigenvalues.
    std::int64_t most_between = no_limit;
    /// Called after each factorisation and each filled basis; false ends the search.
    std::function<bool(const SlicerProgress&)> keep_going;
};

/// Finds eigenpairs of a pencil and proves by the counts of eigenvalues below the shifts that none
/// is missing. Runs on one process; a factorisation by MUMPS may use others. `pencil` must outlive
/// this object. The searches return true if their claim is proved:
///
///     find_smallest(k):       all eigenvalues up to the k-th smallest are found
///     find_nearest(t, k):     all eigenvalues up to the k-th nearest to t are found
///     find_between(low, high): all eigenvalues in [low, high] are found
///
/// and each may find further ones. They return false if a limit or a callback has ended the search
/// (is_stopped()), or if the claim is not proved (message()). They throw the errors of the
/// factorisation, of InverseLanczos and of keep_going. Cost: see shift_invert(). Memory: the
/// vectors found and, during a search, a copy of them and the basis, both twice with a B. A k-th
/// eigenvalue inside a cluster that no factorisation can resolve is returned without the rest of
/// its cluster.
template <class W>
class SpectrumSlicer {
  public:
    SpectrumSlicer(ShiftedPencil<W>& pencil, SlicerOptions options);

    bool find_smallest(int k);
    bool find_nearest(double target, int k);
    bool find_between(double low, double high);
    /// If the wanted set ends inside a cluster, finds further pairs of it until there are `total`
    /// pairs, because both ends of the wanted set may lie in that cluster; else returns true.
    bool fill_cluster(int total);
    /// Continues with the problem -A x = lambda B x. The pairs found remain, as far vectors of
    /// InverseLanczos.
    void negate();

    const std::vector<double>& values() const { return values_; }
    const std::vector<BlockVector<W>>& vectors() const { return vectors_; }
    /// Two eigenvalues closer than this count as equal.
    double resolution() const { return resolution_; }
    /// The least x^H B x / ||x||^2 of the vectors found; at most 1.
    double least_length() const;
    /// The largest residual ||A x - lambda B x|| / ((||A|| + |lambda| ||B||) ||x||) of the pairs
    /// found.
    double largest_residual() const { return largest_residual_; }
    /// True if the wanted set ends in a cluster that no factorisation can resolve.
    bool cluster_is_cut() const { return cut_.has_value(); }
    /// The width of the interval that holds that cluster and its pairs found; 0 if none is cut.
    double cut_width() const { return cut_ ? cut_->width : 0; }
    /// True if a limit or a callback of SlicerOptions has ended the search.
    bool is_stopped() const { return stopped_; }
    /// Why a claim was not proved.
    const std::string& message() const { return message_; }
    SlicerProgress progress() const;

  private:
    /// Numbers of wanted pairs: below the shift, above it, and nearest to it on either side.
    struct Wanted {
        int left = 0;
        int right = 0;
        int nearest = 0;
    };

    /// The cluster in which the wanted set ends: its distances from sigma (those of eigenvalues
    /// above sigma, unless it is a target), and cut_width().
    struct CutCluster {
        double sigma = 0;
        double inner = 0;
        double outer = 0;
        double width = 0;
    };

    /// Factorises near `sigma` and records the count; false if the search must end.
    bool factor_at(double sigma);
    /// Searches with the last factors until the wanted pairs are found, or no further pair is
    /// found. False if the search must end, also if the last shift has no factors.
    bool search(const Wanted& wanted);
    bool search_once(const Wanted& wanted);
    /// The residual ||A x - lambda B x|| / (||B|| ||x||) at which a pair has converged, in a
    /// cluster that no factorisation resolves; elsewhere 0.
    double cluster_accuracy() const;
    bool has_converged(const InversePair& pair) const;
    bool is_within_reach(const InversePair& pair) const;
    /// The places in `taken` of the pairs with a correct value and a small residual. Appends their
    /// values to values_, and those with a larger residual to estimates_.
    std::vector<int> keepers(const std::vector<InversePair>& pairs, const std::vector<int>& taken,
                             const RayleighPairs& rayleigh, const std::vector<double>& growths);
    void accept(InverseLanczos<W>& lanczos, const std::vector<InversePair>& pairs, int most);
    /// Finds the eigenvalues that are missing between two recorded shifts.
    bool complete(double low, double high);
    bool choose_shift(double low, double high, double& shift) const;
    /// A value that separates the first k of `keys` (ascending), and the cluster of the k-th, from
    /// the next key.
    double cut_behind(const std::vector<double>& keys, int k) const;
    std::vector<double> all_estimates() const;
    /// Takes an end far beyond the spectrum, where a shift would cost all digits, nearer to it: to
    /// a shift with the same count, or to infinity.
    double near_end(double end);
    bool cover(const Window& wanted, int& attempt, Window& covered);
    std::int64_t count(double low, double high) const;
    std::int64_t found_between(double low, double high) const;
    double narrow(double sigma) const;
    bool is_clear(double shift) const;
    bool fail(const std::string& message);
    bool bracket_smallest(int k);
    bool take_cluster(const CutCluster& cluster, std::int64_t missing);
    bool go_on(double residual);

    ShiftedPencil<W>& pencil_;
    SlicerOptions options_;
    ShiftedFactor factor_;
    /// True if the last factorisation moved its shift away from the requested one.
    bool has_moved_ = false;
    /// The number of shifts since the last one whose count has a bounded error.
    int undecided_ = 0;
    /// The number of eigenvalues below each shift (0 at -infinity, all at infinity), and the error
    /// of its factorisation.
    std::map<double, std::int64_t> below_;
    std::map<double, double> error_;
    std::vector<double> values_;
    /// max(1, ||x||^2) of their vectors, where x^H B x = 1: 1 without B.
    std::vector<double> growths_;
    std::vector<BlockVector<W>> vectors_;
    /// The number of pairs found before negate().
    int other_end_ = 0;
    /// Ritz values that have not converged.
    std::vector<double> estimates_;
    double resolution_ = 0;
    double largest_residual_ = 0;
    /// While the pairs of a cluster are searched that no factorisation resolves: how far from the
    /// shift they may lie. Else 0.
    double reach_ = 0;
    /// The number of calls of keepers() that left a pair to another shift because of its residual.
    int rejections_ = 0;
    std::optional<CutCluster> cut_;
    bool stopped_ = false;
    std::string message_;
    std::uint64_t seed_;
};

}  // namespace quiver
