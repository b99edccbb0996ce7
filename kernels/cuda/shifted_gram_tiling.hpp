// SPDX-License-Identifier: BSD-3-Clause
// The division of work of shifted_gram on a device; see src/shifted_gram.cuh. Pure arithmetic, so
// that a launch and the tests without a GPU compute the same numbers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>

#include "kernels/cuda/expressions.hpp"
#include "kernels/cuda/kernel_configs.hpp"
#include "kernels/cuda/plan.hpp"
#include "kernels/cuda/tiling.hpp"

namespace quiver::cuda {

/// The panel of G with the columns first_a .. first_a + m - 1 and first_b .. first_b + n - 1 of Z.
struct GramPanel {
    int first_a, m, first_b, n;
};

/// Calls use(panel) for the panels on and above the diagonal. The first columns are multiples of
/// eight, so that the rows of all panels are aligned like those of X.
template <class Use>
void for_each_gram_panel(int columns, const Use& use) {
    const int count = ceil_div(columns, widest_panel);
    const int width = ceil_div(ceil_div(columns, std::max(count, 1)), 8) * 8;
    const auto size = [&](int first) { return std::min(width, columns - first); };
    for (int i = 0; i < columns; i += width) {
        for (int j = i; j < columns; j += width) {
            use(GramPanel{i, size(i), j, size(j)});
        }
    }
}

struct ShiftedGramTiling {
    ShiftedGramConfig config;
    std::size_t shared_bytes;

    /// Rows that a thread block processes at a time.
    int rows() const { return config.rows * config.threads / (32 * config.warps); }

    /// a, b: the layouts of the columns of X of the panel. scaled: the factor is not 1.
    ShiftedGramTiling(std::size_t element_bytes, const GramPanel& panel, const Layout& a,
                      const Layout& b, bool scaled, std::size_t shared_limit)
        : shared_bytes(0) {
        const int bytes = static_cast<int>(element_bytes);
        config.m = panel.m;
        config.n = panel.n;
        config.same = panel.first_a == panel.first_b;
        config.scaled = scaled;
        config.warps = panel.n > 32 ? 2 : 1;
        config.threads = 256;
        config.stages = 4;
        config.blocks = registers() <= 128 ? 2 : 1;
        set_copy(bytes, panel.m, a, config.pitch_a, config.bytes_a);
        set_copy(bytes, panel.n, b, config.pitch_b, config.bytes_b);
        config.contiguous_a = a.contiguous;
        config.contiguous_b = b.contiguous;
        // More shared memory would leave too little cache for the bytes in flight.
        const int budget = static_cast<int>(std::min<std::size_t>(shared_limit, 168 * 1024)) - 4096;
        const int teams = config.threads / (32 * config.warps);
        const int stage = budget / (config.blocks * teams * config.stages) -
                          (config.same ? 1 : 2) * slack * bytes;
        const int row_bytes = (config.pitch_a + (config.same ? 0 : config.pitch_b)) * bytes;
        // A thread keeps the target address of every copy in a register.
        const int pieces = ceil_div(panel.m * bytes, config.bytes_a) +
                           (config.same ? 0 : ceil_div(panel.n * bytes, config.bytes_b));
        const int most = std::min(stage / row_bytes, 16 * 32 * config.warps / pieces);
        const int step = bytes == 2 ? 8 : 4;
        config.rows = std::clamp(most / step * step, step, 128);
        const int size_a = stage_elements(config.pitch_a, bytes);
        const int size_b = config.same ? 0 : stage_elements(config.pitch_b, bytes);
        shared_bytes =
            static_cast<std::size_t>(teams * config.stages * (size_a + size_b)) * element_bytes;
    }

  private:
    /// Elements after a stage that the fragments of its last row read.
    static constexpr int slack = 16;

    /// Registers of a thread: accumulators, fragments, their shifts and the sums of the columns,
    /// and those of the loop.
    int registers() const {
        const int all_m = ceil_div(config.m, 16);
        const int own_n = ceil_div(ceil_div(config.n, 8), config.warps);
        int tiles = 0;
        for (int q = 0; q < own_n; ++q) {
            tiles += config.same ? std::min(all_m, config.warps * q / 2 + 1) : all_m;
        }
        const int fragments = 2 * all_m + (config.same ? 0 : own_n);
        return 8 * tiles + 6 * fragments + 2 * own_n + 44;
    }
    int stage_elements(int pitch, int bytes) const {
        const int unit = 16 / bytes;
        return ceil_div(config.rows * pitch + slack, unit) * unit;
    }
    /// The row pitch in shared memory, with which the fragments of a warp lie in different banks,
    /// and the bytes of a copy. Rows of 2-byte elements that are not aligned to 4 bytes are copied
    /// as one run if they have no gaps, otherwise element by element.
    static void set_copy(int bytes, int columns, const Layout& layout, int& pitch, int& copied) {
        const bool run = layout.unit < 4 && layout.contiguous && layout.aligned;
        const int first = bytes == 8 ? 4 : 8;
        pitch = run                ? columns
                : columns <= first ? first
                                   : ceil_div(columns - first, 2 * first) * 2 * first + first;
        copied = run ? 16 : layout.unit;
    }
};

template <class In>
std::string expression(const ShiftedGramTiling& tiling) {
    return instance("shifted_gram", device_name<In>(), tiling.config);
}

}  // namespace quiver::cuda
