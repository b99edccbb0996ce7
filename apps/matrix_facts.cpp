// SPDX-License-Identifier: BSD-3-Clause
#include "apps/matrix_facts.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdlib>
#include <limits>
#include <map>
#include <span>

#include <fmt/format.h>

#include "apps/report.hpp"
#include "blockvec/scalar_list.hpp"

namespace quiver::apps {
namespace {

constexpr std::size_t most_ranks_shown = 16;

std::string format_name(const SparseFormat& format) {
    return format.kind == SparseFormat::sell
               ? fmt::format("SELL-{0}-{1} (C = {0}, sigma = {1})", format.chunk, format.sigma)
               : "CSR";
}

/// The formats of all ranks, and the percentage of stored entries that are not padding:
/// "on the host: SELL-8-1 (C = 8, sigma = 1); filled to 97.1%".
std::string describe(const StorageFacts& storage, std::int64_t nonzeros) {
    std::map<std::string, std::size_t> ranks_with;
    std::int64_t entries = 0;
    for (const SparseStorage& rank : storage.ranks) {
        ++ranks_with[format_name(rank.format)];
        entries += rank.entries;
    }
    std::string text;
    for (const auto& [name, ranks] : ranks_with) {
        text += text.empty() ? name : ", " + name;
        text += ranks_with.size() > 1
                    ? fmt::format(" on {}", plural(static_cast<std::int64_t>(ranks), "rank"))
                    : "";
    }
    return fmt::format(
        "on the {}: {}; filled to {:.1f}%", storage.place == Place::host ? "host" : "GPU", text,
        entries == 0 ? 100.0 : 100 * static_cast<double>(nonzeros) / static_cast<double>(entries));
}

}  // namespace

template <class T>
MatrixFacts facts_of(const Comm& comm, const CsrRows<T>& rows, int threads) {
    MatrixFacts facts;
    facts.rows = rows.map.global_rows();
    facts.cols = rows.global_cols;
    facts.declared = rows.symmetry;
    facts.rank_rows = comm.gather(rows.map.local_rows());
    facts.rank_nonzeros = comm.gather(rows.nonzeros());
    facts.nonzeros = comm.sum(rows.nonzeros());

    // Integers that are reduced by their maximum: minus the length of the shortest row, the length
    // of the longest row, and the bandwidth.
    std::int64_t extremes[3] = {std::numeric_limits<std::int64_t>::min(), 0, 0};
    std::int64_t diagonal = 0;
    double largest_row_sum = 0;
    std::vector<double> column_sums(static_cast<std::size_t>(facts.cols), 0.0);
    for (std::size_t row = 0; row + 1 < rows.row_start.size(); ++row) {
        const std::int64_t i = rows.map.first_row() + static_cast<std::int64_t>(row);
        const std::int64_t length = rows.row_start[row + 1] - rows.row_start[row];
        extremes[0] = std::max(extremes[0], -length);
        extremes[1] = std::max(extremes[1], length);
        double row_sum = 0;
        for (auto e = static_cast<std::size_t>(rows.row_start[row]);
             e < static_cast<std::size_t>(rows.row_start[row + 1]); ++e) {
            const std::int64_t j = rows.column[e];
            const double size = std::abs(std::complex<double>(rows.value[e]));
            extremes[2] = std::max<std::int64_t>(extremes[2], std::abs(i - j));
            diagonal += i == j ? 1 : 0;
            row_sum += size;
            column_sums[static_cast<std::size_t>(j)] += size;
        }
        largest_row_sum = std::max(largest_row_sum, row_sum);
    }
    comm.max(std::span<std::int64_t>(extremes));
    comm.sum(std::span<double>(column_sums));
    facts.shortest_row = facts.rows == 0 ? 0 : -extremes[0];
    facts.longest_row = extremes[1];
    facts.bandwidth = extremes[2];
    facts.diagonal = comm.sum(diagonal);
    facts.infinity_norm = comm.max(largest_row_sum);
    facts.one_norm =
        column_sums.empty() ? 0 : *std::max_element(column_sums.begin(), column_sums.end());
    facts.check = check_hermitian(comm, rows, threads);
    facts.frobenius_norm = facts.check.norm;
    return facts;
}

template <class T>
StorageFacts storage_facts(const Comm& comm, const CsrRows<T>& rows, Place place) {
    SparseStorage mine;
    comm.agree([&] { mine = storage_of(rows, place); });
    const auto kinds = comm.gather(static_cast<std::int64_t>(mine.format.kind));
    const auto chunks = comm.gather(mine.format.chunk);
    const auto sigmas = comm.gather(mine.format.sigma);
    const auto entries = comm.gather(mine.entries);
    StorageFacts facts;
    facts.place = place;
    for (std::size_t rank = 0; rank < kinds.size(); ++rank) {
        facts.ranks.push_back({{static_cast<SparseFormat::Kind>(kinds[rank]),
                                static_cast<int>(chunks[rank]), sigmas[rank]},
                               entries[rank]});
    }
    return facts;
}

std::string to_table(const std::string& spec, Dtype scalar, const MatrixFacts& facts) {
    const double rows = std::max<double>(1, static_cast<double>(facts.rows));
    std::string text = fmt::format("matrix      {}\n", spec);
    text += fmt::format("size        {} x {}, {} nonzeros, {}\n", facts.rows, facts.cols,
                        facts.nonzeros, name_of(scalar));
    text += fmt::format("row         {} to {} nonzeros, {:.2f} on average\n", facts.shortest_row,
                        facts.longest_row, static_cast<double>(facts.nonzeros) / rows);
    text += fmt::format("bandwidth   {}, {} entries on the diagonal\n", facts.bandwidth,
                        facts.diagonal);
    text += fmt::format("symmetry    declared {}", to_string(facts.declared));
    if (facts.rows == facts.cols) {
        text += fmt::format("; ||A - A^H||_F is {}{:.1e}: {}Hermitian",
                            facts.check.asymmetry == 0 ? "" : "about ", facts.check.asymmetry,
                            facts.check.hermitian() ? "" : "not ");
    }
    text += fmt::format("\nnorms       1-norm {:.6g}, infinity {:.6g}, Frobenius {:.6g}\n",
                        facts.one_norm, facts.infinity_norm, facts.frobenius_norm);
    if (!facts.storage.ranks.empty()) {
        text += fmt::format("storage     {}\n", describe(facts.storage, facts.nonzeros));
    }
    const ReadCost& read = facts.read;
    const bool timed = !read.rank_peak_bytes.empty();
    if (timed) {
        text += fmt::format("read        {:.3f} seconds", read.seconds);
        if (read.megabytes > 0) {
            text += fmt::format(", {:.1f} MB of file, {:.1f} MB/s", read.megabytes,
                                read.megabytes / read.seconds);
        }
        text += '\n';
    }
    for (std::size_t r = 0; r < std::min(facts.rank_rows.size(), most_ranks_shown); ++r) {
        text += fmt::format("rank {:<6} {} rows, {} nonzeros", r, facts.rank_rows[r],
                            facts.rank_nonzeros[r]);
        text += timed ? fmt::format(", peak memory {:.1f} MB\n",
                                    static_cast<double>(read.rank_peak_bytes[r]) * 1e-6)
                      : "\n";
    }
    if (facts.rank_rows.size() > most_ranks_shown) {
        const auto [least, most] =
            std::minmax_element(facts.rank_nonzeros.begin(), facts.rank_nonzeros.end());
        text += fmt::format("and {} more ranks; {} to {} nonzeros a rank\n",
                            facts.rank_rows.size() - most_ranks_shown, *least, *most);
    }
    return text;
}

#define QUIVER_INSTANTIATE(T)                                           \
    template MatrixFacts facts_of(const Comm&, const CsrRows<T>&, int); \
    template StorageFacts storage_facts(const Comm&, const CsrRows<T>&, Place);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver::apps
