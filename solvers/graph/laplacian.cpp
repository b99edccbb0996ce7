// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/graph/laplacian.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <utility>

#include "blockvec/error.hpp"
#include "blockvec/number_text.hpp"
#include "blockvec/scalar.hpp"
#include "kernels/sparse/assemble.hpp"
#include "kernels/sparse/exchange.hpp"
#include "solvers/graph/index.hpp"

namespace quiver {
namespace {

using graph::at;
using graph::Index;

std::string entry_text(Index row, Index column, double value) {
    return "a(" + std::to_string(row) + ", " + std::to_string(column) +
           ") = " + number_text(value, 6);
}

/// Throws InputError, on this rank, for the first weight that is negative or not finite.
template <class T>
void require_weights(const CsrRows<T>& rows, int threads) {
    const auto is_bad = [](T value) { return !(value >= T(0) && std::isfinite(value)); };
    bool good = true;
#pragma omp parallel for num_threads(threads) schedule(static) reduction(&& : good)
    for (std::size_t e = 0; e < rows.value.size(); ++e) {
        good = good && !is_bad(rows.value[e]);
    }
    if (good) {
        return;
    }
    const Index e = std::find_if(rows.value.begin(), rows.value.end(), is_bad) - rows.value.begin();
    const Index row =
        std::upper_bound(rows.row_start.begin(), rows.row_start.end(), e) - rows.row_start.begin();
    throw InputError("graph: " +
                     entry_text(rows.map.first_row() + row - 1, rows.column[at(e)],
                                static_cast<double>(rows.value[at(e)])) +
                     " (counted from 0), but the weight of an edge is a finite number from 0 on");
}

/// Two rounds of the finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
std::uint64_t scrambled(std::uint64_t word) {
    for (int round = 0; round < 2; ++round) {
        word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9u;
        word = (word ^ (word >> 27)) * 0x94d049bb133111ebu;
        word ^= word >> 31;
    }
    return word;
}

/// True if a_ij = a_ji for all i, j: the sum of a hash of (i, j, a_ij) over i < j equals that of
/// (j, i, a_ij) over i > j. For a random hash an unsymmetric matrix has equal sums with probability
/// 2^-64. Collective.
template <class T>
bool is_exactly_symmetric(const Comm& comm, const CsrRows<T>& rows, int threads) {
    std::uint64_t sum = 0;
#pragma omp parallel for num_threads(threads) schedule(static) reduction(+ : sum)
    for (Index row = 0; row < rows.map.local_rows(); ++row) {
        const Index i = rows.map.first_row() + row;
        for (Index e = rows.row_start[at(row)]; e < rows.row_start[at(row) + 1]; ++e) {
            const Index j = rows.column[at(e)];
            if (i == j || rows.value[at(e)] == T(0)) {
                continue;
            }
            const std::uint64_t word = scrambled(
                scrambled(static_cast<std::uint64_t>(std::min(i, j)) * 0x9e3779b97f4a7c15u +
                          static_cast<std::uint64_t>(std::max(i, j))) +
                std::bit_cast<std::uint64_t>(static_cast<double>(rows.value[at(e)])));
            sum += i < j ? word : ~word + 1;
        }
    }
    return comm.sum(std::bit_cast<Index>(sum)) == 0;
}

/// (A + A^T) / 2. Collective.
template <class T>
CsrRows<T> symmetrised(const Comm& comm, const CsrRows<T>& rows) {
    std::vector<Entry<T>> entries;
    comm.agree([&] {
        entries.reserve(2 * rows.value.size());
        for (Index row = 0; row < rows.map.local_rows(); ++row) {
            const Index i = rows.map.first_row() + row;
            for (Index e = rows.row_start[at(row)]; e < rows.row_start[at(row) + 1]; ++e) {
                const T half = rows.value[at(e)] / 2;
                entries.push_back({i, rows.column[at(e)], half});
                entries.push_back({rows.column[at(e)], i, half});
            }
        }
    });
    return rows_from_entries<T>(comm, rows.map, rows.map, Symmetry::symmetric, std::move(entries));
}

/// Throws InputError, on this rank, for the first entry a_ij that differs from a_ji by more than
/// rounding. `half_sum` is (A + A^T) / 2.
template <class T>
void require_symmetric(const CsrRows<T>& rows, const CsrRows<T>& half_sum) {
    const T allowed = 50 * std::numeric_limits<T>::epsilon();
    for (Index row = 0; row < rows.map.local_rows(); ++row) {
        Index other = half_sum.row_start[at(row)];
        for (Index e = rows.row_start[at(row)]; e < rows.row_start[at(row) + 1]; ++e, ++other) {
            const Index j = rows.column[at(e)];
            while (half_sum.column[at(other)] < j) {
                ++other;
            }
            const T value = rows.value[at(e)], mean = half_sum.value[at(other)];
            if (std::abs(value - mean) > allowed * mean) {
                const Index i = rows.map.first_row() + row;
                throw InputError(
                    "graph: the edges are directed: " +
                    entry_text(i, j, static_cast<double>(value)) + ", but " +
                    entry_text(j, i, static_cast<double>(2 * mean - value)) +
                    " (counted from 0); request (A + A^T) / 2 by --symmetrise (symmetrise=True)");
            }
        }
    }
}

/// A row that a rank needs of another rank, and its number.
struct NumberOfRow {
    Index row;
    int to;
    double value;
};

/// The numbers of the rows of other ranks that have columns in this rank's rows.
class NumbersOfColumns {
  public:
    template <class T>
    NumbersOfColumns(const Comm& comm, const CsrRows<T>& rows, const std::vector<double>& own)
        : first_(rows.map.first_row()), own_(own) {
        const Index end = first_ + rows.map.local_rows();
        std::copy_if(rows.column.begin(), rows.column.end(), std::back_inserter(rows_),
                     [&](Index j) { return j < first_ || j >= end; });
        std::sort(rows_.begin(), rows_.end());
        rows_.erase(std::unique(rows_.begin(), rows_.end()), rows_.end());
        values_.resize(rows_.size());
        std::vector<NumberOfRow> replies;
        const auto ask = [&](Index i) { return NumberOfRow{rows_[at(i)], comm.rank(), 0}; };
        exchange<NumberOfRow>(
            comm, std::ssize(rows_), ask,
            [&](const NumberOfRow& item) { return rows.map.owner(item.row); },
            [&](int, std::span<const NumberOfRow> items) {
                for (const NumberOfRow& item : items) {
                    replies.push_back({item.row, item.to, own[at(item.row - first_)]});
                }
            });
        exchange<NumberOfRow>(
            comm, std::ssize(replies), [&](Index i) { return replies[at(i)]; },
            [](const NumberOfRow& item) { return item.to; },
            [&](int, std::span<const NumberOfRow> items) {
                for (const NumberOfRow& item : items) {
                    values_[place(item.row)] = item.value;
                }
            });
    }
    double operator()(Index column) const {
        return column >= first_ && column < first_ + std::ssize(own_) ? own_[at(column - first_)]
                                                                      : values_[place(column)];
    }

  private:
    std::size_t place(Index row) const {
        return at(std::lower_bound(rows_.begin(), rows_.end(), row) - rows_.begin());
    }
    Index first_;
    const std::vector<double>& own_;
    std::vector<Index> rows_;  // ascending
    std::vector<double> values_;
};

/// The sums of the weights of each row without the diagonal, and in `entries` their number.
template <class T>
std::vector<double> degrees_of(const CsrRows<T>& rows, std::vector<Index>& entries, int threads) {
    std::vector<double> degrees(at(rows.map.local_rows()));
    entries.assign(degrees.size(), 0);
#pragma omp parallel for num_threads(threads) schedule(static)
    for (Index row = 0; row < rows.map.local_rows(); ++row) {
        for (Index e = rows.row_start[at(row)]; e < rows.row_start[at(row) + 1]; ++e) {
            if (rows.column[at(e)] != rows.map.first_row() + row && rows.value[at(e)] != T(0)) {
                degrees[at(row)] += static_cast<double>(rows.value[at(e)]);
                ++entries[at(row)];
            }
        }
    }
    const double most = static_cast<double>(std::numeric_limits<T>::max()) / 4;
    const auto large =
        std::find_if(degrees.begin(), degrees.end(), [&](double d) { return !(d <= most); });
    if (large != degrees.end()) {
        throw InputError("graph: the weights of node " +
                         std::to_string(rows.map.first_row() + (large - degrees.begin())) +
                         " (counted from 0) add up to more than " + number_text(most) +
                         "; divide all weights by a common factor");
    }
    return degrees;
}

}  // namespace

template <class T>
void require_graph(const Comm& comm, CsrRows<T>& adjacency, bool symmetrise, int threads) {
    if (adjacency.map.global_rows() != adjacency.global_cols) {
        throw_collective(ErrorKind::input, "graph: the adjacency matrix is " +
                                               std::to_string(adjacency.map.global_rows()) + " x " +
                                               std::to_string(adjacency.global_cols) +
                                               ", but it must be square");
    }
    comm.agree([&] { require_weights(adjacency, threads); });
    if (is_exactly_symmetric(comm, adjacency, threads)) {
        return;
    }
    CsrRows<T> half_sum = symmetrised(comm, adjacency);
    comm.agree([&] {
        if (!symmetrise) {
            require_symmetric(adjacency, half_sum);
        }
    });
    adjacency = std::move(half_sum);
}

template <class T>
GraphLaplacian<T> form_laplacian(const Comm& comm, const CsrRows<T>& adjacency, bool normalised,
                                 int threads) {
    GraphLaplacian<T> result;
    const RowMap& map = adjacency.map;
    std::vector<double> degrees;
    std::vector<Index> entries;
    comm.agree([&] { degrees = degrees_of(adjacency, entries, threads); });
    result.isolated = comm.sum(std::count(entries.begin(), entries.end(), Index{0}));
    const double most =
        comm.max(degrees.empty() ? 0.0 : *std::max_element(degrees.begin(), degrees.end()));
    result.norm = normalised ? (most > 0 ? 2 : 0) : 2 * most;
    result.root_degree.assign(degrees.size(), 1);
    if (normalised) {
        std::transform(degrees.begin(), degrees.end(), result.root_degree.begin(),
                       [](double d) { return d > 0 ? std::sqrt(d) : 1; });
    }
    const NumbersOfColumns root_of(comm, adjacency, result.root_degree);
    comm.agree([&] {
        CsrRows<T>& rows = result.rows;
        rows.map = map;
        rows.global_cols = adjacency.global_cols;
        rows.symmetry = Symmetry::symmetric;
        rows.row_start.resize(degrees.size() + 1);
        for (std::size_t row = 0; row < degrees.size(); ++row) {
            rows.row_start[row + 1] =
                rows.row_start[row] + entries[row] + (entries[row] > 0 ? 1 : 0);
        }
        rows.column.resize(at(rows.row_start.back()));
        rows.value.resize(rows.column.size());
#pragma omp parallel for num_threads(threads) schedule(static)
        for (Index row = 0; row < map.local_rows(); ++row) {
            const Index i = map.first_row() + row;
            const double root = result.root_degree[at(row)];
            auto to = at(rows.row_start[at(row)]);
            const auto end = at(rows.row_start[at(row) + 1]);
            const auto put = [&](Index column, double value) {
                rows.column[to] = column;
                rows.value[to++] = static_cast<T>(value);
            };
            bool before = to < end;  // the diagonal is still to come
            for (Index e = adjacency.row_start[at(row)]; e < adjacency.row_start[at(row) + 1];
                 ++e) {
                const Index j = adjacency.column[at(e)];
                if (before && j >= i) {
                    put(i, normalised ? 1 : degrees[at(row)]);
                    before = false;
                }
                if (j != i && adjacency.value[at(e)] != T(0)) {
                    // The product of the roots is the same for (i, j) and (j, i).
                    put(j, -static_cast<double>(adjacency.value[at(e)]) / (root * root_of(j)));
                }
            }
            if (before) {
                put(i, normalised ? 1 : degrees[at(row)]);
            }
        }
    });
    return result;
}

#define QUIVER_INSTANTIATE(T)                                         \
    template void require_graph(const Comm&, CsrRows<T>&, bool, int); \
    template GraphLaplacian<T> form_laplacian(const Comm&, const CsrRows<T>&, bool, int);
QUIVER_INSTANTIATE(float)
QUIVER_INSTANTIATE(double)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
