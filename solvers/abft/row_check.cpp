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

constexpr int most_attempts = 3;
/// Relative rounding error of the checksums themselves, in double precision. The checksum of a
/// smooth column may be larger than its norm by the root of the rows.
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
            // Written so that NaN fails the comparison.
            if (std::isfinite(bounds_[at]) &&
                !(std::abs(y(chunk, k, j) - sums_[at]) <= bounds_[at])) {
                return false;
            }
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
    const int log_chunk = guard.options.log_chunk;
    AbftCounts& counts = guard.counts;
    const BlockView<T> y = check.y;
    const auto sums_of_y = [&] {
        guard.bounds = check.wanted.bounds();
        return Checksum<T>(ctx, y, {}, log_chunk, guard.words());
    };
    Checksum<T> first = sums_of_y();
    counts.checked += check.wanted.complete() ? 1 : 0;
    if (check.wanted.holds(first)) {
        return first;
    }
    ++counts.alarms;
    if (!check.again) {
        ++counts.faults;
        guard.tell(ctx, check.operation, "found");
        return first;
    }
    const Scratch scratch =
        ctx.scratch(memory_kind(ctx.place()), static_cast<std::size_t>(y.rows) *
                                                  static_cast<std::size_t>(y.cols) * sizeof(T));
    const BlockView<T> faulty(scratch.template as<T>(), y.rows, y.cols, y.cols, ctx.place());
    copy(ctx, BlockView<const T>(y), faulty);
    OperandRepair repaired;
    const auto settle = [&](Checksum<T> now) {
        ++counts.faults;
        const Correction correction =
            correct(ctx, faulty, BlockView<const T>(y), log_chunk, guard.writes());
        if (!guard.writes()) {
            copy(ctx, BlockView<const T>(faulty), y);
            guard.tell(ctx, check.operation, "found");
            return first;
        }
        const bool mended = correction.chunks == 0 || repaired.found > 0;
        ++(repaired.lost() ? counts.failed : mended ? counts.mended : counts.redone);
        guard.tell(ctx, check.operation,
                   repaired.lost() ? "not mended"
                   : mended        ? "mended"
                                   : "redone");
        return now;
    };
    Checksum<T> previous = first;
    for (int attempt = 0; attempt < most_attempts; ++attempt) {
        check.again();
        Checksum<T> now = sums_of_y();
        if (check.wanted.holds(now)) {
            return settle(std::move(now));
        }
        const OperandRepair repair = check.repair(check.wanted);
        repaired.add(repair);
        if (repair.found > 0 && !guard.writes()) {
            return settle(std::move(now));
        }
        if (repair.found == 0) {
            if (check.wanted.holds(now)) {
                return settle(std::move(now));  // the checksums themselves were wrong
            }
            if (now.same(previous)) {
                ++counts.rounding;
                // Rounding alone if this is the first result and no operand was corrupted; else a
                // fault came first.
                const bool sound = now.same(first) && repaired.found == 0;
                return sound ? std::move(now) : settle(std::move(now));
            }
        }
        previous = std::move(now);
    }
    ++counts.faults;
    if (!guard.writes()) {
        copy(ctx, BlockView<const T>(faulty), y);
        guard.tell(ctx, check.operation, "found");
        return first;
    }
    ++counts.failed;
    guard.tell(ctx, check.operation, "not mended");
    return previous;
}

#define QUIVER_INSTANTIATE(T)     \
    template class WantedSums<T>; \
    template Checksum<T> check_rows(Context&, OperationGuard&, RowCheck<T>);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
