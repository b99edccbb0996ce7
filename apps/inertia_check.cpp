// SPDX-License-Identifier: BSD-3-Clause
#include "apps/inertia_check.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "blockvec/error.hpp"
#include "blockvec/scalar_list.hpp"
#include "solvers/eigen/inertia.hpp"

namespace quiver::apps {

void require_inertia_size(std::int64_t rows) {
    if (rows > most_inertia_rows) {
        throw InputError(fmt::format("--verify inertia: at most {} rows, but the matrix has {}",
                                     most_inertia_rows, rows));
    }
}

namespace {

/// Eigenvalues that are closer than this distance count as copies: 2 tol max(||A||, |shift|). If
/// this maximum is 0, it is replaced by 1. Many eigenvalues of a stiff matrix are that close: if
/// the distance is above a hundredth of all values, it is at most 4 times the largest error bound.
double distance_of(const EigsReport& report, double shift) {
    const double scale = std::max(report.norm_estimate, std::abs(shift));
    const double distance = 2 * report.tolerance * (scale > 0 ? scale : 1);
    double largest = 0;
    double error = 0;
    for (std::size_t j = 0; j < report.errors.size(); ++j) {
        largest = std::max(largest, std::abs(report.eigenvalues[j]));
        error = std::max(error, report.errors[j]);
    }
    constexpr double part = 1e-2;
    return error > 0 && distance > part * largest ? std::min(distance, 4 * error) : distance;
}

/// The requested shifts, with the counts that the result predicts. Empty if it predicts none: all
/// values lie within distance_of() of the target, and the farthest one has further copies.
std::vector<InertiaCount> expected_counts(const EigenOptions& options, const EigsReport& report) {
    const auto& values = report.eigenvalues;
    const auto found = static_cast<std::int64_t>(values.size());
    if (options.window) {
        return {{options.window->low, 0}, {options.window->high, found}};
    }
    const double distance =
        distance_of(report, options.which == Which::target ? options.target : 0);
    if (options.which == Which::target) {
        // A window around the target. With further copies of the farthest value it excludes all of
        // these copies.
        double radius = 0;
        for (const double value : values) {
            radius = std::max(radius, std::abs(value - options.target));
        }
        radius += report.cluster_cut ? -distance : distance / 2;
        if (radius <= 0) {
            return {};
        }
        return {{options.target - radius, 0},
                {options.target + radius,
                 std::count_if(values.begin(), values.end(), [&](double value) {
                     return std::abs(value - options.target) < radius;
                 })}};
    }
    // Eigenvalues ascend; `last` is the wanted eigenvalue farthest from the end of the spectrum.
    const bool smallest = options.which == Which::smallest;
    const double last = smallest ? values.back() : values.front();
    const double inner = smallest ? last - distance : last + distance;
    std::vector<InertiaCount> counts{
        {inner, std::count_if(values.begin(), values.end(), [&](double value) {
             return smallest ? value < inner : value > inner;
         })}};
    if (!report.cluster_cut) {
        counts.push_back({smallest ? last + distance / 2 : last - distance / 2, found});
    }
    return counts;
}

/// The attempts: how far the shift is moved, in units of half the distance.
constexpr double moves[] = {0, 1, 16, 256, 4096};

/// The shift of an attempt; move 0 is the requested shift. The inner shift at an end (`first`)
/// moves to the middle of the gap before the last eigenvalue, where the result predicts the same
/// count. Every other shift moves outwards; a count there confirms the result if it equals the
/// prediction, and otherwise proves nothing.
double moved_shift(const EigenOptions& options, const EigsReport& report, double shift, bool first,
                   double move) {
    const double step = move * distance_of(report, shift) / 2;
    if (options.window || options.which == Which::target) {
        return first ? shift - step : shift + step;
    }
    const bool smallest = options.which == Which::smallest;
    if (!first) {
        return smallest ? shift + step : shift - step;
    }
    // The middle of the gap before the last eigenvalue, if there is a gap.
    const auto& values = report.eigenvalues;
    const double last = smallest ? values.back() : values.front();
    double moved = shift;
    double least = std::numeric_limits<double>::infinity();
    for (const double value : values) {
        const bool beyond = smallest ? value < shift : value > shift;
        if (beyond && std::abs(last - value) < least) {
            least = std::abs(last - value);
            moved = (value + last) / 2;
        }
    }
    return move > 0 ? moved : shift;
}

/// True if the factorisation is reliable and its errors cannot move a computed eigenvalue to the
/// other side of the shift.
bool is_clear(const Inertia& signs, const EigsReport& report, double shift) {
    return signs.reliable &&
           std::all_of(report.eigenvalues.begin(), report.eigenvalues.end(),
                       [&](double value) { return std::abs(value - shift) > signs.error; });
}

}  // namespace

template <class T>
std::vector<InertiaCount> count_by_inertia(const Comm& comm, const Problem& problem,
                                           const EigenOptions& options, const EigsReport& report) {
    std::vector<InertiaCount> counts = expected_counts(options, report);
    comm.agree([&] {
        if (comm.rank() != 0) {
            return;
        }
        const CsrRows<T> rows = load_problem<T>(Comm(), problem, 0);
        const bool between = options.window || options.which == Which::target;
        bool moved_out = false;
        for (InertiaCount& count : counts) {
            const bool first = &count == &counts.front();
            const double wanted = count.shift;
            for (const double move : moves) {
                const double shift = moved_shift(options, report, wanted, first, move);
                if (move > 0 && shift == count.shift) {
                    break;
                }
                count.shift = shift;
                const Inertia signs = inertia(rows, shift);
                const bool below = between || options.which == Which::smallest;
                count.counted = below ? signs.below : signs.above;
                count.reliable = is_clear(signs, report, shift);
                if (count.reliable) {
                    moved_out = moved_out || (move > 0 && (between || !first));
                    break;
                }
            }
        }
        if (between && !counts.empty()) {
            if (!counts.front().reliable) {
                counts.back().reliable = false;
            }
            counts.front().expected = counts.front().counted;
            counts.back().expected += counts.front().counted;
        }
        // There may be eigenvalues between the requested and the moved shift, which the result need
        // not contain. A count that differs therefore proves nothing.
        if (moved_out && counts.back().counted != counts.back().expected) {
            counts.back().reliable = false;
        }
    });
    comm.broadcast(counts.data(), counts.size() * sizeof(InertiaCount), 0);
    return counts;
}

#define QUIVER_INSTANTIATE(T)                               \
    template std::vector<InertiaCount> count_by_inertia<T>( \
        const Comm&, const Problem&, const EigenOptions&, const EigsReport&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver::apps
