// SPDX-License-Identifier: BSD-3-Clause
// The division of work of a sparse product on a device; see src/spmmv.cuh. Pure arithmetic, so that
// a launch and the tests without a GPU compute the same numbers.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "kernels/cuda/expressions.hpp"
#include "kernels/cuda/settings_text.hpp"
#include "kernels/cuda/tiling.hpp"

namespace quiver::cuda {

/// Overrides of the model's tiling: "ahead=0,threads=512,tile=1024". 0 leaves a setting to the
/// model, except for `ahead`, where 0 and 1 select one of the two kernels.
struct SpmmvSettings {
    int ahead = -1;
    int vectors = 0;
    int held = 0;
    int batch = 0;
    int threads = 0;
    int blocks = 0;
    int panels = 0;
    int tile = 0;
    int waves = 0;

    SpmmvSettings() = default;
    /// Throws InputError for an unknown name or a value that is not a number up to 65536.
    explicit SpmmvSettings(std::string_view text) {
        read_settings("tiling of a sparse product", text,
                      {{"ahead", ahead},
                       {"vectors", vectors},
                       {"held", held},
                       {"batch", batch},
                       {"threads", threads},
                       {"blocks", blocks},
                       {"panels", panels},
                       {"tile", tile},
                       {"waves", waves}});
    }
};

/// The parameters on which a tiling depends.
struct SpmmvShape {
    std::size_t scalar_bytes;
    int width;                 // at most widest_panel
    std::size_t align;         // bytes that divide the addresses of all rows of X, Y and the halo
    int chunk;                 // of SpmmvArgs
    std::int64_t row_entries;  // average entries of a row, rounded up
    int tile = 0;              // of SpmmvArgs
    bool halo = false;
    bool fused = false;  // a shift or beta Y
    bool dots = false;
    bool sums = false;   // checksums
    bool apart = false;  // of SpmmvArgs
};

/// The tiling of one panel of columns.
struct SpmmvTiling {
    /// True: the lanes of a warp exchange entries (kernel spmmv_ahead). False: each thread fetches
    /// its entries (kernel spmmv).
    bool ahead;
    /// Columns of a panel, and number of panels of a tile, which neighbouring blocks process.
    int width;
    int panels = 1;
    /// Bytes of a row of X that a thread loads at once: 4, 8 or 16.
    int word = 16;
    /// Threads that share the entries of a row; only without `ahead`.
    int split = 1;
    /// Only with `ahead`: words of a row per thread, and entries of a row that its threads hold.
    int vectors = 1;
    int held = 8;
    /// Entries whose rows of X are in flight together.
    int batch = 8;
    int threads = 512;
    /// Blocks per multiprocessor for which registers are reserved, and the largest ratio of the
    /// grid to that number of blocks.
    int blocks = 2;
    int waves = 1;
    /// Rows that a block processes at a time.
    int lanes;
    /// Rows that a block processes one after another, if there are enough rows.
    int tile_rows;

    explicit SpmmvTiling(const SpmmvShape& shape, const SpmmvSettings& wish = {})
        : width(shape.width) {
        const int bytes = static_cast<int>(shape.scalar_bytes);
        const int row_bytes = width * bytes;
        while (word > 4 && (static_cast<int>(shape.align) | row_bytes) % word != 0) {
            word /= 2;
        }
        const int count = word > bytes ? word / bytes : 1;
        const auto given = [](int wished, int model) { return wished > 0 ? wished : model; };
        const int words = width / count;
        // The L1 cache would hold too few rows of X for a panel of more than 256 bytes per row. Use
        // two words per lane, unless the entries of its rows would need too many registers.
        if (!shape.dots) {
            panels = given(wish.panels, panels_of(words, ceil_div(row_bytes, 256)));
        }
        const int panel_words = words / panels;
        const bool one_word = shape.dots || shape.sums;
        const bool pairs = !one_word && words % (2 * panels) == 0 && panel_words >= 8;
        vectors = given(wish.vectors, pairs ? 2 : 1);
        const bool divides = words % (panels * vectors) == 0;
        const int slots = divides ? words / (panels * vectors) : 0;
        const bool wanted = wish.ahead > 0 || (wish.ahead < 0 && exchange_pays(shape, slots));
        ahead = wanted && divides && slots <= 32 && shape.chunk >= unit_of(slots);
        if (!ahead) {
            choose_plain(shape, wish, words, row_bytes);
            return;
        }
        width /= panels;
        const int unit = unit_of(slots);
        // Measured on an H200, as were the threads, blocks and batch below.
        held = given(wish.held, unit == 32 && bytes == 16 ? 4 : std::max(8, 32 / unit));
        // Rows of seven entries are common, and an eighth gather would cost time.
        const bool plain = !shape.halo && !shape.fused && !one_word;
        const bool narrow = width * bytes <= 64 && bytes <= 8 && vectors == 1 && plain;
        const bool wide_tiles = width * bytes >= 128 && shape.tile > 1 && plain;
        const bool few =
            shape.row_entries <= 4 || (narrow && width * bytes == 32 && shape.row_entries <= 7);
        const int usual_batch = bytes == 16 || few ? 4 : shape.row_entries <= 7 ? 7 : 8;
        // A batch of seven pairs of words and a halo exceeds the registers. So does a batch of
        // seven words with checksums if a warp computes one or two rows: the fewer rows, the more
        // checksums each lane holds.
        const int most = shape.halo && vectors == 2 ? 6 : shape.sums && unit <= 2 ? 5 : held;
        batch = given(wish.batch, std::min({usual_batch, most, held}));
        const int usual_threads = narrow                                                   ? 768
                                  : wide_tiles                                             ? 256
                                  : vectors == 1 && unit <= 8 && !shape.fused && !one_word ? 640
                                                                                           : 512;
        threads = given(wish.threads, usual_threads);
        blocks = given(wish.blocks, threads == 256 ? 2 : 1);
        waves = given(wish.waves, 1);
        lanes = threads / 32 * unit;
        // Use the L1 cache of two blocks for the rows of X of a tile. Rows in natural order reuse
        // those of their neighbours in longer tiles.
        const int usual = std::clamp(131072 / (width * bytes), 256, 2048);
        tile_rows = static_cast<int>(std::bit_floor(
            static_cast<unsigned>(given(wish.tile, shape.tile > 0 ? shape.tile : usual))));
        if (unit * held % 32 != 0 || batch > held || threads % 32 != 0 || tile_rows < unit) {
            throw InputError("tiling of a sparse product: threads and held * " +
                             std::to_string(unit) +
                             " must be multiples of 32, batch at most held, and tile at least " +
                             std::to_string(unit));
        }
    }

    /// Slots that a warp computes at once.
    static constexpr int unit_of(int slots) {
        return slots < 1 || slots > 32
                   ? 64
                   : static_cast<int>(std::bit_floor(static_cast<unsigned>(32 / slots)));
    }
    int unit() const { return lanes / (threads / 32); }

  private:
    /// The smallest number of panels, at least `fewest`, that divides `words` into equal panels; 1
    /// if the panels would be too small.
    static int panels_of(int words, int fewest) {
        for (int p = fewest; p <= 2 * fewest; ++p) {
            if (words % p == 0) {
                return p;
            }
        }
        return 1;
    }
    /// True if spmmv_ahead is faster than spmmv, or was not compared with it. Measured on an H100
    /// for Y = A X without a halo (docs/results/2026-11-27_irregular_sparse.md); for the other
    /// products on an H200, for rows of X of 8 bytes. `slots`: lanes of a warp for each row.
    static bool exchange_pays(const SpmmvShape& shape, int slots) {
        if (shape.apart) {
            return false;
        }
        const int row_bytes = shape.width * static_cast<int>(shape.scalar_bytes);
        if (shape.dots || shape.sums) {
            return true;
        }
        if (row_bytes <= 8 || shape.halo || shape.fused) {
            return row_bytes > 8;
        }
        const int busy_lanes = slots < 1 || slots > 32 ? 0 : unit_of(slots) * slots;
        const bool few = shape.row_entries < 4;
        const bool many = shape.row_entries >= 32;
        if (row_bytes <= 48 && busy_lanes >= 24) {
            return many || (few && row_bytes > 16);
        }
        return row_bytes >= 128 && !few && (shape.width % 2 == 0 || busy_lanes >= 24);
    }
    void choose_plain(const SpmmvShape& shape, const SpmmvSettings& wish, int words,
                      int row_bytes) {
        panels = 1;
        vectors = 1;
        threads = wish.threads == 512 || wish.threads == 1024 ? wish.threads : 256;
        // Without spills, 64 registers hold four entries of up to 8 bytes; dots and entries of 16
        // bytes need more, and checksums need 128.
        const bool large = shape.scalar_bytes == 16;
        batch = wish.batch > 0 ? wish.batch : large ? 2 : 4;
        const int resident = shape.sums ? 512 : shape.dots || large ? 768 : 1024;
        blocks = std::max((wish.blocks > 0 ? wish.blocks * 256 : resident) / threads, 1);
        // The lanes of a chunk read adjacent entries. In compressed rows, the entries of a row are
        // adjacent: use threads for about half of them, up to a warp for all columns.
        while (shape.chunk == 1 && 2 * split * words <= 32 && 4 * split <= shape.row_entries) {
            split *= 2;
        }
        lanes = threads / (words * split);
        // About 64 KiB of X: the L1 cache holds that much for two blocks of a multiprocessor, and
        // all blocks together use a third of the L2 cache.
        const int wanted = wish.tile > 0    ? wish.tile
                           : shape.tile > 0 ? shape.tile
                                            : 65536 / row_bytes;
        tile_rows = ceil_div(wanted, lanes) * lanes;
    }
};

/// The alignment of all rows of a block without gaps whose first row is aligned to 16 bytes.
constexpr std::size_t spmmv_alignment(int row_bytes) {
    return std::size_t{1} << std::countr_zero(static_cast<unsigned>(row_bytes) | 16U);
}
/// The settings for a product with or without dots or checksums. A product with either uses few
/// blocks, because each block leaves partial sums; a product with dots has one panel.
inline SpmmvSettings spmmv_settings(SpmmvSettings settings, bool dots, bool sums = false) {
    if (dots || sums) {
        settings.blocks = std::min(settings.blocks, 4);
        settings.waves = settings.vectors = 1;
    }
    if (dots) {
        settings.panels = 1;
        // With three dots, 1024 threads would need all 48 KiB of static shared memory, and more.
        settings.threads = std::min(settings.threads, 768);
    }
    return settings;
}

/// How a row of Y is finished; see src/spmmv.cuh.
enum class SpmmvEnding : std::uint8_t { scaled, fused, dotted, dotted_xx, summed };

constexpr bool has_dots(SpmmvEnding ending) {
    return ending == SpmmvEnding::dotted || ending == SpmmvEnding::dotted_xx;
}
/// The dots that a kernel forms of each column.
constexpr int dots_of_column(SpmmvEnding ending) {
    return ending == SpmmvEnding::dotted_xx ? 3 : has_dots(ending) ? 2 : 0;
}

/// The name expression of a tiling's kernel. checked: with checks of all indices, see SpmmvArgs.
/// sums: the SpmmvSummed of an ending `summed`.
template <class T>
std::string expression(const SpmmvTiling& tiling, const char* index, bool halo, SpmmvEnding ending,
                       bool checked, int sums = 0) {
    const int end = static_cast<int>(ending) + sums;
    return tiling.ahead
               ? instance("spmmv_ahead", device_name<T>(), index, tiling.width, tiling.word,
                          tiling.vectors, tiling.held, tiling.batch, tiling.threads, tiling.blocks,
                          halo, end, checked)
               : instance("spmmv", device_name<T>(), index, tiling.width, tiling.word, tiling.split,
                          tiling.batch, tiling.threads, tiling.blocks, halo, end, checked);
}

}  // namespace quiver::cuda
