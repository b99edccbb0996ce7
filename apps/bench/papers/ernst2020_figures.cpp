// SPDX-License-Identifier: BSD-3-Clause
// Ernst, Hager, Thies, Wellein, IJHPCA 2020: figures 15 to 17, 19 and 20 to 22, and the model of
// section 5 against measurements. All in double precision.
#include <algorithm>

#include <fmt/format.h>

#include "apps/bench/papers/papers.hpp"

namespace quiver::apps::bench {
namespace {

/// The paper's kernels use plain multiply-adds (a V100 has no tensor cores in double precision).
constexpr const char* plain = "tensor=0";
constexpr const char* tensor = "tensor=1";

Setting with_plans(const Case& c, const std::string& row, const std::string& column,
                   const std::string& fields, int plans) {
    return {row, column, c, fields, plans};
}

/// The settings of one column for several widths.
struct Column {
    const char* name;
    std::string fields;
    int plans;
};

std::vector<Setting> for_widths(const char* kernel, std::initializer_list<int> widths,
                                const std::vector<Column>& columns) {
    std::vector<Setting> settings;
    for (const int width : widths) {
        const Case c = square_case(kernel, Dtype::d, width);
        for (const auto& [name, fields, plans] : columns) {
            settings.push_back(with_plans(c, std::to_string(width), name, fields, plans));
        }
    }
    return settings;
}

std::vector<Setting> leap_frogging(double) {
    std::vector<Column> columns;
    for (const auto& [name, mapping] :
         {std::pair{"blocked", "blocked=1"}, {"interleaved", "blocked=0"}}) {
        columns.push_back({name, fmt::format("{} {} stages=1", plain, mapping), 2});
    }
    for (const auto& [name, mapping] :
         {std::pair{"blocked + prefetch", "blocked=1"}, {"interleaved + prefetch", "blocked=0"}}) {
        for (const int stages : {2, 3, 4}) {
            columns.push_back({name, fmt::format("{} {} stages={}", plain, mapping, stages), 1});
        }
    }
    columns.push_back({"tensor", fmt::format("{} stages=1", tensor), 2});
    for (const int stages : {2, 3, 4}) {
        columns.push_back({"tensor + prefetch", fmt::format("{} stages={}", tensor, stages), 1});
    }
    return for_widths("tsmttsm", {4, 8, 16, 24, 32, 48, 64}, columns);
}

constexpr int mapped_width = 32;

std::vector<Setting> tile_map(double) {
    const Case c = square_case("tsmttsm", Dtype::d, mapped_width);
    constexpr int tiles[] = {1, 2, 3, 4, 5, 6, 8, 11, 16};
    std::vector<Setting> settings;
    for (const int tile_m : tiles) {
        for (const int tile_n : tiles) {
            settings.push_back(
                with_plans(c, std::to_string(tile_m), std::to_string(tile_n),
                           fmt::format("{} tile_m={} tile_n={}", plain, tile_m, tile_n), 1));
        }
    }
    return settings;
}

std::vector<Setting> warp_map(double) {
    const Case c = square_case("tsmttsm", Dtype::d, mapped_width);
    std::vector<Setting> settings;
    for (const int warps_m : {1, 2, 4, 8}) {
        for (const int warps_n : {1, 2, 4, 8}) {
            settings.push_back(
                with_plans(c, std::to_string(warps_m), std::to_string(warps_n),
                           fmt::format("{} tile_m={} tile_n={}", tensor, warps_m, warps_n), 2));
        }
    }
    return settings;
}

std::vector<Setting> occupancy(double) {
    constexpr int width = 64;
    const Case c = square_case("tsmttsm", Dtype::d, width);
    std::vector<Setting> settings;
    for (const int warps : {2, 4, 6, 8, 12, 16}) {
        const auto add = [&](const char* column, const std::string& fields, int block_warps) {
            if (warps % block_warps == 0) {
                settings.push_back(with_plans(c, std::to_string(warps), column,
                                              fmt::format("{} threads={} blocks={}", fields,
                                                          32 * block_warps, warps / block_warps),
                                              2));
            }
        };
        // So many warps cover the 64 x 64 results once.
        add("tile 2 x 4", fmt::format("{} tile_m=2 tile_n=4", plain), 16);
        add("tile 4 x 4", fmt::format("{} tile_m=4 tile_n=4", plain), 8);
        add("tile 4 x 8", fmt::format("{} tile_m=4 tile_n=8", plain), 4);
        add("tile 8 x 8", fmt::format("{} tile_m=8 tile_n=8", plain), 2);
        add("tensor", tensor, 4);
    }
    return settings;
}

/// Two widths of the paper, on growing numbers of rows.
std::vector<Setting> reduction(double operand_bytes) {
    std::vector<Setting> settings;
    for (const int width : {4, 32}) {
        for (const double rows : {1e3, 1e4, 1e5, 1e6, 1e7, 1e8}) {
            Case c = square_case("tsmttsm", Dtype::d, width);
            c.rows = static_cast<std::int64_t>(rows);
            if (c.kernel->bytes(c) > 16 * operand_bytes) {
                continue;
            }
            const std::string row = fmt::format("width {}, {:.0e} rows", width, rows);
            settings.push_back(
                {row, "no reduction", c, "", 0, {.reduction = Reduction::none}, false});
            settings.push_back({row, "last block adds", c});
            settings.push_back({row, "atomics", c, "", 0, {.reduction = Reduction::atomics}});
        }
    }
    return settings;
}

std::vector<Setting> source_of_c(double) {
    return for_widths("tsmm", {1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64},
                      {{"registers", fmt::format("{} in_registers=1", plain), 3},
                       {"shared memory", fmt::format("{} in_registers=0", plain), 3},
                       {"tensor", tensor, 3}});
}

std::vector<Setting> unrolling(double) {
    std::vector<Column> columns;
    for (const auto& [name, rows] :
         {std::pair{"1 row", 1}, {"2 rows", 2}, {"4 rows", 4}, {"8 rows", 8}}) {
        columns.push_back({name, fmt::format("{} in_registers=0 tile_rows={}", plain, rows), 2});
    }
    return for_widths("tsmm", {2, 4, 8, 12, 16, 24, 32, 48, 64}, columns);
}

std::vector<Setting> unrolled_sums(double) {
    std::vector<Column> columns;
    for (const auto& [name, rows] :
         {std::pair{"1 row", 1}, {"2 rows", 2}, {"4 rows", 4}, {"8 rows", 8}}) {
        columns.push_back({name, fmt::format("{} unroll={}", plain, rows), 2});
    }
    return for_widths("tsmttsm", {4, 8, 16, 24, 32, 48, 64}, columns);
}

std::vector<Setting> threads_per_row(double) {
    std::vector<Setting> settings;
    for (const int width : {4, 8, 12, 16, 24, 32, 48, 64}) {
        const Case c = square_case("tsmm", Dtype::d, width);
        for (const int threads : {1, 2, 4, 8, 16}) {
            const int tile = (width + threads - 1) / threads;
            if (threads <= width && (width + tile - 1) / tile == threads) {
                settings.push_back(
                    with_plans(c, std::to_string(width),
                               fmt::format("{} thread{}", threads, threads == 1 ? "" : "s"),
                               fmt::format("{} tile_n={}", plain, tile), 3));
            }
        }
    }
    return settings;
}

std::vector<Setting> model(double) {
    std::vector<Setting> settings;
    for (const char* const kernel : {"tsmttsm", "tsmm"}) {
        for (const int width : {4, 8, 32, 64}) {
            const Case c = square_case(kernel, Dtype::d, width);
            for (const char* const fields :
                 {"", "stages=2", "blocks=1", "blocks=4", "tensor=0", "bulk=1", "threads=128"}) {
                settings.push_back(with_plans(c, fmt::format("{} d, width {}", kernel, width),
                                              "plans", fields, 4));
            }
        }
    }
    return settings;
}

}  // namespace

std::vector<Figure> ernst2020_figures() {
    const auto speed = Quantity::flops;
    return {
        {"15", "tsmttsm d: prefetching (leap-frogging) and mapping of columns to threads", "width",
         speed,
         "both variants with leap frogging are clearly faster; the transposed (interleaved) "
         "mapping a bit faster, only with it (section 5.1)",
         leap_frogging},
        {"16", "tsmttsm d, 32 x 32: tiles of a thread, rows x columns", "tile_m", speed,
         "best on or just below the lines of 128 and 256 registers; powers of two favoured "
         "(section 5.2)",
         tile_map},
        {"16-tensor", "tsmttsm d, 32 x 32 on the tensor cores: warps that share C", "warps_m",
         speed, "not in the paper: a V100 has no tensor cores in double precision", warp_map},
        {"17", "tsmttsm d, 64 x 64: warps per multiprocessor", "warps", speed,
         "real kernels are fastest at the most warps that fit: 16 (4 x 8) and 8 (8 x 8); about "
         "the same speed (section 5.3)",
         occupancy},
        {"19", "tsmttsm d: the reduction over blocks; the kernel without one is not checked",
         "case", Quantity::microseconds,
         "local atomics: over 90% of the speed without reduction at all sizes for width 4, above "
         "10^4 rows for width 32 (section 5.5)",
         reduction},
        {"20", "tsmm d: source of C", "width", speed,
         "registers only for small widths; shared memory has a small advantage over L1 loads "
         "(section 6.1)",
         source_of_c},
        {"21", "tsmm d: unrolling, as rows of Y per thread that reuse an element of C", "width",
         speed, "2 rows clearly faster than 1, little improvement beyond (section 6.2)", unrolling},
        {"21-sums", "tsmttsm d: rows in the body of the loop", "width", speed,
         "not in the paper, which unrolls tsmm", unrolled_sums},
        {"22", "tsmm d: threads per row of Y", "width", speed,
         "1 and 2 threads slowest; 4, 8, 16 about the same (section 6.3)", threads_per_row},
        {"model", "the model of the plans against measured times", "case", speed,
         "the paper searches exhaustively; a model is future work (section 7)", model, true}};
}

}  // namespace quiver::apps::bench
