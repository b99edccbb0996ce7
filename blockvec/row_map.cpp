// SPDX-License-Identifier: BSD-3-Clause
#include "blockvec/row_map.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "blockvec/error.hpp"

namespace quiver {
namespace {

/// shares[r] = the fraction of the work that belongs to ranks 0 .. r - 1.
std::vector<double> cumulative_shares(int ranks, std::span<const double> weights) {
    if (!weights.empty() && weights.size() != static_cast<std::size_t>(ranks)) {
        throw InputError("row map: " + std::to_string(weights.size()) + " weights for " +
                         std::to_string(ranks) + " ranks");
    }
    std::vector<double> shares(static_cast<std::size_t>(ranks) + 1, 0.0);
    for (std::size_t r = 0; r + 1 < shares.size(); ++r) {
        const double weight = weights.empty() ? 1.0 : weights[r];
        if (!(weight >= 0) || !std::isfinite(weight)) {
            throw InputError("row map: the weight of rank " + std::to_string(r) + " is " +
                             std::to_string(weight) + "; weights must be finite and not negative");
        }
        shares[r + 1] = shares[r] + weight;
    }
    if (shares.back() <= 0) {
        throw InputError("row map: all weights are 0");
    }
    for (double& share : shares) {
        share /= shares.back();
    }
    return shares;
}

/// The cuts between ranks that lie in rows first_row .. first_row + row_nonzeros.size(); the others
/// are 0. The work of all rows is `total`, that of the rows before first_row `before`.
std::vector<std::int64_t> cuts_inside(const std::vector<double>& shares, std::int64_t total,
                                      std::int64_t before, std::int64_t first_row,
                                      std::span<const std::int64_t> row_nonzeros) {
    std::vector<std::int64_t> cuts(shares.size(), 0);
    std::int64_t seen = before;
    std::size_t next = 1;
    const auto target = [&](std::size_t r) {
        return static_cast<std::int64_t>(std::llround(shares[r] * static_cast<double>(total)));
    };
    while (next + 1 < cuts.size() && target(next) <= seen) {
        ++next;  // this cut lies before these rows
    }
    for (std::size_t i = 0; i < row_nonzeros.size(); ++i) {
        seen += row_nonzeros[i] + 1;
        while (next + 1 < cuts.size() && target(next) <= seen) {
            cuts[next] = first_row + static_cast<std::int64_t>(i) + 1;
            ++next;
        }
    }
    return cuts;
}

/// Completes cuts, of which those before the first row are still 0.
void close_cuts(std::vector<std::int64_t>& cuts, std::int64_t global_rows) {
    cuts.back() = global_rows;
    for (std::size_t r = 1; r < cuts.size(); ++r) {
        cuts[r] = std::max(cuts[r], cuts[r - 1]);
    }
}

}  // namespace

RowMap::RowMap(int rank, std::vector<std::int64_t> offsets) : rank_(rank) {
    if (offsets.size() < 2 || offsets.front() != 0 ||
        !std::is_sorted(offsets.begin(), offsets.end())) {
        throw InputError("row map: offsets must start with 0 and be nondecreasing");
    }
    if (rank < 0 || static_cast<std::size_t>(rank) + 1 >= offsets.size()) {
        throw InputError("row map: rank " + std::to_string(rank) + " of " +
                         std::to_string(offsets.size() - 1));
    }
    offsets_ = std::make_shared<const std::vector<std::int64_t>>(std::move(offsets));
}

RowMap RowMap::by_rows(const Comm& comm, std::int64_t global_rows,
                       std::span<const double> weights) {
    return RowMap(comm.rank(), even_offsets(comm.size(), global_rows, weights));
}

std::vector<std::int64_t> RowMap::even_offsets(int ranks, std::int64_t global_rows,
                                               std::span<const double> weights) {
    if (global_rows < 0) {
        throw InputError("row map: " + std::to_string(global_rows) + " rows");
    }
    std::vector<std::int64_t> offsets(static_cast<std::size_t>(ranks) + 1, 0);
    if (weights.empty()) {
        const std::int64_t base = global_rows / ranks;
        const std::int64_t extra = global_rows % ranks;
        for (int r = 1; r <= ranks; ++r) {
            offsets[static_cast<std::size_t>(r)] = base * r + std::min<std::int64_t>(r, extra);
        }
    } else {
        const std::vector<double> shares = cumulative_shares(ranks, weights);
        for (std::size_t r = 1; r < offsets.size(); ++r) {
            const auto wanted = static_cast<std::int64_t>(
                std::llround(shares[r] * static_cast<double>(global_rows)));
            offsets[r] = std::clamp(wanted, offsets[r - 1], global_rows);
        }
        offsets.back() = global_rows;
    }
    return offsets;
}

RowMap RowMap::evenly(std::int64_t global_rows) const {
    return RowMap(rank_, even_offsets(ranks(), global_rows));
}

RowMap RowMap::by_local_rows(const Comm& comm, std::int64_t local_rows) {
    const std::vector<std::int64_t> counts = comm.gather(local_rows);
    std::vector<std::int64_t> offsets(counts.size() + 1, 0);
    std::partial_sum(counts.begin(), counts.end(), offsets.begin() + 1);
    return RowMap(comm.rank(), std::move(offsets));
}

RowMap RowMap::by_nonzeros(const Comm& comm, const RowMap& initial,
                           std::span<const std::int64_t> row_nonzeros,
                           std::span<const double> weights) {
    if (row_nonzeros.size() != static_cast<std::size_t>(initial.local_rows())) {
        throw ShapeError("row map: " + std::to_string(row_nonzeros.size()) + " counts for " +
                         std::to_string(initial.local_rows()) + " rows");
    }
    const std::int64_t mine =
        std::accumulate(row_nonzeros.begin(), row_nonzeros.end(), initial.local_rows());
    const std::vector<std::int64_t> work = comm.gather(mine);
    const std::int64_t before =
        std::accumulate(work.begin(), work.begin() + comm.rank(), std::int64_t{0});
    const std::int64_t total = std::accumulate(work.begin(), work.end(), std::int64_t{0});
    const std::vector<double> shares = cumulative_shares(comm.size(), weights);

    // Each rank sets the cuts inside its own rows and leaves the others 0; the all-reduce then
    // gives every rank all cuts.
    std::vector<std::int64_t> cuts =
        cuts_inside(shares, total, before, initial.first_row(), row_nonzeros);
    comm.sum(std::span<std::int64_t>(cuts));
    close_cuts(cuts, initial.global_rows());
    return RowMap(comm.rank(), std::move(cuts));
}

std::vector<std::int64_t> RowMap::balanced_offsets(int ranks,
                                                   std::span<const std::int64_t> row_nonzeros,
                                                   std::span<const double> weights) {
    const auto rows = static_cast<std::int64_t>(row_nonzeros.size());
    const std::int64_t total = std::accumulate(row_nonzeros.begin(), row_nonzeros.end(), rows);
    std::vector<std::int64_t> cuts =
        cuts_inside(cumulative_shares(ranks, weights), total, 0, 0, row_nonzeros);
    close_cuts(cuts, rows);
    return cuts;
}

int RowMap::owner(std::int64_t row) const {
    const auto above = std::upper_bound(offsets_->begin(), offsets_->end(), row);
    return static_cast<int>(above - offsets_->begin()) - 1;
}

}  // namespace quiver
