// SPDX-License-Identifier: BSD-3-Clause
#include "apps/hermitian_check.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "apps/mix.hpp"
#include "blockvec/scalar.hpp"
#include "blockvec/scalar_list.hpp"
#include "kernels/sparse/exchange.hpp"

namespace quiver::apps {
namespace {

constexpr int sums = 4;

/// Converts sixteen bits of the word to a number in (-1, 1) that is never 0.
double coefficient(std::uint64_t word, int index) {
    const auto bits = static_cast<double>((word >> (16 * index)) & 0xffffu);
    return (2 * bits + 1) / 65536 - 1;
}

/// The largest real or imaginary part of an entry on any rank; infinity if one is not finite.
template <class T>
double largest_part(const Comm& comm, const CsrRows<T>& rows, int threads) {
    double largest = 0;
#pragma omp parallel for num_threads(threads) schedule(static) reduction(max : largest)
    for (std::size_t e = 0; e < rows.value.size(); ++e) {
        const std::complex<double> value(rows.value[e]);
        largest = is_finite(value)
                      ? std::max({largest, std::abs(value.real()), std::abs(value.imag())})
                      : std::numeric_limits<double>::infinity();
    }
    return comm.max(largest);
}

/// Real and imaginary parts of the sums of A / scale, then the square of its norm.
using RandomSums = std::array<double, 2 * sums + 1>;

void add(const RandomSums& more, RandomSums& total) {
    for (std::size_t s = 0; s < total.size(); ++s) {
        total[s] += more[s];
    }
}

template <class T>
RandomSums sums_of_row(const CsrRows<T>& rows, std::int64_t row, double scale) {
    const std::int64_t i = rows.map.first_row() + row;
    RandomSums in_row{};
    for (auto e = static_cast<std::size_t>(rows.row_start[static_cast<std::size_t>(row)]);
         e < static_cast<std::size_t>(rows.row_start[static_cast<std::size_t>(row) + 1]); ++e) {
        const std::int64_t j = rows.column[e];
        std::complex<double> value = std::complex<double>(rows.value[e]) / scale;
        in_row.back() += abs_squared(value);
        if (i > j) {
            value = -std::conj(value);
        } else if (i == j) {
            // ||A - A^H||_F^2 contains the diagonal difference 2 i Im(a) once, but every other
            // difference twice. Therefore the diagonal difference is divided by sqrt(2).
            value = {0, std::sqrt(2.0) * value.imag()};
        }
        const std::uint64_t word = mix(std::min(i, j), std::max(i, j));
        for (int s = 0; s < sums; ++s) {
            const double r = coefficient(word, s);
            in_row[static_cast<std::size_t>(2 * s)] += r * value.real();
            in_row[static_cast<std::size_t>(2 * s + 1)] += r * value.imag();
        }
    }
    return in_row;
}

/// The sums over this rank's rows, block by block, so that they do not depend on the threads.
template <class T>
RandomSums sums_of_rows(const CsrRows<T>& rows, double scale, int threads) {
    constexpr std::int64_t rows_of_block = 1024;
    const std::int64_t count = rows.map.local_rows();
    std::vector<RandomSums> of_block(
        static_cast<std::size_t>((count + rows_of_block - 1) / rows_of_block));
#pragma omp parallel for num_threads(threads) schedule(static)
    for (std::size_t block = 0; block < of_block.size(); ++block) {
        RandomSums total{};
        const std::int64_t begin = static_cast<std::int64_t>(block) * rows_of_block;
        for (std::int64_t row = begin; row < std::min(begin + rows_of_block, count); ++row) {
            add(sums_of_row(rows, row, scale), total);
        }
        of_block[block] = total;
    }
    RandomSums total{};
    for (const RandomSums& each : of_block) {
        add(each, total);
    }
    return total;
}

/// An entry, sent to the rank that has the transposed entry.
template <class T>
struct Travelling {
    std::int64_t row;
    std::int64_t column;
    T value;
};

/// The entry at (row, column) in a row of this rank; null if it is not stored.
template <class T>
const T* find_entry(const CsrRows<T>& rows, std::int64_t row, std::int64_t column) {
    const auto local = static_cast<std::size_t>(row - rows.map.first_row());
    const auto begin = rows.column.begin() + rows.row_start[local];
    const auto end = rows.column.begin() + rows.row_start[local + 1];
    const auto found = std::lower_bound(begin, end, column);
    return found == end || *found != column ? nullptr
                                            : rows.value.data() + (found - rows.column.begin());
}

}  // namespace

template <class T>
HermitianCheck check_hermitian(const Comm& comm, const CsrRows<T>& rows, int threads) {
    HermitianCheck result;
    const double scale = largest_part(comm, rows, threads);
    if (scale == 0 || !std::isfinite(scale)) {
        result.norm = scale;
        result.asymmetry = scale;
        return result;
    }
    RandomSums total{};
    comm.agree([&] { total = sums_of_rows(rows, scale, threads); });
    comm.sum(std::span<double>(total));
    double squares = 0;
    for (std::size_t s = 0; s + 1 < total.size(); ++s) {
        squares += total[s] * total[s];
    }
    result.norm = scale * std::sqrt(total.back());
    result.asymmetry = scale * std::sqrt(6 * squares / sums);
    result.tolerance = 100 * static_cast<double>(epsilon_v<T>) * result.norm;
    return result;
}

template <class T>
UnequalPair<T> most_unequal_pair(const Comm& comm, const CsrRows<T>& rows) {
    UnequalPair<T> worst;
    double largest = -1;
    const auto place = [](const auto& pair) { return std::pair(pair.row, pair.column); };
    const auto consider = [&](const Travelling<T>& item) {
        const T* mirrored = find_entry(rows, item.column, item.row);
        UnequalPair<T> pair{item.row, item.column, item.value, T(0), mirrored != nullptr};
        if (mirrored != nullptr) {
            pair.transposed = conjugate(*mirrored);
        }
        const double gap =
            std::abs(std::complex<double>(pair.entry) - std::complex<double>(pair.transposed));
        if (gap > largest || (gap == largest && place(pair) < place(worst))) {
            largest = gap;
            worst = pair;
        }
    };
    std::size_t row = 0;
    exchange<Travelling<T>>(
        comm, rows.nonzeros(),
        [&](std::int64_t e) {
            // exchange() asks for the entries in ascending order, twice in each round.
            while (rows.row_start[row + 1] <= e) {
                ++row;
            }
            while (rows.row_start[row] > e) {
                --row;
            }
            const auto index = static_cast<std::size_t>(e);
            return Travelling<T>{rows.map.first_row() + static_cast<std::int64_t>(row),
                                 rows.column[index], rows.value[index]};
        },
        [&](const Travelling<T>& item) { return rows.map.owner(item.column); },
        [&](int, std::span<const Travelling<T>> items) {
            std::for_each(items.begin(), items.end(), consider);
        });

    const double all_largest = comm.max(largest);
    const auto all_rows = comm.gather(largest == all_largest ? worst.row : rows.global_cols);
    const auto all_columns = comm.gather(largest == all_largest ? worst.column : 0);
    std::size_t winner = 0;
    for (std::size_t rank = 1; rank < all_rows.size(); ++rank) {
        if (std::pair(all_rows[rank], all_columns[rank]) <
            std::pair(all_rows[winner], all_columns[winner])) {
            winner = rank;
        }
    }
    comm.broadcast(&worst, sizeof(worst), static_cast<int>(winner));
    return worst;
}

#define QUIVER_INSTANTIATE(T)                                                     \
    template HermitianCheck check_hermitian(const Comm&, const CsrRows<T>&, int); \
    template UnequalPair<T> most_unequal_pair(const Comm&, const CsrRows<T>&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver::apps
