// SPDX-License-Identifier: BSD-3-Clause
// Operands, fault options and counts for the tests of protected operations.
#pragma once

#include <string>

#include "solvers/abft/operation_guard.hpp"
#include "tests/solvers/abft_support.hpp"

namespace quiver::test {

inline constexpr int log_chunk = 12;

/// Kinds of columns of operands.
enum class Columns { random, constant, smooth, scaled, zero };
constexpr int column_kinds = 5;

template <class T>
SmallMatrix<T> random_small(std::mt19937_64& generator, int rows, int cols) {
    SmallMatrix<T> c(rows, cols);
    for (int i = 0; i < rows; ++i) {
        for (int j = 0; j < cols; ++j) {
            c(i, j) = random_value<T>(generator);
        }
    }
    return c;
}

/// A global block of one kind; `scaled` multiplies each column by a power of 2, 2^-30 to 2^29.
template <class T>
Global<T> columns_of(std::mt19937_64& generator, Columns kind, std::int64_t rows, int cols) {
    Global<T> values(rows, cols);
    for (int j = 0; j < cols; ++j) {
        const T level = random_value<T>(generator);
        const auto scale =
            static_cast<real_t<T>>(std::ldexp(1.0, static_cast<int>(generator() % 60) - 30));
        for (std::int64_t i = 0; i < rows; ++i) {
            const auto place = static_cast<real_t<T>>(i) / static_cast<real_t<T>>(rows);
            values(i, j) = kind == Columns::random     ? random_value<T>(generator)
                           : kind == Columns::constant ? level
                           : kind == Columns::smooth   ? level + place * place
                           : kind == Columns::scaled   ? scale * random_value<T>(generator)
                                                       : T(0);
        }
    }
    return values;
}

/// The largest deviation of a checksum of a chunk, in units of its bound; infinite if an element is
/// not finite.
template <class T>
double effect(const OperationGuard& guard, const std::vector<T>& y, const std::vector<T>& exact,
              int cols) {
    const auto columns = static_cast<std::size_t>(cols);
    std::vector<wide_t<T>> changes(guard.bounds.size());
    for (std::size_t at = 0; at < y.size(); ++at) {
        const std::size_t row = at / columns;
        const std::size_t sum = 2 * (row >> log_chunk) * columns + at % columns;
        const wide_t<T> change = static_cast<wide_t<T>>(y[at]) - static_cast<wide_t<T>>(exact[at]);
        const auto in_chunk = static_cast<std::int64_t>(row & ((std::size_t{1} << log_chunk) - 1));
        changes[sum] += change;
        changes[sum + columns] += change * static_cast<long double>(mixed_weight(in_chunk));
    }
    double worst = 0;
    for (std::size_t at = 0; at < changes.size(); ++at) {
        const double units = static_cast<double>(std::abs(changes[at])) / guard.bounds[at];
        worst = std::isfinite(units) ? std::max(worst, units) : INFINITY;
    }
    return worst;
}

/// The trials of one rank, so that all ranks together make about `trials`: each rank injects its
/// own faults.
inline int share(const Context& ctx, int trials) {
    return (trials + ctx.comm().size() - 1) / ctx.comm().size();
}

/// The outcomes of the faults of a test.
struct Tally {
    int struck = 0;
    int found = 0;
    int mended = 0;
    int redone = 0;
    int failed = 0;

    void add(const AbftCounts& counts) {
        struck += static_cast<int>(counts.injected);
        found += static_cast<int>(counts.faults);
        mended += static_cast<int>(counts.mended);
        redone += static_cast<int>(counts.redone);
        failed += static_cast<int>(counts.failed);
    }
    std::string describe() const {
        const auto text = [](int count) { return std::to_string(count); };
        return text(struck) + " injected, " + text(found) + " found, " + text(mended) +
               " repaired, " + text(redone) + " redone, " + text(failed) + " failed";
    }
};

inline std::string describe(const InjectedFault& fault) {
    return std::string(to_string(fault.place)) + " row " + std::to_string(fault.row) + " column " +
           std::to_string(fault.column) + " bit " + std::to_string(fault.bit) + ": " +
           std::to_string(fault.before) + " -> " + std::to_string(fault.after);
}

/// Injects faults into the second-highest bit of the exponent, which every check must detect.
template <class T>
InjectOptions strikes_high_bit(FaultPlace place, std::uint64_t seed) {
    InjectOptions inject = strikes(place, seed);
    inject.low_bit = inject.high_bit = 8 * static_cast<int>(sizeof(real_t<T>)) - 3;
    return inject;
}

/// Injects faults into the highest bit of the exponent: the change of any number is far above every
/// bound, or not finite.
template <class T>
InjectOptions strikes_highest_bit(FaultPlace place, std::uint64_t seed) {
    InjectOptions inject = strikes(place, seed);
    inject.low_bit = inject.high_bit = 8 * static_cast<int>(sizeof(real_t<T>)) - 2;
    return inject;
}

}  // namespace quiver::test
