// SPDX-License-Identifier: BSD-3-Clause
// Reordering: a new numbering of the rows, in which ranks need fewer rows from each other.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "blockvec/block_vector.hpp"
#include "blockvec/context.hpp"
#include "blockvec/row_map.hpp"
#include "blockvec/view.hpp"
#include "kernels/sparse/sparse_matrix.hpp"

namespace quiver {

/// How rows are assigned to ranks. `rows`: in contiguous ranges. `graph`: by the graph partitioner
/// SCOTCH, which keeps neighbours together. `automatic`: as `graph` where that pays, see
/// plan_reordering().
enum class RowPartition : std::uint8_t { automatic, rows, graph };

/// The order of the rows before they are cut into ranges, or within a rank: natural, or reverse
/// Cuthill-McKee, which brings neighbours near each other.
enum class RowOrder : std::uint8_t { natural, rcm };

/// "auto", "rows", "graph".
const char* to_string(RowPartition partition);
/// "none", "rcm".
const char* to_string(RowOrder order);

/// The version of SCOTCH in this build, as "7.0.3"; empty without SCOTCH.
const char* scotch_version();
/// Throws UnsupportedError, which names the cure, if SCOTCH is not in this build or the environment
/// variable QUIVER_SCOTCH is `none`.
void require_graph_partitioner();

/// The rows of X that ranks receive in one product Y = A X.
struct HaloCounts {
    /// The sum over all ranks, and the largest number of a rank.
    std::int64_t sum = 0;
    std::int64_t most = 0;
    /// Rows, of all ranks, that need rows of X from other ranks.
    std::int64_t boundary_rows = 0;
    /// The nonzeros of the rank with most, divided by the average; 1 without nonzeros.
    double imbalance = 1;

    static double imbalance_of(std::int64_t most_nonzeros, std::int64_t nonzeros, int ranks) {
        return nonzeros == 0
                   ? 1
                   : static_cast<double>(most_nonzeros) * ranks / static_cast<double>(nonzeros);
    }
};

/// ReorderingOptions::halo_bytes_per_second for GPUs that have a network card of their own.
inline constexpr double halo_rate_of_gpus = 5e10;

struct ReorderingOptions {
    RowPartition partition = RowPartition::automatic;
    RowOrder order = RowOrder::natural;
    /// One number per rank, the same on all ranks; empty: equal shares.
    std::span<const double> weights = {};
    /// The expected number of products of a solve, counted by column; used only by `automatic`.
    double expected_products = 1000;
    /// The rate at which a rank receives its halo; used only by `automatic`. The default is the
    /// share of a node's network card that a rank of a full node has.
    double halo_bytes_per_second = 1e9;
};

/// What plan_reordering() decided.
struct ReorderingFacts {
    /// rows or graph, never automatic.
    RowPartition partition = RowPartition::rows;
    RowOrder order = RowOrder::natural;
    /// Why `automatic` decided so; empty without `automatic`.
    std::string reason;
    /// The halos of the given distribution and of the new one. No values if they were not counted,
    /// or if no new distribution was computed.
    std::optional<HaloCounts> before;
    std::optional<HaloCounts> after;
    /// The time of the plan.
    double seconds = 0;
};

/// A bijection between two numberings of the rows: the user's, in which matrices are read and
/// results are delivered, and the solver's. Each has its own RowMap.
class Reordering {
  public:
    /// The identity on the rows of `map`.
    explicit Reordering(RowMap map = {}, ReorderingFacts facts = {});
    /// Row user.first_row() + i becomes row position[i] of the solver. Collective. Throws on all
    /// ranks: ShapeError for a wrong number of positions, InputError if they are no bijection.
    Reordering(const Comm& comm, RowMap user, RowMap solver, std::vector<std::int64_t> position,
               ReorderingFacts facts = {});

    /// False for the identity.
    bool moves_rows() const { return moves_rows_; }
    const RowMap& user_map() const { return user_; }
    const RowMap& solver_map() const { return solver_; }
    const ReorderingFacts& facts() const { return facts_; }

    /// P A P^T, distributed by solver_map(); A is distributed by user_map(). Collective. Throws
    /// ShapeError on all ranks if A is not square or if its rows or columns are distributed in
    /// another way. Memory besides the result: about 16 + sizeof(T) bytes per nonzero.
    template <class T>
    CsrRows<T> permute(const Comm& comm, CsrRows<T> a) const;
    /// Y = P X: X has the rows of user_map(), Y those of solver_map(); both in any place, no
    /// overlap. Collective. Throws ShapeError on all ranks. Bytes: X once over the network. Memory:
    /// three buffers in host memory, each of at most 32 MiB or, if that is more, one column.
    template <class T>
    void to_solver(Context& ctx, std::type_identity_t<BlockView<const T>> x, BlockView<T> y) const;
    /// X = P^T Y, the inverse of to_solver().
    template <class T>
    void to_user(Context& ctx, std::type_identity_t<BlockView<const T>> y, BlockView<T> x) const;
    /// P^T Y as a new block in host memory.
    template <class T>
    BlockVector<T> to_user(Context& ctx, std::type_identity_t<BlockView<const T>> y) const;

  private:
    /// The rows that one side of an exchange packs or unpacks: local rows, grouped by rank.
    struct Side {
        std::vector<std::int64_t> rows;
        std::vector<int> counts;
    };
    std::vector<std::int64_t> new_numbers(const Comm& comm,
                                          std::span<const std::int64_t> columns) const;
    /// Throws ShapeError unless the blocks have the rows of both maps and equally many columns.
    template <class T>
    void require_blocks(BlockView<const T> user, BlockView<const T> solver) const;
    template <class T>
    void move_rows(Context& ctx, const Side& from, BlockView<const T> x, const Side& to,
                   BlockView<T> y) const;

    RowMap user_;
    RowMap solver_;
    bool moves_rows_ = false;
    /// The solver's number of each of this rank's rows; empty for the identity, and on a rank
    /// without rows.
    std::vector<std::int64_t> position_;
    Side of_user_;
    Side of_solver_;
    ReorderingFacts facts_;
};

/// Plans a distribution of the rows of A (or of A and B, by the union of their entries) over the
/// ranks. `graph` and `rcm` gather the pattern on rank 0, which computes the new numbering alone;
/// the same input gives the same numbering. On one rank there is nothing to partition, and without
/// rcm the result is the identity.
///
/// `automatic` takes the graph if two conditions hold. First,
///
///     most expected_products sizeof(T) / halo_bytes_per_second
///         > (0.3 + 0.2 log2(ranks)) 1e-6 s nonzeros,
///
/// with `most` of the given distribution: to receive the halos takes longer than to partition. This
/// needs no partition and overestimates the gain, because some halo always remains. Second, the
/// partition reduces `most` to at most 70%. Otherwise, and if SCOTCH is missing or the graph
/// does not fit the memory of rank 0, the partition is that of `rows`.
///
/// Collective. Throws on all ranks: ShapeError if A is not square, or if B or the columns of A are
/// distributed in another way; UnsupportedError if `graph` is requested without SCOTCH, or if the
/// graph is too large for SCOTCH's integers (usually 32 bits; each edge counts twice); MemoryError.
/// Memory of rank 0: about 100 bytes per nonzero of the whole matrix.
template <class T>
Reordering plan_reordering(const Comm& comm, const CsrRows<T>& a,
                           const ReorderingOptions& options = {}, const CsrRows<T>* b = nullptr);

}  // namespace quiver
