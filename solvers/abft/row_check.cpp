// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/abft/row_check.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "blockvec/scalar_list.hpp"
#include "kernels/column_ops.hpp"

namespace quiver {
namespace {

/// Relative rounding error of the checksums themselves, in double precision. The checksum of a
/// smooth column may exceed its norm by a factor of sqrt(rows).
constexpr double sums_units = 16 * std::numeric_limits<double>::epsilon();

}  // namespace

double rounding_length(double n) {
    return std::sqrt(n) + 4;
}

template <class T>
WantedSums<T>::WantedSums(std::int64_t rows, int columns, int log_chunk)
    : chunks_(checksum_chunks(rows, log_chunk)), columns_(columns), log_chunk_(log_chunk) {
    sums_.assign(static_cast<std::size_t>(2 * chunks_ * columns), Sum(0));
    // Smallest bound, for numbers that underflow.
    const double least =
        std::ldexp(static_cast<double>(std::numeric_limits<real_t<T>>::min()), log_chunk);
    bounds_.assign(sums_.size(), least);
}

template <class T>
WantedSums<T>::WantedSums(std::int64_t rows, int columns)
    : chunks_(1), columns_(columns), log_chunk_(-1) {
    sums_.assign(static_cast<std::size_t>(2 * columns), Sum(0));
    bounds_.assign(sums_.size(), static_cast<double>(std::numeric_limits<real_t<T>>::min()) *
                                     static_cast<double>(rows));
}

template <class T>
void WantedSums<T>::add(std::int64_t chunk, int k, int column, Sum term, double size,
                        double rounding) {
    const std::size_t at = index(chunk, k, column);
    sums_[at] += term;
    const double bound = bounds_[at] + rounding + sums_units * size;
    bounds_[at] = std::isfinite(bound) ? bound : std::numeric_limits<double>::infinity();
}

template <class T>
void WantedSums<T>::add_multiples(std::int64_t chunk, int k, Sum term, double rounding,
                                  const Sum* factors, const double* sizes) {
    Sum* const sums = sums_.data() + index(chunk, k, 0);
    double* const bounds = bounds_.data() + index(chunk, k, 0);
    const double unit = rounding + sums_units * std::abs(term);
    if (!std::isfinite(unit)) {
        for (int j = 0; j < columns_; ++j) {
            bounds[j] = sizes[j] == 0 ? bounds[j] : std::numeric_limits<double>::infinity();
        }
        return;
    }
    for (int j = 0; j < columns_; ++j) {
        sums[j] += multiply(factors[j], term);
        bounds[j] += sizes[j] * unit;
    }
}

template <class T>
bool WantedSums<T>::complete() const {
    return std::all_of(bounds_.begin(), bounds_.end(), [](double b) { return std::isfinite(b); });
}

template <class T>
bool WantedSums<T>::holds(const Checksum<T>& y) const {
    for (std::int64_t chunk = 0; chunk < chunks_; ++chunk) {
        if (!holds(y, chunk)) {
            return false;
        }
    }
    return true;
}

template <class T>
bool WantedSums<T>::holds(const Checksum<T>& y, std::int64_t chunk) const {
    for (int k = 0; k < 2; ++k) {
        for (int j = 0; j < columns_; ++j) {
            const std::size_t at = index(chunk, k, j);
            const Sum sum = log_chunk_ < 0 ? y.total(k, j) : y(chunk, k, j);
            // Written so that NaN fails the comparison.
            if (std::isfinite(bounds_[at]) && !(std::abs(sum - sums_[at]) <= bounds_[at])) {
                return false;
            }
        }
    }
    return true;
}

template <class T>
bool WantedSums<T>::near(const WantedSums& other) const {
    for (std::size_t at = 0; at < sums_.size(); ++at) {
        if (std::isfinite(bounds_[at]) && !(std::abs(other.sums_[at] - sums_[at]) <= bounds_[at])) {
            return false;
        }
    }
    return true;
}

template <class T>
ChunkSums<T> WantedSums<T>::of_chunk(std::int64_t chunk) const {
    ChunkSums<T> result;
    result.chunk = chunk;
    result.log_chunk = log_chunk_;
    for (int k = 0; k < 2; ++k) {
        const auto at = static_cast<std::ptrdiff_t>(index(chunk, k, 0));
        result.sums[k].assign(sums_.begin() + at, sums_.begin() + at + columns_);
        result.bounds[k].assign(bounds_.begin() + at, bounds_.begin() + at + columns_);
    }
    return result;
}

template <class T>
Checksum<T> check_rows(Context& ctx, OperationGuard& guard, RowCheck<T> check) {
    Checksum<T> sums(ctx, check.y, {}, guard.options.log_chunk, guard.words());
    guard.bounds = check.wanted.bounds();
    guard.counts.checked += check.wanted.complete() ? 1 : 0;
    if (!check.wanted.holds(sums)) {
        recover_rows(ctx, guard, check, sums);
    }
    return sums;
}

template <class T>
bool recover_rows(Context& ctx, OperationGuard& guard, RowCheck<T>& check, Checksum<T>& sums) {
    if (!check.again) {
        ++guard.counts.alarms;
        guard.count_fault(ctx, check.operation, Cure::failed);
        return true;
    }
    const int log_chunk = guard.options.log_chunk;
    const Kept<T> faulty(ctx, check.y);
    Recovery<Checksum<T>> end = recover(
        guard, sums,
        [&] {
            check.again();
            return Checksum<T>(ctx, check.y, {}, log_chunk, guard.words());
        },
        [&](const Checksum<T>& now) { return check.wanted.holds(now); },
        [&] { return check.repair(check.wanted); });
    guard.bounds = check.wanted.bounds();
    if (end.fault && !guard.writes()) {
        faulty.put_back(ctx);
        guard.count_fault(ctx, check.operation, Cure::failed);
        return true;
    }
    if (end.fault) {
        const Correction change =
            correct(ctx, faulty.view(), BlockView<const T>(check.y), log_chunk, false);
        const bool mended = change.chunks == 0 || end.operands.found > 0;
        const bool lost = !end.agreed || (end.operands.lost() && !check.caller_redoes);
        guard.count_fault(ctx, check.operation,
                          lost                             ? Cure::failed
                          : mended && !end.operands.lost() ? Cure::mended
                                                           : Cure::redone);
    }
    sums = std::move(end.now);
    return end.agreed;
}

#define QUIVER_INSTANTIATE(T)                                                \
    template class WantedSums<T>;                                            \
    template Checksum<T> check_rows(Context&, OperationGuard&, RowCheck<T>); \
    template bool recover_rows(Context&, OperationGuard&, RowCheck<T>&, Checksum<T>&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
