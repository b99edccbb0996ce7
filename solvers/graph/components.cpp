// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/graph/components.hpp"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <span>
#include <utility>

#include "solvers/graph/index.hpp"

namespace quiver {
namespace {

using graph::at;
using graph::Index;

/// Disjoint sets of 0 .. size - 1. The root of a set is its least element. Several threads may call
/// unite() and root() at once: a link always goes from a root to a smaller element.
class DisjointSets {
  public:
    explicit DisjointSets(Index size) : parent_(at(size)) {
        std::iota(parent_.begin(), parent_.end(), Index{0});
    }
    Index root(Index i) {
        for (;;) {
            const Index above = parent(i).load(std::memory_order_relaxed);
            if (above == i) {
                return i;
            }
            // The search halves the path, so that later searches are short.
            const Index next = parent(above).load(std::memory_order_relaxed);
            parent(i).store(next, std::memory_order_relaxed);
            i = next;
        }
    }
    void unite(Index a, Index b) {
        for (;;) {
            a = root(a);
            b = root(b);
            if (a == b) {
                return;
            }
            if (a < b) {
                std::swap(a, b);
            }
            Index still = a;
            if (parent(a).compare_exchange_strong(still, b, std::memory_order_relaxed)) {
                return;
            }
        }
    }

  private:
    std::atomic_ref<Index> parent(Index i) { return std::atomic_ref<Index>(parent_[at(i)]); }
    std::vector<Index> parent_;
};

/// The numbers of all ranks, in rank order, on every rank.
std::vector<Index> gather_all(const Comm& comm, const std::vector<Index>& own) {
    if (comm.size() == 1) {
        return own;
    }
    const std::vector<Index> counts = comm.gather(std::ssize(own));
    const auto before = counts.begin() + comm.rank();
    std::vector<Index> all(at(std::accumulate(counts.begin(), counts.end(), Index{0})));
    std::copy(own.begin(), own.end(),
              all.begin() + std::accumulate(counts.begin(), before, Index{0}));
    comm.sum(std::span<Index>(all));
    return all;
}

/// A root on this rank, and a row of an earlier rank that belongs to the same component.
using Link = std::pair<Index, Index>;

/// Unites the rows of this rank; returns the links to rows of earlier ranks, without repetitions.
template <class T>
std::vector<Link> unite_own_rows(const CsrRows<T>& rows, DisjointSets& sets, int threads) {
    const Index first = rows.map.first_row();
    std::vector<Link> links;
#pragma omp parallel for num_threads(threads) schedule(static)
    for (Index row = 0; row < rows.map.local_rows(); ++row) {
        // The matrix is symmetric: another row has the entries to the right of the diagonal.
        for (Index e = rows.row_start[at(row)];
             e < rows.row_start[at(row) + 1] && rows.column[at(e)] < first + row; ++e) {
            if (rows.value[at(e)] != T(0) && rows.column[at(e)] >= first) {
                sets.unite(row, rows.column[at(e)] - first);
            }
        }
    }
    for (Index row = 0; row < rows.map.local_rows(); ++row) {
        for (Index e = rows.row_start[at(row)];
             e < rows.row_start[at(row) + 1] && rows.column[at(e)] < first; ++e) {
            if (rows.value[at(e)] != T(0)) {
                links.emplace_back(first + sets.root(row), rows.column[at(e)]);
            }
        }
    }
    std::sort(links.begin(), links.end());
    links.erase(std::unique(links.begin(), links.end()), links.end());
    return links;
}

/// Joins the sets of different ranks. For each component with sets on several ranks it knows the
/// first row.
class RootsOverRanks {
  public:
    RootsOverRanks(const Comm& comm, const RowMap& map, const std::vector<Link>& links,
                   DisjointSets& own)
        : sets_(0) {
        std::vector<Index> ends;
        for (const auto& [root, row] : links) {
            ends.insert(ends.end(), {root, row});
        }
        ends = gather_all(comm, ends);
        std::vector<Index> roots(ends.size() / 2);
        const Index first = map.first_row();
        for (std::size_t i = 0; i < roots.size(); ++i) {
            const Index row = ends[2 * i + 1] - first;
            roots[i] = row >= 0 && row < map.local_rows() ? first + own.root(row) : 0;
        }
        comm.sum(std::span<Index>(roots));
        for (std::size_t i = 0; i < roots.size(); ++i) {
            ends[2 * i + 1] = roots[i];
        }
        numbers_ = ends;
        std::sort(numbers_.begin(), numbers_.end());
        numbers_.erase(std::unique(numbers_.begin(), numbers_.end()), numbers_.end());
        sets_ = DisjointSets(std::ssize(numbers_));
        for (std::size_t i = 0; i < roots.size(); ++i) {
            sets_.unite(position(ends[2 * i]), position(ends[2 * i + 1]));
        }
    }
    /// The first row of the component of a root of this rank.
    Index operator()(Index root) {
        const Index found = position(root);
        const bool linked = found < std::ssize(numbers_) && numbers_[at(found)] == root;
        return linked ? numbers_[at(sets_.root(found))] : root;
    }

  private:
    Index position(Index root) const {
        return std::lower_bound(numbers_.begin(), numbers_.end(), root) - numbers_.begin();
    }
    std::vector<Index> numbers_;  // ascending
    DisjointSets sets_;           // of positions in numbers_
};

/// The first row and the size of each component, in the order of the components.
std::vector<Link> sized_components(const Comm& comm, const std::vector<Index>& own) {
    const std::vector<Index> all = gather_all(comm, own);
    std::vector<Link> parts;
    for (std::size_t i = 0; i < all.size(); i += 2) {
        parts.emplace_back(all[i], all[i + 1]);
    }
    std::sort(parts.begin(), parts.end());
    std::vector<Link> components;
    for (const auto& [first, size] : parts) {
        if (components.empty() || components.back().first != first) {
            components.emplace_back(first, 0);
        }
        components.back().second += size;
    }
    std::stable_sort(components.begin(), components.end(),
                     [](const Link& a, const Link& b) { return a.second > b.second; });
    return components;
}

}  // namespace

template <class T>
GraphComponents connected_components(const Comm& comm, const CsrRows<T>& adjacency, int threads) {
    const Index rows = adjacency.map.local_rows();
    const Index first = adjacency.map.first_row();
    DisjointSets sets(rows);
    const std::vector<Link> links = unite_own_rows(adjacency, sets, threads);
    RootsOverRanks over_ranks(comm, adjacency.map, links, sets);
    std::vector<Index> count(at(rows));
    for (Index row = 0; row < rows; ++row) {
        ++count[at(sets.root(row))];
    }
    // first_row[root]: the first row of the component, over all ranks.
    std::vector<Index> first_row(at(rows)), own;
    for (Index root = 0; root < rows; ++root) {
        if (count[at(root)] > 0) {
            first_row[at(root)] = over_ranks(first + root);
            own.insert(own.end(), {first_row[at(root)], count[at(root)]});
        }
    }
    const std::vector<Link> components = sized_components(comm, own);
    std::vector<Link> numbers;  // first rows, ascending, with the numbers of their components
    GraphComponents result;
    for (const auto& [row, size] : components) {
        numbers.emplace_back(row, std::ssize(result.sizes));
        result.sizes.push_back(size);
    }
    std::sort(numbers.begin(), numbers.end());
    std::vector<Index>& number = count;
    for (Index root = 0; root < rows; ++root) {
        if (count[at(root)] > 0) {
            number[at(root)] =
                std::lower_bound(numbers.begin(), numbers.end(), Link(first_row[at(root)], 0))
                    ->second;
        }
    }
    for (Index row = 0; row < rows; ++row) {
        result.labels.push_back(number[at(sets.root(row))]);
    }
    return result;
}

template GraphComponents connected_components(const Comm&, const CsrRows<float>&, int);
template GraphComponents connected_components(const Comm&, const CsrRows<double>&, int);

}  // namespace quiver
