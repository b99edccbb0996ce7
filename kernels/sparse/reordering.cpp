// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/sparse/reordering.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include "blockvec/error.hpp"
#include "blockvec/host_memory.hpp"
#include "blockvec/scalar_list.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/sparse/assemble.hpp"
#include "kernels/sparse/exchange.hpp"
#include "kernels/sparse/row_graph.hpp"
#include "kernels/sparse/row_split.hpp"

namespace quiver {
namespace {

/// A part of the model of RowPartition::automatic. SCOTCH takes 0.1 to 0.2 microseconds per nonzero
/// for each doubling of the ranks; to move the rows takes 0.2 to 0.4.
double partition_seconds(double nonzeros, int ranks) {
    return nonzeros * (0.3e-6 + 0.2e-6 * std::log2(ranks));
}
/// The largest rank's halo, relative to the one before, from which a move of the rows pays.
constexpr double least_gain = 0.7;
/// Bytes of a chunk of columns in to_solver() and to_user().
constexpr std::int64_t moved_bytes = std::int64_t{1} << 25;

struct Renumbered {
    std::int64_t row;
    std::int64_t number;
};
/// The new number of a row for the rank that asked.
struct Answer {
    std::int64_t to;
    std::int64_t row;
    std::int64_t number;
};

/// The halos of rows that are distributed by `map`. Collective.
HaloCounts count_given(const Comm& comm, const RowMap& map,
                       const std::vector<std::int64_t>& row_start,
                       const std::vector<std::int64_t>& column) {
    const std::int64_t first = map.first_row();
    const std::int64_t last = first + map.local_rows();
    std::int64_t halo = 0;
    std::int64_t boundary = 0;
    comm.agree([&] {
        halo = std::ssize(remote_columns(map, column));
        for (std::size_t row = 0; row + 1 < row_start.size(); ++row) {
            const bool inside =
                std::all_of(column.begin() + row_start[row], column.begin() + row_start[row + 1],
                            [&](std::int64_t to) { return to >= first && to < last; });
            boundary += inside ? 0 : 1;
        }
    });
    HaloCounts counts;
    counts.sum = comm.sum(halo);
    counts.most = comm.max(halo);
    counts.boundary_rows = comm.sum(boundary);
    counts.imbalance = HaloCounts::imbalance_of(comm.max(std::ssize(column)),
                                                comm.sum(std::ssize(column)), comm.size());
    return counts;
}

std::string in_milliseconds(double seconds) {
    return std::to_string(std::llround(1e3 * seconds)) + " ms";
}

/// Why `automatic` keeps the given distribution without asking the partitioner; empty if it asks.
/// The same on all ranks.
std::string why_not_graph(const Comm& comm, const HaloCounts& given, double nonzeros,
                          const ReorderingOptions& options, std::size_t element_bytes) {
    const double exchange = static_cast<double>(given.most) * options.expected_products *
                            static_cast<double>(element_bytes) / options.halo_bytes_per_second;
    const double cost = partition_seconds(nonzeros, comm.size());
    if (exchange <= cost) {
        return "a halo of at most " + std::to_string(given.most) + " rows takes about " +
               in_milliseconds(exchange) + " of the solve, the partition " + in_milliseconds(cost);
    }
    int reason = 0;
    if (comm.rank() == 0) {
        reason = !why_no_partitioner().empty()                         ? 1
                 : available_host_bytes() < 2 * graph_bytes * nonzeros ? 2
                                                                       : 0;
    }
    comm.broadcast(&reason, sizeof(reason), 0);
    return reason == 1   ? "SCOTCH is missing in this build or switched off"
           : reason == 2 ? "the graph does not fit into the memory of rank 0"
                         : "";
}

/// The new numbering on rank 0.
struct RowPlan {
    /// Empty if the given numbering remains.
    RowPlacement placement;
    HaloCounts after;
    /// The halo of the largest rank with the partition that `automatic` rejected; -1 without one.
    std::int64_t rejected = -1;
};

RowPlan make_plan(const RowPattern& pattern, const ReorderingOptions& options, RowPartition wanted,
                  const HaloCounts& given, int ranks) {
    const RowPattern graph = graph_of(pattern);
    const std::vector<std::int64_t> order =
        options.order == RowOrder::rcm ? reverse_cuthill_mckee(graph) : std::vector<std::int64_t>();
    RowPlan plan;
    if (wanted != RowPartition::rows) {
        plan.placement =
            place_by_parts(partition_graph(graph, ranks, options.weights), order, ranks);
        plan.after = count_halos(pattern, plan.placement);
        if (wanted == RowPartition::graph ||
            static_cast<double>(plan.after.most) <= least_gain * static_cast<double>(given.most)) {
            return plan;
        }
        plan.rejected = plan.after.most;
        plan.placement = {};
    }
    if (options.order == RowOrder::rcm) {
        plan.placement = place_by_ranges(pattern, order, ranks, options.weights);
        plan.after = count_halos(pattern, plan.placement);
    }
    return plan;
}

/// Sends rank 0's new numbers to the ranks that own the rows.
std::vector<std::int64_t> share_positions(const Comm& comm, const RowMap& map,
                                          const std::vector<std::int64_t>& position) {
    std::vector<std::int64_t> mine(static_cast<std::size_t>(map.local_rows()));
    exchange<Renumbered>(
        comm, std::ssize(position),
        [&](std::int64_t row) {
            return Renumbered{row, position[static_cast<std::size_t>(row)]};
        },
        [&](const Renumbered& item) { return map.owner(item.row); },
        [&](int, std::span<const Renumbered> items) {
            for (const Renumbered& item : items) {
                mine[static_cast<std::size_t>(item.row - map.first_row())] = item.number;
            }
        });
    return mine;
}

/// Sends counts[r] items of `bytes` bytes to each rank r, in rank order. Collective.
void exchange_grouped(const Comm& comm, std::size_t bytes, const std::vector<int>& send_counts,
                      const void* send, const std::vector<int>& receive_counts, void* receive) {
    const auto starts = [](const std::vector<int>& counts) {
        std::vector<int> start(counts.size(), 0);
        std::partial_sum(counts.begin(), counts.end() - 1, start.begin() + 1);
        return start;
    };
    if (comm.size() == 1) {
        std::memcpy(receive, send, static_cast<std::size_t>(send_counts[0]) * bytes);
        return;
    }
    const std::vector<int> send_starts = starts(send_counts);
    const std::vector<int> receive_starts = starts(receive_counts);
    const ItemType type(bytes);
    check_mpi(
        MPI_Alltoallv(send, send_counts.data(), send_starts.data(), type.handle, receive,
                      receive_counts.data(), receive_starts.data(), type.handle, comm.handle()),
        "MPI_Alltoallv");
}

template <class T>
void require_same_rows(const RowMap& map, const CsrRows<T>& a) {
    if (a.map.global_rows() != a.global_cols) {
        throw ShapeError("reordering: a matrix of " + std::to_string(a.map.global_rows()) + " x " +
                         std::to_string(a.global_cols) + " is not square");
    }
    if (!(a.map == map && a.domain_map() == map)) {
        throw ShapeError(std::string("reordering: the ") + (a.map == map ? "columns" : "rows") +
                         " of the matrix are distributed in another way");
    }
}

}  // namespace

const char* to_string(RowPartition partition) {
    return partition == RowPartition::automatic ? "auto"
           : partition == RowPartition::rows    ? "rows"
                                                : "graph";
}

const char* to_string(RowOrder order) {
    return order == RowOrder::rcm ? "rcm" : "none";
}

void require_graph_partitioner() {
    if (const std::string missing = why_no_partitioner(); !missing.empty()) {
        throw UnsupportedError(missing);
    }
}

Reordering::Reordering(RowMap map, ReorderingFacts facts)
    : user_(map), solver_(std::move(map)), facts_(std::move(facts)) {}

Reordering::Reordering(const Comm& comm, RowMap user, RowMap solver,
                       std::vector<std::int64_t> position, ReorderingFacts facts)
    : user_(std::move(user)),
      solver_(std::move(solver)),
      moves_rows_(true),
      position_(std::move(position)),
      facts_(std::move(facts)) {
    const auto ranks = static_cast<std::size_t>(comm.size());
    const std::int64_t rows = user_.global_rows();
    comm.agree([&] {
        if (std::ssize(position_) != user_.local_rows() || solver_.global_rows() != rows ||
            solver_.ranks() != comm.size() || user_.ranks() != comm.size()) {
            throw ShapeError("reordering: " + std::to_string(position_.size()) + " positions for " +
                             std::to_string(user_.local_rows()) + " of " + std::to_string(rows) +
                             " rows, of which the solver has " +
                             std::to_string(solver_.global_rows()));
        }
        for (const std::int64_t row : position_) {
            if (row < 0 || row >= rows) {
                throw InputError("reordering: position " + std::to_string(row) + " of " +
                                 std::to_string(rows) + " rows");
            }
        }
        if (user_.local_rows() > std::numeric_limits<int>::max() ||
            solver_.local_rows() > std::numeric_limits<int>::max()) {
            throw UnsupportedError("reordering: 2^31 or more rows on a rank");
        }
    });
    std::vector<std::vector<std::int64_t>> of_ranks(ranks);
    std::vector<char> is_taken(static_cast<std::size_t>(solver_.local_rows()), 0);
    bool is_bijective = true;
    exchange<std::int64_t>(
        comm, std::ssize(position_),
        [&](std::int64_t i) { return position_[static_cast<std::size_t>(i)]; },
        [&](std::int64_t row) { return solver_.owner(row); },
        [&](int source, std::span<const std::int64_t> items) {
            for (const std::int64_t row : items) {
                const std::int64_t local = row - solver_.first_row();
                is_bijective = is_bijective && is_taken[static_cast<std::size_t>(local)] == 0;
                is_taken[static_cast<std::size_t>(local)] = 1;
                of_ranks[static_cast<std::size_t>(source)].push_back(local);
            }
        });
    comm.agree([&] {
        if (!is_bijective) {
            throw InputError("reordering: two rows have the same position");
        }
        for (const std::vector<std::int64_t>& rows_of_rank : of_ranks) {
            of_solver_.counts.push_back(static_cast<int>(rows_of_rank.size()));
            of_solver_.rows.insert(of_solver_.rows.end(), rows_of_rank.begin(), rows_of_rank.end());
        }
        of_user_.counts.assign(ranks, 0);
        for (const std::int64_t row : position_) {
            ++of_user_.counts[static_cast<std::size_t>(solver_.owner(row))];
        }
        std::vector<std::int64_t> next(ranks, 0);
        std::partial_sum(of_user_.counts.begin(), of_user_.counts.end() - 1, next.begin() + 1);
        of_user_.rows.resize(position_.size());
        for (std::size_t i = 0; i < position_.size(); ++i) {
            const auto owner = static_cast<std::size_t>(solver_.owner(position_[i]));
            of_user_.rows[static_cast<std::size_t>(next[owner]++)] = static_cast<std::int64_t>(i);
        }
    });
}

/// The solver's numbers of ascending columns of other ranks. Collective.
std::vector<std::int64_t> Reordering::new_numbers(const Comm& comm,
                                                  std::span<const std::int64_t> columns) const {
    std::vector<Answer> answers;
    exchange<std::int64_t>(
        comm, std::ssize(columns),
        [&](std::int64_t i) { return columns[static_cast<std::size_t>(i)]; },
        [&](std::int64_t row) { return user_.owner(row); },
        [&](int source, std::span<const std::int64_t> items) {
            for (const std::int64_t row : items) {
                answers.push_back(
                    {source, row, position_[static_cast<std::size_t>(row - user_.first_row())]});
            }
        });
    std::vector<std::int64_t> numbers(columns.size());
    exchange<Answer>(
        comm, std::ssize(answers),
        [&](std::int64_t i) { return answers[static_cast<std::size_t>(i)]; },
        [](const Answer& answer) { return static_cast<int>(answer.to); },
        [&](int, std::span<const Answer> items) {
            for (const Answer& item : items) {
                const auto found = std::lower_bound(columns.begin(), columns.end(), item.row);
                numbers[static_cast<std::size_t>(found - columns.begin())] = item.number;
            }
        });
    return numbers;
}

template <class T>
CsrRows<T> Reordering::permute(const Comm& comm, CsrRows<T> a) const {
    comm.agree([&] { require_same_rows(user_, a); });
    if (!moves_rows()) {
        return a;
    }
    std::vector<std::int64_t> remote;
    comm.agree([&] { remote = remote_columns(user_, a.column); });
    const std::vector<std::int64_t> numbers = new_numbers(comm, remote);
    std::vector<Entry<T>> entries;
    comm.agree([&] {
        entries.reserve(a.column.size());
        const std::int64_t first = user_.first_row();
        const std::int64_t last = first + user_.local_rows();
        for (std::size_t row = 0; row < position_.size(); ++row) {
            for (auto e = static_cast<std::size_t>(a.row_start[row]);
                 e < static_cast<std::size_t>(a.row_start[row + 1]); ++e) {
                const std::int64_t column = a.column[e];
                const auto found = std::lower_bound(remote.begin(), remote.end(), column);
                const std::int64_t number =
                    column >= first && column < last
                        ? position_[static_cast<std::size_t>(column - first)]
                        : numbers[static_cast<std::size_t>(found - remote.begin())];
                entries.push_back({position_[row], number, a.value[e]});
            }
        }
    });
    const Symmetry symmetry = a.symmetry;
    a = {};
    return rows_from_entries<T>(comm, solver_, solver_, symmetry, std::move(entries));
}

template <class T>
void Reordering::require_blocks(BlockView<const T> user, BlockView<const T> solver) const {
    if (user.rows != user_.local_rows() || solver.rows != solver_.local_rows() ||
        user.cols != solver.cols) {
        const auto shape = [](std::int64_t rows, std::int64_t cols) {
            return std::to_string(rows) + " x " + std::to_string(cols);
        };
        throw ShapeError("reordering: blocks of " + shape(user.rows, user.cols) +
                         " in the user's numbering and " + shape(solver.rows, solver.cols) +
                         " in the solver's, but this rank has " +
                         std::to_string(user_.local_rows()) + " and " +
                         std::to_string(solver_.local_rows()) + " rows");
    }
}

template <class T>
void Reordering::to_solver(Context& ctx, std::type_identity_t<BlockView<const T>> x,
                           BlockView<T> y) const {
    ctx.comm().agree([&] { require_blocks<T>(x, y); });
    move_rows(ctx, of_user_, x, of_solver_, y);
}

template <class T>
void Reordering::to_user(Context& ctx, std::type_identity_t<BlockView<const T>> y,
                         BlockView<T> x) const {
    ctx.comm().agree([&] { require_blocks<T>(x, y); });
    move_rows(ctx, of_solver_, y, of_user_, x);
}

template <class T>
BlockVector<T> Reordering::to_user(Context& ctx, std::type_identity_t<BlockView<const T>> y) const {
    BlockVector<T> x;
    ctx.comm().agree([&] { x = BlockVector<T>(ctx, user_, y.cols, 0, Place::host); });
    to_user<T>(ctx, y, x.view());
    return x;
}

template <class T>
void Reordering::move_rows(Context& ctx, const Side& from, BlockView<const T> x, const Side& to,
                           BlockView<T> y) const {
    if (!moves_rows()) {
        copy(ctx, x, y);
        return;
    }
    const Comm& comm = ctx.comm();
    std::int64_t most_rows = 1;
    for (int rank = 0; rank < comm.size(); ++rank) {
        most_rows = std::max({most_rows, user_.local_rows(rank), solver_.local_rows(rank)});
    }
    const auto step = static_cast<int>(std::clamp<std::int64_t>(
        moved_bytes / (most_rows * static_cast<std::int64_t>(sizeof(T))), 1, std::max(x.cols, 1)));
    std::vector<T> plain;
    std::vector<T> sent;
    std::vector<T> received;
    for (int first = 0; first < x.cols; first += step) {
        const int cols = std::min(step, x.cols - first);
        const auto width = static_cast<std::size_t>(cols);
        comm.agree([&] {
            plain.resize(static_cast<std::size_t>(std::max(x.rows, y.rows)) * width);
            sent.resize(static_cast<std::size_t>(x.rows) * width);
            received.resize(static_cast<std::size_t>(y.rows) * width);
            copy(ctx, x.columns(first, cols), BlockView<T>(plain.data(), x.rows, cols, cols));
            for (std::size_t i = 0; i < from.rows.size(); ++i) {
                std::copy_n(plain.begin() + from.rows[i] * cols, cols,
                            sent.begin() + static_cast<std::ptrdiff_t>(i) * cols);
            }
        });
        exchange_grouped(comm, width * sizeof(T), from.counts, sent.data(), to.counts,
                         received.data());
        comm.agree([&] {
            for (std::size_t i = 0; i < to.rows.size(); ++i) {
                std::copy_n(received.begin() + static_cast<std::ptrdiff_t>(i) * cols, cols,
                            plain.begin() + to.rows[i] * cols);
            }
            copy(ctx, BlockView<const T>(plain.data(), y.rows, cols, cols), y.columns(first, cols));
        });
    }
}

template <class T>
Reordering plan_reordering(const Comm& comm, const CsrRows<T>& a, const ReorderingOptions& options,
                           const CsrRows<T>* b) {
    const auto begin = std::chrono::steady_clock::now();
    comm.agree([&] {
        require_same_rows(a.map, a);
        if (b != nullptr) {
            require_same_rows(a.map, *b);
        }
    });
    RowPartition wanted = comm.size() == 1 ? RowPartition::rows : options.partition;
    if (wanted == RowPartition::rows && options.order == RowOrder::natural) {
        return Reordering(a.map);
    }
    RowPattern pattern;
    comm.agree([&] {
        if (wanted == RowPartition::graph && comm.rank() == 0) {
            require_graph_partitioner();
        }
        if (b != nullptr) {
            pattern = pattern_of(a, b);
        }
    });
    ReorderingFacts facts;
    facts.before = b == nullptr ? count_given(comm, a.map, a.row_start, a.column)
                                : count_given(comm, a.map, pattern.row_start, pattern.column);
    const auto nonzeros =
        static_cast<double>(comm.sum(b == nullptr ? std::ssize(a.column) : pattern.entries()));
    const auto passed = [&] {
        const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
        return comm.max(time.count());
    };
    if (wanted == RowPartition::automatic) {
        facts.reason = why_not_graph(comm, *facts.before, nonzeros, options, sizeof(T));
        wanted = facts.reason.empty() ? wanted : RowPartition::rows;
    }
    facts.order = options.order;
    if (wanted == RowPartition::rows && options.order == RowOrder::natural) {
        facts.seconds = passed();
        return Reordering(a.map, std::move(facts));
    }
    if (b == nullptr) {
        comm.agree([&] { pattern = pattern_of(a); });
    }
    require_host_memory(comm, comm.rank() == 0 ? graph_bytes * nonzeros : 0,
                        "reordering: the graph of the rows takes");
    pattern = pattern_on_rank_0(comm, pattern);
    RowPlan plan;
    comm.agree([&] {
        if (comm.rank() == 0) {
            plan = make_plan(pattern, options, wanted, *facts.before, comm.size());
        }
    });
    pattern = {};
    comm.broadcast(&plan.after, sizeof(plan.after), 0);
    comm.broadcast(&plan.rejected, sizeof(plan.rejected), 0);
    if (plan.rejected >= 0) {
        facts.reason = "the graph partitioner only reduces the halo of the largest rank from " +
                       std::to_string(facts.before->most) + " to " + std::to_string(plan.rejected) +
                       " rows";
    } else if (wanted == RowPartition::automatic) {
        facts.reason = "the halo of the largest rank falls from " +
                       std::to_string(facts.before->most) + " to " +
                       std::to_string(plan.after.most) + " rows";
    }
    facts.partition = wanted == RowPartition::rows || plan.rejected >= 0 ? RowPartition::rows
                                                                         : RowPartition::graph;
    if (plan.rejected >= 0 && options.order == RowOrder::natural) {
        facts.seconds = passed();
        return Reordering(a.map, std::move(facts));
    }
    facts.after = plan.after;
    plan.placement.offsets.resize(static_cast<std::size_t>(comm.size()) + 1);
    comm.broadcast(plan.placement.offsets.data(),
                   plan.placement.offsets.size() * sizeof(std::int64_t), 0);
    std::vector<std::int64_t> position = share_positions(comm, a.map, plan.placement.position);
    facts.seconds = passed();
    return Reordering(comm, a.map, RowMap(comm.rank(), std::move(plan.placement.offsets)),
                      std::move(position), std::move(facts));
}

#define QUIVER_INSTANTIATE(T)                                                                     \
    template CsrRows<T> Reordering::permute(const Comm&, CsrRows<T>) const;                       \
    template void Reordering::to_solver(Context&, std::type_identity_t<BlockView<const T>>,       \
                                        BlockView<T>) const;                                      \
    template void Reordering::to_user(Context&, std::type_identity_t<BlockView<const T>>,         \
                                      BlockView<T>) const;                                        \
    template BlockVector<T> Reordering::to_user(Context&,                                         \
                                                std::type_identity_t<BlockView<const T>>) const;  \
    template Reordering plan_reordering(const Comm&, const CsrRows<T>&, const ReorderingOptions&, \
                                        const CsrRows<T>*);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
