// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/shift_invert/spectrum_slicer.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <span>
#include <string>
#include <utility>

#include "blockvec/number_text.hpp"
#include "kernels/column_ops.hpp"
#include "solvers/eigen/shift_invert/gathered_matrix.hpp"

namespace quiver {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double slicing_unit = std::numeric_limits<double>::epsilon();

/// Rounding errors of the largest |theta| limit the accuracy of the others: pairs for which these
/// errors exceed this fraction of |theta| wait for a nearer shift.
constexpr double most_rounding = 1e-8;
/// The value sigma + 1 / theta and the Rayleigh quotient of a pair differ by at most this fraction
/// of 1 / theta, besides the rounding of A and of the factors.
constexpr double most_apart = 1e-4;
/// Further pairs that a search for k pairs looks for, to see the gap behind the k-th.
constexpr int extra_pairs = 2;
/// Maximal number of pairs that are searched with one basis.
constexpr int most_per_basis = 80;
/// With a B, this many shifts in a row without a reliable count end the search: if A and B have a
/// common null vector, no factorisation with pivoting gives one.
constexpr int most_undecided = 4;
/// Filled bases without a further converged pair before a shift is given up.
constexpr int patience = 3;
/// After this many searches whose pairs had too large residuals of A, residuals up to
/// SlicerOptions::accepted suffice, and after more searches any: rounding may not allow smaller
/// ones.
constexpr int strict_rejections = 3;
constexpr int most_rejections = 16;
/// The largest number of eigenvalues in an interval that is searched for k wanted ones.
std::int64_t allowed(int k) {
    return k + std::max(20, k / 8);
}

}  // namespace

template <class W>
SpectrumSlicer<W>::SpectrumSlicer(ShiftedPencil<W>& pencil, SlicerOptions options)
    : pencil_(pencil), options_(std::move(options)), seed_(options_.seed) {
    resolution_ = options_.resolution;
    below_[-infinity] = 0;
    below_[infinity] = pencil_.rows();
}

template <class W>
SlicerProgress SpectrumSlicer<W>::progress() const {
    return {pencil_.factorisations(), pencil_.solves(), static_cast<int>(values_.size()), 1};
}

template <class W>
bool SpectrumSlicer<W>::go_on(double residual) {
    SlicerProgress now = progress();
    now.residual = residual;
    if (now.found == 0 && now.factorisations >= options_.most_without_pairs) {
        fail(std::to_string(now.factorisations) + " factorisations found no eigenpair");
        stopped_ = true;
    }
    if (now.factorisations >= options_.most_factorisations ||
        (options_.keep_going && !options_.keep_going(now))) {
        stopped_ = true;
    }
    return !stopped_;
}

template <class W>
bool SpectrumSlicer<W>::fail(const std::string& message) {
    if (!stopped_ && message_.empty()) {
        message_ = message;
    }
    return false;
}

template <class W>
void SpectrumSlicer<W>::negate() {
    pencil_.negate();
    std::map<double, std::int64_t> mirrored;
    std::map<double, double> errors;
    for (const auto& [shift, below] : below_) {
        mirrored[-shift] = pencil_.rows() - below;
    }
    for (const auto& [shift, error] : error_) {
        errors[-shift] = error;
    }
    below_ = std::move(mirrored);
    error_ = std::move(errors);
    for (double& value : values_) {
        value = -value;
    }
    estimates_.clear();
    factor_ = {};
    other_end_ = static_cast<int>(values_.size());
}

template <class W>
bool SpectrumSlicer<W>::factor_at(double sigma) {
    factor_ = pencil_.factor(sigma);
    has_moved_ = factor_.complete && factor_.sigma != sigma;
    if (!go_on(1)) {
        return false;
    }
    if (!factor_.complete) {
        return fail("every factorisation near a shift meets a pivot of zero");
    }
    below_[factor_.sigma] = factor_.below;
    error_[factor_.sigma] = factor_.error;
    const bool decided = std::isfinite(factor_.error);
    undecided_ = decided ? 0 : undecided_ + 1;
    if (undecided_ >= most_undecided && pencil_.has_b()) {
        return fail("no factorisation near " + std::to_string(undecided_) +
                    " shifts in a row decides how many eigenvalues lie below; if B is singular to "
                    "rounding, wanted ones may be infinite");
    }
    const double error = decided ? factor_.error : 0;
    resolution_ = std::max(
        resolution_, (error + 4 * slicing_unit * pencil_.scale(factor_.sigma)) / least_length());
    return true;
}

template <class W>
double SpectrumSlicer<W>::least_length() const {
    return growths_.empty() ? 1 : 1 / *std::max_element(growths_.begin(), growths_.end());
}

template <class W>
std::int64_t SpectrumSlicer<W>::count(double low, double high) const {
    return below_.at(high) - below_.at(low);
}

template <class W>
std::int64_t SpectrumSlicer<W>::found_between(double low, double high) const {
    return std::count_if(values_.begin(), values_.end(),
                         [&](double value) { return low < value && value < high; });
}

/// True if rounding cannot have moved a known eigenvalue to the other side of the shift.
template <class W>
bool SpectrumSlicer<W>::is_clear(double shift) const {
    if (!std::isfinite(shift)) {
        return true;
    }
    const double error = error_.at(shift);
    if (!std::isfinite(error)) {
        return false;
    }
    for (std::size_t j = 0; j < values_.size(); ++j) {
        if (std::abs(values_[j] - shift) <= growths_[j] * error) {
            return false;
        }
    }
    return true;
}

template <class W>
bool SpectrumSlicer<W>::search(const Wanted& wanted) {
    if (!factor_.complete) {
        return fail("the last shift has no factorisation");
    }
    Wanted left = wanted;
    // A shift that was moved away from an eigenvalue is still close to it: rounding relative to
    // the huge theta of this eigenvalue hides the digits of the other pairs. A few steps find the
    // pair of this eigenvalue; the next search finds the others in its orthogonal complement.
    bool alone = has_moved_ && left.left + left.right + left.nearest > 1;
    while (left.left > 0 || left.right > 0 || left.nearest > 0) {
        const std::size_t before = values_.size();
        if (static_cast<std::int64_t>(before) >= pencil_.rows() ||
            !search_once(alone ? Wanted{0, 0, 1} : left)) {
            break;
        }
        const bool was_alone = std::exchange(alone, false);
        int below = 0;
        for (std::size_t j = before; j < values_.size(); ++j) {
            below += values_[j] < factor_.sigma ? 1 : 0;
        }
        const int all = static_cast<int>(values_.size() - before);
        if (all == 0 && !was_alone) {
            break;
        }
        left = {left.left - below, left.right - (all - below), left.nearest - all};
    }
    return !stopped_;
}

/// Searches with one basis, which is restarted until the wanted pairs have converged or no further
/// pair converges.
template <class W>
bool SpectrumSlicer<W>::search_once(const Wanted& wanted) {
    const std::int64_t room = pencil_.rows() - static_cast<std::int64_t>(values_.size());
    const int total =
        std::min(most_per_basis, std::max(wanted.left, 0) + std::max(wanted.right, 0) +
                                     std::max(wanted.nearest, 0));
    const int block = options_.block;
    const int least = total + 2 * block;
    const int columns = static_cast<int>(std::min<std::int64_t>(
        room, total == 1 && has_moved_ ? least
              : options_.max_basis > 0 ? std::max(options_.max_basis, least)
                                       : total + std::max({total, 5 * block, 20})));
    InverseLanczos<W> lanczos(pencil_, factor_, vectors_, other_end_, std::min(block, columns),
                              columns, seed_ += 1000003);
    estimates_.clear();
    int best = -1;
    int idle = 0;
    while (true) {
        const std::vector<InversePair>& pairs = lanczos.fill_basis();
        const double rounding = 8 * slicing_unit * (pairs.empty() ? 0 : std::abs(pairs[0].theta));
        int left = wanted.left, right = wanted.right, nearest = wanted.nearest;
        int last = 0;
        int converged = 0;
        bool all = true;
        bool reachable = true;
        double residual = 0;
        for (std::size_t j = 0; j < pairs.size(); ++j) {
            int& open = nearest > 0 ? nearest : pairs[j].theta < 0 ? left : right;
            if (open <= 0 || last >= total + 2 * block + most_per_basis) {
                continue;
            }
            --open;
            last = static_cast<int>(j) + 1;
            const double size = std::abs(pairs[j].theta);
            const bool good = has_converged(pairs[j]);
            if (good && !is_within_reach(pairs[j])) {
                left = right = nearest = 0;  // the others are still farther
                break;
            }
            reachable = reachable && rounding <= most_rounding * size;
            converged += good && rounding <= most_rounding * size ? 1 : 0;
            all = all && good;
            residual = std::max(residual, pairs[j].residual / size);
        }
        idle = converged > best ? 0 : idle + 1;
        best = std::max(best, converged);
        const bool ends = (all && left <= 0 && right <= 0 && nearest <= 0) || lanczos.spans_all() ||
                          idle >= patience || (!reachable && idle > 0);
        if (!go_on(residual) || ends) {
            accept(lanczos, pairs, std::max(last, std::min(total, static_cast<int>(pairs.size()))));
            return !stopped_;
        }
        const int size = static_cast<int>(pairs.size());
        lanczos.restart(std::min(std::max(last + block, size / 2), std::max(1, size - 2 * block)));
    }
}

/// False if a pair, which has converged to the accuracy of a cluster, lies outside this cluster.
template <class W>
bool SpectrumSlicer<W>::is_within_reach(const InversePair& pair) const {
    return reach_ == 0 || 1 <= reach_ * std::abs(pair.theta);
}

template <class W>
double SpectrumSlicer<W>::cluster_accuracy() const {
    return reach_ > 0 ? options_.cluster_residual * pencil_.norm() / pencil_.norm_b() : 0;
}

/// True if the residual is small relative to theta, or if that of A x = lambda B x is small enough:
/// at the level of rounding of ||A||, or in a cluster at that of the tolerance. Proof of the
/// latter: let r = (A - sigma B)^-1 B x - theta x, lambda = sigma + 1 / theta, and x' = x + r /
/// theta = (A - sigma B)^-1 B x / theta the vector that accept() takes. Then A x' - lambda B x' =
/// (B x - B x') / theta = -B r / theta^2, whose 2-norm is at most sqrt(||B||) ||r||_B / theta^2.
/// Because r is B-orthogonal to x, ||x'||_B >= ||x||_B = 1 and ||x'||_2 >= 1 / sqrt(||B||). The
/// residual relative to ||x'||_2 is therefore at most ||B|| ||r||_B / theta^2.
template <class W>
bool SpectrumSlicer<W>::has_converged(const InversePair& pair) const {
    // A pair with a larger residual relative to theta is no approximation of the nearest ones.
    constexpr double most = 0.1;
    const double size = std::abs(pair.theta);
    const double rounding = slicing_unit * pencil_.norm() / pencil_.norm_b();
    return pair.residual <= size * std::max({options_.residual, rounding * size,
                                             std::min(cluster_accuracy() * size, most)});
}

/// Appends the values of the pairs that are kept to values_, and those of pairs with too large a
/// residual of A to the estimates.
template <class W>
std::vector<int> SpectrumSlicer<W>::keepers(const std::vector<InversePair>& pairs,
                                            const std::vector<int>& taken,
                                            const RayleighPairs& rayleigh,
                                            const std::vector<double>& growths) {
    const double error_of_factors =
        cluster_accuracy() + (std::isfinite(factor_.error) ? factor_.error : 0);
    std::vector<int> kept;
    bool rejects = false;
    for (std::size_t j = 0; j < taken.size(); ++j) {
        const double theta = pairs[static_cast<std::size_t>(taken[j])].theta;
        // sigma + 1 / theta is accurate relative to its distance from sigma, but has the error of
        // the factorisation. The quotient x^H A x has an error of rounding of ||A||.
        const double value = factor_.sigma + 1 / theta;
        const double quotient = rayleigh.values[j];
        const double apart = std::abs(value - quotient);
        const double growth = growths[j];
        const double rounding = 4 * slicing_unit * pencil_.norm() * growth;
        // If another theta is far larger, its rounding errors can look like a converged pair.
        if (apart > 4 * rounding + growth * error_of_factors + most_apart / std::abs(theta)) {
            continue;
        }
        // A solve amplifies the components of eigenvectors that are much closer to the shift and
        // are not yet found. A shift closer to this pair amplifies them less.
        const double most = rejections_ < strict_rejections
                                ? options_.tolerance
                                : std::max(options_.tolerance, options_.accepted);
        if (rayleigh.residuals[j] > most && rejections_ < most_rejections) {
            estimates_.push_back(quotient);
            rejects = true;
            continue;
        }
        values_.push_back(apart <= rounding ? value : quotient);
        growths_.push_back(growth);
        largest_residual_ = std::max(largest_residual_, rayleigh.residuals[j]);
        kept.push_back(static_cast<int>(j));
    }
    rejections_ += rejects ? 1 : 0;
    return kept;
}

/// Keeps the converged pairs among the first `most`; the values of other pairs become estimates.
template <class W>
void SpectrumSlicer<W>::accept(InverseLanczos<W>& lanczos, const std::vector<InversePair>& pairs,
                               int most) {
    std::vector<int> taken;
    for (int j = 0; j < static_cast<int>(pairs.size()); ++j) {
        const InversePair& pair = pairs[static_cast<std::size_t>(j)];
        const double size = std::abs(pair.theta);
        if (size == 0) {
            continue;
        }
        const bool good = has_converged(pair) && is_within_reach(pair) &&
                          8 * slicing_unit * std::abs(pairs[0].theta) <= most_rounding * size;
        if (good && j < most) {
            taken.push_back(j);
        } else if (pair.residual < 0.5 * size) {
            estimates_.push_back(factor_.sigma + 1 / pair.theta);
        }
    }
    if (taken.empty()) {
        return;
    }
    BlockVector<W> x = lanczos.vectors(taken);
    if (x.width() < static_cast<int>(taken.size())) {
        return;
    }
    const RayleighPairs rayleigh = pencil_.rayleigh_pairs(std::as_const(x).view());
    std::vector<double> growths(taken.size(), 1.0);
    if (pencil_.has_b()) {
        norms(pencil_.ctx(), std::as_const(x).view(), std::span<double>(growths));
        for (double& growth : growths) {
            growth = std::max(1.0, growth * growth);
        }
    }
    const std::vector<int> kept = keepers(pairs, taken, rayleigh, growths);
    if (kept.empty()) {
        return;
    }
    if (kept.size() < taken.size()) {
        BlockVector<W> y(pencil_.ctx(), pencil_.map(), static_cast<int>(kept.size()));
        gather_columns(pencil_.ctx(), std::as_const(x).view(), kept, y.view());
        x = std::move(y);
    }
    vectors_.push_back(std::move(x));
}

/// Chooses a shift strictly between `low` and `high`, where eigenvalues are missing; false if there
/// is none.
template <class W>
bool SpectrumSlicer<W>::choose_shift(double low, double high, double& shift) const {
    std::vector<double> inside;
    for (const double estimate : estimates_) {
        if (low + resolution_ < estimate && estimate < high - resolution_) {
            inside.push_back(estimate);
        }
    }
    if (!inside.empty()) {
        const auto middle = inside.begin() + static_cast<std::ptrdiff_t>(inside.size() / 2);
        std::nth_element(inside.begin(), middle, inside.end());
        // The shift must not lie on the estimate itself, which may be an eigenvalue.
        shift = *middle;
        double apart = std::min(shift - low, high - shift);
        for (const double other : inside) {
            if (other != shift) {
                apart = std::min(apart, std::abs(other - shift));
            }
        }
        shift += std::max(apart / 4, std::min(2 * resolution_, (high - shift) / 2));
        return low < shift && shift < high;
    }
    // The middle of the largest gap between the values found.
    const double size = pencil_.scale(0) / pencil_.norm_b() / least_length();
    std::vector<double> marks;
    for (const double value : values_) {
        if (low < value && value < high) {
            marks.push_back(value);
        }
    }
    const double near = marks.empty() ? (std::isfinite(high)  ? high
                                         : std::isfinite(low) ? low
                                                              : 0)
                                      : marks.front();
    if (std::abs(near) * slicing_unit > size) {
        return false;  // eigenvalues farther out are infinite: B is singular to rounding
    }
    const double farther = std::max(2 * size, 8 * std::abs(near));
    marks.push_back(std::isfinite(low) ? low : near - farther);
    marks.push_back(std::isfinite(high) ? high : near + farther);
    std::sort(marks.begin(), marks.end());
    double widest = 0;
    for (std::size_t i = 1; i < marks.size(); ++i) {
        if (marks[i] - marks[i - 1] > widest) {
            widest = marks[i] - marks[i - 1];
            shift = marks[i - 1] + widest / 2;
        }
    }
    return widest > 0 && low < shift && shift < high;
}

template <class W>
bool SpectrumSlicer<W>::complete(double low, double high) {
    constexpr int most_attempts = 400;
    message_.clear();
    for (int attempt = 0; attempt < most_attempts; ++attempt) {
        const std::int64_t missing = count(low, high) - found_between(low, high);
        if (missing == 0 && is_clear(low) && is_clear(high)) {
            return true;
        }
        if (missing <= 0) {
            return fail("an eigenvalue lies so close to a shift that its side cannot be decided");
        }
        // The slice with most missing eigenvalues.
        double from = low, to = high;
        std::int64_t most = 0;
        for (auto at = below_.find(low); at->first < high; ++at) {
            const auto next = std::next(at);
            const std::int64_t open =
                count(at->first, next->first) - found_between(at->first, next->first);
            if (open > most) {
                most = open;
                from = at->first;
                to = next->first;
            }
        }
        double shift = 0;
        if (!choose_shift(from, to, shift) || !factor_at(shift)) {
            return fail("no shift finds the " + std::to_string(missing) +
                        " eigenvalues between two shifts that the counts of inertia require");
        }
        const double at = factor_.sigma;
        const auto open = [&](double a, double b) {
            return a < b ? static_cast<int>(std::clamp<std::int64_t>(
                               count(a, b) - found_between(a, b), 0, most_per_basis))
                         : 0;
        };
        if (!search({open(from, at), open(at, to), 0})) {
            return false;
        }
    }
    return fail("the search for the missing eigenvalues takes too many shifts");
}

/// The unit for the width of a cluster: eigenvalues between two shifts at most 8 units apart count
/// as one cluster. The unit exceeds the distance by which ShiftedPencil::factor() first moves a
/// shift.
template <class W>
double SpectrumSlicer<W>::narrow(double sigma) const {
    constexpr double units = 1e5;
    return std::max(4 * resolution_,
                    units * slicing_unit * pencil_.scale(sigma) / pencil_.norm_b());
}

template <class W>
std::vector<double> SpectrumSlicer<W>::all_estimates() const {
    std::vector<double> all = values_;
    all.insert(all.end(), estimates_.begin(), estimates_.end());
    std::sort(all.begin(), all.end());
    return all;
}

template <class W>
double SpectrumSlicer<W>::cut_behind(const std::vector<double>& keys, int k) const {
    constexpr double clear = 4;
    for (auto i = static_cast<std::size_t>(k); i < keys.size(); ++i) {
        if (keys[i] - keys[i - 1] > clear * resolution_) {
            return keys[i - 1] + (keys[i] - keys[i - 1]) / 2;
        }
    }
    return keys.back() + clear * resolution_ + 1e-3 * std::abs(keys.back() - keys.front());
}

/// Moves the shift until at most allowed(k) eigenvalues lie below it. The first shift is 0 if A
/// seems to be positive semidefinite, else a bound of the end of the spectrum (with B: a guess).
template <class W>
bool SpectrumSlicer<W>::bracket_smallest(int k) {
    constexpr double semidefinite = 1e-8;
    // A shift closer to the first eigenvalue would cost the others digits.
    constexpr double beside = 1.0 / 16;
    constexpr int most_attempts = 20;
    const double norm = pencil_.norm();
    const double ratio = pencil_.least_ratio();
    const double size = std::max(norm / pencil_.norm_b(), std::abs(ratio));
    const double low = (pencil_.lower_bound() - beside * norm) / pencil_.norm_b();
    double shift =
        ratio > 0 && pencil_.least_ritz_value() > -semidefinite * norm ? 0 : std::min(low, ratio);
    double step = size > 0 ? size : 1;
    for (int attempt = 0; attempt < most_attempts && std::isfinite(step); ++attempt, step *= 8) {
        if (factor_at(shift)) {
            if (factor_.below <= allowed(k)) {
                return true;
            }
        } else if (stopped_) {
            return false;
        }
        message_.clear();
        shift = std::min(std::min(shift, low), ratio) - step;
    }
    return fail(std::string("no shift has been found beyond the wanted end of the spectrum") +
                (pencil_.has_b() ? "; if B is singular, eigenvalues there are infinite" : ""));
}

/// Called if the wanted set ends inside a cluster, whose eigenvalues have distances from sigma
/// between `inner` and `outer`: finds `missing` further pairs of the cluster, no matter which of
/// its pairs.
template <class W>
bool SpectrumSlicer<W>::take_cluster(const CutCluster& cluster, std::int64_t missing) {
    const double width = std::max(cut_width(), cluster.outer - cluster.inner);
    cut_ = cluster;
    cut_->width = width;
    if (missing <= 0) {
        return true;
    }
    const std::size_t before = values_.size();
    const std::size_t wanted = before + static_cast<std::size_t>(missing);
    const double near = cluster.outer + narrow(cluster.sigma);
    // Rounding may not allow to find all copies within the cluster.
    for (const double reach : {near, infinity}) {
        if (values_.size() >= wanted) {
            break;
        }
        reach_ = reach;
        const bool goes_on =
            factor_at(cluster.sigma) && search({0, 0, static_cast<int>(wanted - values_.size())});
        reach_ = 0;
        if (!goes_on) {
            return false;
        }
    }
    for (std::size_t j = before; j < values_.size(); ++j) {
        const double distance = std::abs(values_[j] - cluster.sigma);
        cut_->width = std::max({cut_->width, distance - cluster.inner, cluster.outer - distance});
    }
    return values_.size() >= wanted || fail("too few pairs of a cluster have converged");
}

template <class W>
bool SpectrumSlicer<W>::fill_cluster(int total) {
    return !cut_ || take_cluster(*cut_, total - static_cast<std::int64_t>(values_.size()));
}

/// Finds the wanted pairs on both sides of the last shift, then a shift behind them.
template <class W>
bool SpectrumSlicer<W>::find_smallest(int k) {
    if (k >= pencil_.rows()) {
        return find_between(-infinity, infinity);
    }
    if (!bracket_smallest(k)) {
        return false;
    }
    constexpr int most_attempts = 20;
    for (int attempt = 0; attempt < most_attempts && !stopped_; ++attempt) {
        double low = factor_.sigma;
        const auto found_right = static_cast<int>(found_between(low, infinity));
        const int left = static_cast<int>(factor_.below - found_between(-infinity, low));
        const int right = k - static_cast<int>(factor_.below) + extra_pairs - found_right;
        if (!search({left, std::max(right, 0), 0})) {
            return false;
        }
        if (below_.at(low) >= k && complete(-infinity, low)) {
            return true;
        }
        const std::vector<double> all = all_estimates();
        const bool has_all = static_cast<int>(all.size()) >= k;
        const double cut =
            has_all ? cut_behind(all, k) : low + pencil_.scale(low) / pencil_.norm_b();
        if (!factor_at(std::max(cut, low + 2 * resolution_))) {
            return false;
        }
        double high = factor_.sigma;
        // If too many eigenvalues lie below the cut, shrink the interval from `low` to `high`. Try
        // a shift in front of the k-th estimate, where a cluster may begin. Then try shifts at 1/8
        // of the interval or, once a shift had fewer than k eigenvalues below it, at its middle.
        double next = has_all ? all[static_cast<std::size_t>(k) - 1] - 2 * narrow(low) : low;
        double part = 1.0 / 8;
        int outside = 0;
        while (below_.at(high) > allowed(k) && high - low > 8 * narrow(low)) {
            next = low < next && next < high ? next : low + (high - low) * part;
            if (!factor_at(next)) {
                return false;
            }
            // SparseLdlt moves a shift with small pivots, also to the end of a narrow interval.
            if (!(low < factor_.sigma && factor_.sigma < high)) {
                constexpr double others[] = {0.5, 7.0 / 8, 1.0 / 3};
                if (outside == std::ssize(others)) {
                    const auto first = std::upper_bound(all.begin(), all.end(), low);
                    const auto last = std::lower_bound(first, all.end(), high);
                    if (last - first > 1 && *(last - 1) - *first > narrow(low)) {
                        return fail("some eigenvalues are closer than the factorisation separates");
                    }
                    break;
                }
                next = low + (high - low) * others[outside++];
                continue;
            }
            part = factor_.below < k ? 0.5 : part;
            (factor_.below < k ? low : high) = factor_.sigma;
            next = low;
        }
        const std::int64_t inside = below_.at(high);
        if (inside > allowed(k)) {
            return complete(-infinity, low) &&
                   take_cluster({low, 0, high - low, 0}, k - found_between(-infinity, high));
        }
        if (inside >= k && complete(-infinity, high)) {
            return true;
        }
    }
    return fail("no shift has been found behind the wanted eigenvalues");
}

template <class W>
bool SpectrumSlicer<W>::find_nearest(double target, int k) {
    if (k >= pencil_.rows()) {
        return find_between(-infinity, infinity);
    }
    if (!factor_at(target) || !search({0, 0, k + extra_pairs})) {
        return false;
    }
    std::vector<double> distances;
    for (const double value : all_estimates()) {
        distances.push_back(std::abs(value - target));
    }
    std::sort(distances.begin(), distances.end());
    const bool has_all = static_cast<int>(distances.size()) >= k;
    double radius = has_all ? cut_behind(distances, k) : pencil_.scale(target) / pencil_.norm_b();
    const double front =
        has_all ? distances[static_cast<std::size_t>(k) - 1] - 2 * narrow(target) : 0;
    struct Circle {
        double radius, low, high;
    };
    Circle inner{0, target, target};
    Circle outer{infinity, -infinity, infinity};
    constexpr int most_attempts = 100;
    for (int attempt = 0; attempt < most_attempts && !stopped_; ++attempt) {
        Circle now{radius, 0, 0};
        if (!factor_at(target - radius)) {
            return false;
        }
        now.low = factor_.sigma;
        if (!factor_at(target + radius)) {
            return false;
        }
        now.high = factor_.sigma;
        // Shifts that have moved lie at two distances; all eigenvalues up to the smaller one are
        // inside.
        const double covered = std::min(target - now.low, now.high - target);
        const std::int64_t inside = now.low < now.high ? count(now.low, now.high) : 0;
        if (inside >= k && inside <= allowed(k)) {
            if (complete(now.low, now.high) &&
                found_between(target - covered, target + covered) >= k) {
                return true;
            }
            radius += std::max(narrow(target), radius - covered);
            continue;
        }
        (inside < k ? inner : outer) = now;
        if (outer.radius - inner.radius <= 8 * narrow(target)) {
            const double nearest = std::min(target - inner.low, inner.high - target);
            const double farthest = std::max(target - outer.low, outer.high - target);
            return (inner.radius == 0 || complete(inner.low, inner.high)) &&
                   take_cluster({target, std::max(nearest, 0.0), farthest, 0},
                                k - found_between(outer.low, outer.high));
        }
        // The next radius lies in front of a cluster, else beyond the last radius if none was too
        // large, else near the target if none was too small, else halfway.
        if (inner.radius < front && front < outer.radius) {
            radius = front;
        } else if (std::isinf(outer.radius)) {
            radius *= 2;
        } else {
            radius = inner.radius > 0 ? (inner.radius + outer.radius) / 2 : outer.radius / 8;
        }
    }
    return fail("no radius around the target has the wanted number of eigenvalues");
}

/// Factorises at two shifts that cover `wanted`, on or beyond its ends: farther out in each
/// attempt, because an eigenvalue at an end moves a shift.
template <class W>
bool SpectrumSlicer<W>::cover(const Window& wanted, int& attempt, Window& covered) {
    constexpr int most_attempts = 12;
    for (; attempt < most_attempts && !stopped_; ++attempt) {
        const double near = std::isfinite(wanted.low)    ? std::abs(wanted.low)
                            : std::isfinite(wanted.high) ? std::abs(wanted.high)
                                                         : 0;
        const double step =
            attempt == 0 ? 0 : std::ldexp(std::max(resolution_, slicing_unit * near), 2 * attempt);
        const auto shift = [&](double end) {
            return !std::isfinite(end) ? end
                   : factor_at(end)    ? factor_.sigma
                                       : std::numeric_limits<double>::quiet_NaN();
        };
        covered.low = shift(wanted.low - step);
        covered.high = std::isnan(covered.low) ? covered.low : shift(wanted.high + step);
        if (std::isnan(covered.high)) {
            return false;
        }
        if (covered.low <= wanted.low && covered.high >= wanted.high) {
            return true;
        }
    }
    return false;
}

template <class W>
double SpectrumSlicer<W>::near_end(double end) {
    if (!std::isfinite(end)) {
        return end;
    }
    const auto* const b = pencil_.has_b() ? &*pencil_.b() : nullptr;
    const Window bounds = value_bounds(pencil_.a(), b);
    if (end < bounds.low || end > bounds.high) {
        return std::copysign(infinity, end - bounds.low);
    }
    constexpr double farther = 1024;
    const double resolution = resolution_;
    const std::int64_t outside = end < 0 ? 0 : pencil_.rows();
    double result = end;
    double size = b != nullptr ? far_value(pencil_.a(), *b) : infinity;
    std::int64_t below = -1;
    for (; size > 0 && size < std::abs(end) && below != outside && !stopped_; size *= farther) {
        if (factor_at(std::copysign(size, end))) {
            below = factor_.below;
            result = factor_.sigma;
        }
    }
    if (below == outside) {
        result = std::copysign(infinity, end);
    } else if (below >= 0 && (!factor_at(end) || factor_.below != below)) {
        result = end;
    }
    message_.clear();
    resolution_ = resolution;
    return result;
}

template <class W>
bool SpectrumSlicer<W>::find_between(double low, double high) {
    low = near_end(low);
    high = near_end(high);
    // Shifts that move away from eigenvalues at an end may cover far more than the window. Beyond
    // this factor the factorisations do not resolve it, and a quarter of all eigenvalues is too
    // much.
    constexpr std::int64_t most_growth = 8;
    std::int64_t fewest = pencil_.rows();
    Window covered;
    for (int attempt = 0; cover({low, high}, attempt, covered); ++attempt) {
        const std::int64_t inside = count(covered.low, covered.high);
        fewest = std::min(fewest, inside);
        const bool is_resolved = !(covered.high - covered.low > most_growth * (high - low)) &&
                                 inside <= most_growth * fewest;
        const std::int64_t limit = is_resolved
                                       ? options_.most_between
                                       : std::min(options_.most_between, pencil_.rows() / 4);
        if (inside > limit) {
            fail(std::to_string(inside) +
                 " eigenvalues lie in the window or may be moved into it by rounding errors, more "
                 "than the limit " +
                 std::to_string(limit));
            stopped_ = true;
            return false;
        }
        if (complete(covered.low, covered.high)) {
            return true;
        }
    }
    return false;
}

template class SpectrumSlicer<double>;
template class SpectrumSlicer<std::complex<double>>;

}  // namespace quiver
