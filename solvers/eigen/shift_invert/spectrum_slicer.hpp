// SPDX-License-Identifier: BSD-3-Clause
// Finds all eigenvalues between two shifts, and proves it by the inertia of the factorisations at
// both. Private to solvers/eigen.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "blockvec/block_vector.hpp"
#include "solvers/eigen/shift_invert/inverse_lanczos.hpp"
#include "solvers/eigen/shift_invert/shifted_pencil.hpp"

namespace quiver {

/// What a slicer has done so far.
struct SlicerProgress {
    std::int64_t factorisations = 0;
    std::int64_t solves = 0;
    int found = 0;
    /// Of the next pair, relative to its distance from the shift.
    double residual = 1;
};

struct SlicerOptions {
    /// Columns of a step; columns of a basis, 0: by the number of wanted pairs.
    int block = 4;
    int max_basis = 0;
    /// A Ritz pair has converged if its residual is this small relative to theta.
    double residual = 1e-11;
    /// Eigenvalues closer than this count as equal, even if the factorisations tell them apart.
    double resolution = 0;
    std::uint64_t seed = 1;
    /// Factorisations before the search ends without a result.
    std::int64_t most_factorisations = 10000;
    /// Called after each factorisation and each filled basis; false ends the search.
    std::function<bool(const SlicerProgress&)> keep_going;
};

/// Keeps the eigenpairs found and the counts of eigenvalues below the shifts tried. The searches
/// return true if their claim is proved:
///
///     find_smallest(k):       all eigenvalues up to the k-th smallest are found
///     find_nearest(t, k):     all eigenvalues up to the k-th nearest to t are found
///     find_between(low, high): all eigenvalues in [low, high] are found
///
/// and each may find further ones. A k-th eigenvalue inside a cluster that no factorisation can
/// resolve is returned without the rest of its cluster.
template <class W>
class SpectrumSlicer {
  public:
    SpectrumSlicer(ShiftedPencil<W>& pencil, SlicerOptions options);

    bool find_smallest(int k);
    bool find_nearest(double target, int k);
    bool find_between(double low, double high);
    /// Finds further pairs of a cluster that is cut, until there are `total` pairs: both ends of
    /// the wanted set may lie in the same cluster.
    bool fill_cluster(int total);
    /// Turns to the problem -A x = lambda B x; the pairs found stay.
    void negate();

    const std::vector<double>& values() const { return values_; }
    const std::vector<BlockVector<W>>& vectors() const { return vectors_; }
    /// Two eigenvalues closer than this count as equal.
    double resolution() const { return resolution_; }
    /// The wanted set ends in a cluster that no factorisation can resolve.
    bool cluster_is_cut() const { return cluster_is_cut_; }
    bool is_stopped() const { return stopped_; }
    /// Why a claim was not proved.
    const std::string& message() const { return message_; }
    SlicerProgress progress() const;

  private:
    struct Wanted {
        int left = 0;
        int right = 0;
        /// On either side.
        int nearest = 0;
    };

    /// Factorises near `sigma` and records the count; false at the end of the search.
    bool factor_at(double sigma);
    /// Searches with the last factor until the wanted pairs are found, or nothing more is.
    bool search(const Wanted& wanted);
    bool search_once(const Wanted& wanted);
    bool has_converged(const InversePair& pair) const;
    int accept(InverseLanczos<W>& lanczos, const std::vector<InversePair>& pairs, int most);
    /// Finds what is missing between two recorded shifts.
    bool complete(double low, double high);
    bool choose_shift(double low, double high, double& shift) const;
    /// The last of `keys`, ascending, that belongs to the first k or their cluster, and a clear cut
    /// behind it.
    double cut_behind(const std::vector<double>& keys, int k) const;
    std::vector<double> all_estimates() const;
    std::int64_t count(double low, double high) const;
    std::int64_t found_between(double low, double high) const;
    double narrow(double sigma) const;
    bool is_clear(double shift) const;
    bool fail(const std::string& message);
    bool bracket_smallest(int k);
    bool take_cluster(double sigma, std::int64_t missing);
    bool go_on(double residual);

    ShiftedPencil<W>& pencil_;
    SlicerOptions options_;
    ShiftedFactor<W> factor_;
    /// Counts of eigenvalues below shifts; at -infinity 0, at infinity all.
    std::map<double, std::int64_t> below_;
    std::map<double, double> error_;
    std::vector<double> values_;
    std::vector<BlockVector<W>> vectors_;
    /// Ritz values that have not converged.
    std::vector<double> estimates_;
    double resolution_ = 0;
    /// max ||x||^2 of the pairs found: 1 without B.
    double growth_ = 1;
    bool cluster_is_cut_ = false;
    double cluster_shift_ = 0;
    bool stopped_ = false;
    std::string message_;
    std::uint64_t seed_;
};

}  // namespace quiver
