// SPDX-License-Identifier: BSD-3-Clause
// Haidar, Abdelfattah, Zounon, Tomov, Dongarra, IEEE TPDS 29(5), 2018: batched LU and Cholesky in
// double precision, figures 2 and 8.
#include <algorithm>

#include <fmt/format.h>

#include "apps/bench/papers/papers.hpp"

namespace quiver::apps::bench {
namespace {

/// Largest order of LU and of the small Cholesky factorisations: orders 2, 4, ..., in batches of
/// small_batch matrices (the paper has "hundreds of thousands").
constexpr int largest_small = 32;
constexpr std::int64_t small_batch = 200000;
/// Orders of Cholesky with panels: 64, 128, ..., 512, in batches as large as the operands allow.
constexpr int least_large = 64;
constexpr int largest_large = 512;

std::vector<Case> cases(double operand_bytes) {
    const Kernel* const lu = find_kernel("batched-lu");
    const Kernel* const cholesky = find_kernel("batched-cholesky");
    std::vector<Case> cases;
    for (int n = 2; n <= largest_small; n += 2) {
        for (const Kernel* const kernel : {lu, cholesky}) {
            add_affordable(cases, {kernel, Dtype::d, {n, n}, small_batch}, operand_bytes);
        }
    }
    for (int n = least_large; n <= largest_large; n += least_large) {
        Case c{cholesky, Dtype::d, {n, n}, 1};
        c.rows = std::clamp<std::int64_t>(
            static_cast<std::int64_t>(operand_bytes / cholesky->row_bytes(c)), 1, small_batch);
        add_affordable(cases, c, operand_bytes);
    }
    return cases;
}

/// Figure 1: blocks per multiprocessor and threads per block, of a product that only copies.
std::vector<Setting> thread_blocks(double) {
    constexpr int width = 4;
    const Case c = square_case("tsmm", Dtype::d, width);
    std::vector<Setting> settings;
    for (const int blocks : {1, 2, 3, 4, 6, 8, 12, 16}) {
        for (const int threads : {32, 64, 128, 256, 512}) {
            if (blocks * threads <= 2048) {
                settings.push_back(
                    {std::to_string(blocks), fmt::format("{} threads", threads), c,
                     fmt::format("tensor=0 bulk=0 threads={} blocks={}", threads, blocks), 2});
            }
        }
    }
    return settings;
}

Case batch_of(const char* kernel, int n) {
    return {find_kernel(kernel), Dtype::d, {n, n}, small_batch};
}

std::string batch_name(const char* kernel, int n) {
    return fmt::format("{}, n = {}", kernel == std::string("batched-lu") ? "LU" : "Cholesky", n);
}

/// Threads of a block; the shared memory and the registers then bound the blocks of a
/// multiprocessor.
std::vector<Setting> threads_a_block(double) {
    std::vector<Setting> settings;
    for (const char* const kernel : {"batched-lu", "batched-cholesky"}) {
        for (const int n : {4, 8, 12, 16, 24, 32}) {
            for (const int threads : {32, 64, 128, 256, 512, 1024}) {
                settings.push_back({batch_name(kernel, n),
                                    fmt::format("{} threads", threads),
                                    batch_of(kernel, n),
                                    "",
                                    0,
                                    {.batched = fmt::format("threads={}", threads)}});
            }
        }
    }
    return settings;
}

std::vector<Setting> registers_or_shared(double) {
    std::vector<Setting> settings;
    for (const int n : {4, 8, 12, 16, 20, 24, 28, 32, 48, 64}) {
        const char* const kernel = "batched-cholesky";
        Case c = batch_of(kernel, n);
        c.rows = n > largest_small ? small_batch / 4 : small_batch;
        settings.push_back(
            {batch_name(kernel, n), "shared memory", c, "", 0, {.batched = "panels=1"}});
        // From this order on, the library's kernel keeps matrices in shared memory, too.
        const bool is_on_tensor_cores = n >= 20;
        settings.push_back(
            {batch_name(kernel, n), is_on_tensor_cores ? "tensor cores" : "registers", c});
    }
    return settings;
}

std::vector<Setting> matrix_or_row(double) {
    std::vector<Setting> settings;
    for (const char* const kernel : {"batched-lu", "batched-cholesky"}) {
        for (const int n : {2, 3, 4, 5, 6, 7, 8}) {
            for (const auto& [column, choice] : {std::pair{"a thread per row", "by_thread=0"},
                                                 {"a thread per matrix", "by_thread=1"}}) {
                settings.push_back({batch_name(kernel, n),
                                    column,
                                    batch_of(kernel, n),
                                    "",
                                    0,
                                    {.batched = choice}});
            }
        }
    }
    return settings;
}

/// The fastest of ten tilings against that of the library.
std::vector<Setting> autotuning(double) {
    std::vector<Setting> settings;
    for (const char* const kernel : {"batched-lu", "batched-cholesky"}) {
        for (const int n : {2, 4, 6, 8, 12, 16, 20, 24, 28, 32}) {
            settings.push_back({batch_name(kernel, n), "untuned", batch_of(kernel, n)});
            for (const int threads : {32, 64, 128, 256, 512}) {
                for (const int by_thread : {0, 1}) {
                    settings.push_back(
                        {batch_name(kernel, n),
                         "tuned",
                         batch_of(kernel, n),
                         "",
                         0,
                         {.batched = fmt::format("threads={},by_thread={}", threads, by_thread)}});
                }
            }
        }
    }
    return settings;
}

std::vector<Setting> interleaved(double) {
    std::vector<Setting> settings;
    constexpr std::int64_t matrices = 100000;
    for (const char* const kernel : {"batched-lu", "batched-cholesky"}) {
        for (const int n : {2, 4, 6, 8, 10, 12, 14, 16}) {
            for (const auto& [column, suffix] :
                 {std::pair{"packed", ""}, {"interleaved", "-interleaved"}}) {
                Case c = batch_of(kernel, n);
                c.kernel = find_kernel(std::string(kernel) + suffix);
                c.rows = matrices;
                settings.push_back({batch_name(kernel, n), column, c});
            }
        }
    }
    return settings;
}

std::vector<Figure> figures() {
    const auto bandwidth = Quantity::bandwidth;
    return {
        {"1", "tsmm d, 4 x 4, in place of a copy: blocks per multiprocessor, threads per block",
         "blocks", bandwidth,
         "bandwidth grows with the number of threads on a multiprocessor; 1 to 2 blocks give "
         "low bandwidth, 32 threads need more than 8 blocks (section 4.2)",
         thread_blocks},
        {"6", "LU and Cholesky d: threads per block, that is matrices per block", "case", bandwidth,
         "several matrices per block are faster below n = 16 (figures 6 and 8)", threads_a_block},
        {"7", "Cholesky d: in shared memory (by panels), in registers, or on the tensor cores",
         "case", bandwidth, "LU: alike to n = 20, registers faster beyond (figure 7)",
         registers_or_shared},
        {"8", "LU and Cholesky d: a thread per row or per matrix", "case", bandwidth,
         "32 x 4 threads for several matrices beat one matrix per block below n = 16 "
         "(figure 8)",
         matrix_or_row},
        {"layout", "LU and Cholesky d: packed or interleaved matrices", "case", bandwidth,
         "close to the standard design up to n = 16, bad beyond (section 4.5)", interleaved},
        {"autotuning", "LU and Cholesky d: the fastest tiling against the library's", "case",
         bandwidth, "about 5% on top of the analysis (section 4.4)", autotuning}};
}

/// Our highest speed among the cases that `keep` accepts; "not run" without one.
std::string speed_text(const Session& session, const Keep& keep) {
    double most = 0;
    for (const Result& result : session.results) {
        if (result.ours() && result.measured() && keep(result.which)) {
            most = std::max(most, result.flops / result.seconds.median);
        }
    }
    return most > 0 ? fmt::format("{:.0f} GFLOP/s", 1e-9 * most) : "not run";
}

std::string compare(const Session& session) {
    std::string text =
        "\nHaidar, Abdelfattah, Zounon, Tomov, Dongarra, IEEE TPDS 29(5), 2018 (NVIDIA P100, "
        "cuBLAS "
        "8.0), and here:\n";
    text += paper_line("", "", "published", "here");
    const Ceilings& ceilings = session.runs.back().ceilings;
    text += paper_line("sec. 4.1", "bandwidth, read and write (scale)", "600 GB/s",
                       bandwidth_text(ceilings.scale));
    text += paper_line("sec. 4.1", "peak in double", "5300 GFLOP/s",
                       fmt::format("{:.0f} GFLOP/s", 1e-9 * ceilings.flops(Dtype::d)));
    const auto of = [](const char* kernel, int first, int last) -> Keep {
        return [=](const Case& c) {
            return c.kernel == find_kernel(kernel) && c.scalar == Dtype::d && c.shape.n >= first &&
                   c.shape.n <= last;
        };
    };
    const char* const lu = "batched-lu";
    const char* const cholesky = "batched-cholesky";
    const auto faster = [&](const char* figure, const char* what, const char* paper,
                            const Keep& keep) {
        text += paper_line(figure, fmt::format("{}, times as fast as the rival", what), paper,
                           ratios_text(ratios_of(session, keep)));
    };
    faster("abstract", "LU d, n = 2 to 32", "up to 6", of(lu, 2, largest_small));
    faster("figure 8", "LU d, n = 32", "about 3", of(lu, largest_small, largest_small));
    faster("abstract", "Cholesky d, n = 2 to 512", "up to 6", of(cholesky, 2, largest_large));
    const char* const close = "close to the upper bound";
    for (const int last : {16, largest_small}) {
        const int first = last == 16 ? 2 : 18;
        for (const char* const kernel : {lu, cholesky}) {
            text += paper_line("abstract",
                               fmt::format("{} d, n = {} to {}, % of the roofline",
                                           kernel == lu ? "LU" : "Cholesky", first, last),
                               close, percents_text(percents_of(session, of(kernel, first, last))));
        }
    }
    text += paper_line("figure 2b", "Cholesky d, n = 64 to 512, highest speed",
                       "near 1200 GFLOP/s, its bound",
                       speed_text(session, of(cholesky, least_large, largest_large)));
    text += paper_line("figure 2b", "Cholesky d, n = 512", "",
                       speed_text(session, of(cholesky, largest_large, largest_large)));
    return text +
           "  Here: mean, least to largest. The paper's upper bound for the speed of Cholesky is "
           "ib * bandwidth / 4\n  flops a second, where ib = 8 is the number of columns of a "
           "panel.\n";
}

}  // namespace

const Paper& haidar2018() {
    static const Paper paper{"haidar2018", cases, compare, figures()};
    return paper;
}

}  // namespace quiver::apps::bench
