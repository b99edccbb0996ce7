// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <bit>
#include <iterator>
#include <string>

#include "blockvec/error.hpp"
#include "blockvec/scalar_list.hpp"
#include "kernels/cuda/cuda_kernels.hpp"
#include "kernels/cuda/kernel_requests.hpp"
#include "kernels/cuda/specialiser.hpp"
#include "kernels/cuda/spmmv_tiling.hpp"
#include "kernels/cuda/tiling.hpp"
#include "kernels/sparse/product_sums.hpp"

namespace quiver::cuda {
namespace {

constexpr const char* spmmv_source = "spmmv.cuh";

template <class T>
bool wants_dots(const SpmmvArgs<T>& args) {
    return args.dot_yy != nullptr || args.dot_xy != nullptr || args.dot_xx != nullptr;
}

/// Columns begin .. begin + width - 1 of a product.
template <class T>
SpmmvArgs<T> columns_of(const SpmmvArgs<T>& args, int begin, int width) {
    const auto moved = [begin](auto* pointer) {
        return pointer == nullptr ? pointer : pointer + begin;
    };
    SpmmvArgs<T> part = args;
    part.width = width;
    part.shifts = moved(args.shifts);
    part.x = moved(args.x);
    part.halo = moved(args.halo);
    part.y = moved(args.y);
    part.pieces = moved(args.pieces);
    part.dot_yy = moved(args.dot_yy);
    part.dot_xy = moved(args.dot_xy);
    part.dot_xx = moved(args.dot_xx);
    return part;
}

/// The largest power of two up to 16 that divides the addresses of all rows of X, Y, the halo and
/// the pieces.
template <class T>
std::size_t alignment_of(const SpmmvArgs<T>& part, std::int64_t halo_ld) {
    std::uintptr_t bits = 16;
    const auto add = [&](const T* pointer, std::int64_t ld) {
        if (pointer != nullptr) {
            bits |= reinterpret_cast<std::uintptr_t>(pointer) |
                    static_cast<std::uintptr_t>(ld) * sizeof(T);
        }
    };
    add(part.x, part.ldx);
    add(part.y, part.ldy);
    add(part.halo, halo_ld);
    add(part.pieces, halo_ld);
    return std::size_t{1} << std::countr_zero(bits);
}

struct Division {
    unsigned blocks;
    std::int64_t tile_rows;
};

/// The tiles are as large as the tiling allows, but small enough that each resident block gets
/// several. A launch with dots has fewer blocks, because each leaves a partial sum.
Division divide(const Context& ctx, std::int64_t rows, const SpmmvTiling& tiling, bool dots) {
    const std::int64_t resident = std::int64_t{multiprocessors(ctx)} * tiling.blocks;
    if (!tiling.ahead) {
        const std::int64_t share = rows / (4 * resident);
        const std::int64_t tile = std::clamp<std::int64_t>(share / tiling.lanes * tiling.lanes,
                                                           tiling.lanes, tiling.tile_rows);
        const std::int64_t tiles = (rows + tile - 1) / tile;
        return {
            static_cast<unsigned>(std::clamp<std::int64_t>(
                tiles, 1, dots ? std::int64_t{4} * multiprocessors(ctx) : std::int64_t{1} << 30)),
            tile};
    }
    // If there are few rows, give each warp one unit before any warp gets two.
    const auto fewest = static_cast<std::uint64_t>(tiling.unit());
    const auto share = static_cast<std::uint64_t>(rows / (2 * resident)) + 1;
    const auto tile = static_cast<std::int64_t>(std::clamp<std::uint64_t>(
        std::bit_floor(share), fewest, static_cast<std::uint64_t>(tiling.tile_rows)));
    const std::int64_t tiles = std::max<std::int64_t>((rows + tile - 1) / tile, 1);
    // The blocks for the panels of one tile are neighbours, so that the grid consists of whole
    // tiles.
    const std::int64_t turns =
        std::clamp<std::int64_t>(resident * tiling.waves / tiling.panels, 1, tiles);
    return {static_cast<unsigned>(turns * tiling.panels), tile};
}

/// The number of waves of a product that runs beside an NCCL message. The message waits for at most
/// one wave, a tenth of the product, and the partly idle last wave is a tenth as well.
constexpr int waves_beside_others = 10;

/// This Context's overrides of the tilings, if any.
struct ChosenSettings {
    explicit ChosenSettings(Context&) {}
    SpmmvSettings settings;
};

template <class T>
SpmmvEnding ending_of(const SpmmvArgs<T>& args) {
    if (args.sums != nullptr) {
        return SpmmvEnding::summed;
    }
    if (wants_dots(args)) {
        return args.dot_xx != nullptr ? SpmmvEnding::dotted_xx : SpmmvEnding::dotted;
    }
    return args.shifts != nullptr || args.shift != T(0) || args.beta != T(0) ? SpmmvEnding::fused
                                                                             : SpmmvEnding::scaled;
}

/// The checksums that a product is asked for.
int summed_kinds(const SpmmvSums* sums) {
    if (sums == nullptr) {
        return 0;
    }
    const int of_x = spmmv_weighs_x | (sums->plain_of_x ? spmmv_plain_x : 0);
    return (sums->given_of_y ? spmmv_weighs_y : 0) | (sums->x != nullptr ? of_x : 0) |
           (sums->xy != nullptr ? spmmv_dots_xy : 0);
}

/// True if the registers of a kernel hold all requested sums, those of X included.
template <class T>
bool holds_sums_of_x(const SpmmvArgs<T>& args) {
    // In single precision a lane holds the sums of twice as many columns. With compressed rows the
    // lanes of a warp do not share the sums; a matrix with long rows has such rows.
    constexpr int most_columns = sizeof(real_t<T>) < sizeof(double) ? 0 : is_complex_v<T> ? 8 : 32;
    return (!args.sums->plain_of_x && !args.sums->given_of_y) ||
           (!args.apart && args.chunk >= 32 && args.width <= most_columns);
}

/// The arguments for columns from `begin` on.
template <class T>
SpmmvSumsArgs sums_args(const SpmmvArgs<T>& args, int begin) {
    if (args.sums == nullptr) {
        return {};
    }
    const SpmmvSums& sums = *args.sums;
    const auto moved = [begin](double* pointer) {
        return pointer == nullptr ? pointer : pointer + (is_complex_v<T> ? 2 : 1) * begin;
    };
    SpmmvSumsArgs result{};
    result.weights = sums.weights;
    result.x = moved(sums.x);
    result.y = moved(sums.y);
    result.xy = moved(sums.xy);
    result.line = std::int64_t{is_complex_v<T> ? 2 : 1} * args.width;
    result.log_chunk = sums.log_chunk;
    result.adds = sums.stored ? 1 : 0;
    return result;
}

/// The kernels of a product, by columns begin .. begin + width - 1.
template <class T>
class PanelKernels {
  public:
    PanelKernels(Context& ctx, const SpmmvArgs<T>& args, const SpmmvSettings& settings)
        : ctx_(ctx),
          args_(args),
          settings_(settings),
          ending_(ending_of(args)),
          sums_(summed_kinds(args.sums)) {}

    struct Choice {
        SpmmvTiling tiling;
        std::string expression;
    };
    /// Returns the kernel for all of these columns if it is ready or no other kernels can replace
    /// it. Otherwise requests its compilation in the background, splits the columns among kernels
    /// that are ready, and returns the kernel for the first part. All these kernels add the
    /// products of a row in the same order, so that Y has the same bits.
    Choice choose(int begin, int width) const {
        const std::int64_t rows = std::max<std::int64_t>(args_.rows, 1);
        Choice own = choice(begin, width, (args_.entries + rows - 1) / rows, args_.tile);
        Specialiser& specialiser = ctx_.service<Specialiser>();
        if (has_dots(ending_) || ending_ == SpmmvEnding::summed || own.tiling.split > 1 ||
            specialiser.ready(spmmv_source, own.expression)) {
            return own;
        }
        specialiser.request(spmmv_source, own.expression, true);
        const int first = stand_in(begin, width);
        return first > 0 ? shared(begin, first) : own;
    }

  private:
    Choice choice(int begin, int width, std::int64_t row_entries, int tile) const {
        const SpmmvArgs<T> part = columns_of(args_, begin, width);
        const SpmmvTiling tiling(
            {sizeof(T), width, alignment_of(part, args_.width), args_.chunk, row_entries, tile,
             args_.halo != nullptr, ending_ == SpmmvEnding::fused, has_dots(ending_),
             args_.sums != nullptr, args_.apart},
            settings_);
        return {tiling, expression<T>(tiling, args_.column64 != nullptr ? "long" : "int",
                                      args_.halo != nullptr, ending_, args_.columns > 0, sums_)};
    }
    /// The kernel of the pack for these columns, whatever the matrix.
    Choice shared(int begin, int width) const {
        const SparseDemand usual;
        return choice(begin, width, usual.row_entries, usual.tile);
    }
    /// Splits these columns among shared kernels that are ready, and returns the width of the first
    /// part; 0 if no such split exists.
    int stand_in(int begin, int width) const {
        for (auto w = std::rbegin(pack_widths); w != std::rend(pack_widths); ++w) {
            if (*w > width) {
                continue;
            }
            const Choice found = shared(begin, *w);
            if (found.tiling.split == 1 &&
                ctx_.service<Specialiser>().ready(spmmv_source, found.expression) &&
                (*w == width || stand_in(begin + *w, width - *w) > 0)) {
                return *w;
            }
        }
        return 0;
    }

    Context& ctx_;
    const SpmmvArgs<T>& args_;
    const SpmmvSettings settings_;
    const SpmmvEnding ending_;
    const int sums_;
};

}  // namespace

void choose_spmmv(Context& ctx, const std::string& text) {
    ctx.service<ChosenSettings>().settings = SpmmvSettings(text);
}

template <class T>
std::size_t workspace_bytes(const Context& ctx, const SpmmvArgs<T>& args) {
    // At most four blocks per multiprocessor leave partial sums.
    const std::size_t columns = std::size_t{4} * static_cast<std::size_t>(multiprocessors(ctx)) *
                                static_cast<std::size_t>(Panels(args.width).width);
    if (args.sums != nullptr) {
        constexpr std::size_t twofold = sizeof(real_t<T>) == sizeof(double) ? 2 : 1;
        constexpr std::size_t most = 2 * SpmmvSums::kinds + 1;  // of X and Y, and dots
        return columns * most * twofold * sizeof(checksum_t<T>);
    }
    return columns * static_cast<std::size_t>(dots_of_column(ending_of(args))) * sizeof(T);
}

template <class T>
void spmmv(Context& ctx, const SpmmvArgs<T>& args, void* workspace, bool beside_others) {
    const SpmmvEnding ending = ending_of(args);
    const bool dots = has_dots(ending);
    if (args.sums != nullptr && !args.sums->stored && !holds_sums_of_x(args)) {
        args.sums->x = nullptr;
    }
    const bool reduces = dots || args.sums != nullptr;
    if (args.rows == 0 && !reduces) {
        return;
    }
    if (args.x_rows > 1 && static_cast<std::uint64_t>(args.ldx) > 0xffffffffU / sizeof(T)) {
        throw UnsupportedError("spmmv: rows of X are " + std::to_string(args.ldx) +
                               " elements apart; on a device the stride must be below 4 GiB");
    }
    const void* columns = args.column32;
    if (args.column64 != nullptr) {
        columns = args.column64;
    }
    SpmmvSettings settings = ctx.service<ChosenSettings>().settings;
    if (beside_others && settings.waves == 0) {
        settings.waves = waves_beside_others;
    }
    settings = spmmv_settings(settings, dots, args.sums != nullptr);
    const PanelKernels<T> kernels(ctx, args, settings);
    const Panels panels(args.width);
    for (int p = 0; p < panels.count; ++p) {
        const int end = panels.begin(p) + panels.size(p, args.width);
        for (int begin = panels.begin(p); begin < end;) {
            const auto [tiling, name] = kernels.choose(begin, end - begin);
            const int width = tiling.width * tiling.panels;
            const SpmmvArgs<T> part = columns_of(args, begin, width);
            const SpmmvSumsArgs row_sums = sums_args(args, begin);
            begin += width;
            const Division division = divide(ctx, args.rows, tiling, reduces);
            Kernel& kernel = ctx.service<Specialiser>().get(ctx, spmmv_source, name);
            const LaunchShape shape{.blocks = division.blocks,
                                    .threads = static_cast<unsigned>(tiling.threads)};
            const int size = args.sums != nullptr
                                 ? static_cast<int>(sizeof(checksum_t<T>) / sizeof(double)) *
                                       SpmmvSums::kinds * width
                                 : dots_of_column(ending) * width;
            const int group =
                reduction_group(division.blocks / static_cast<unsigned>(tiling.panels),
                                tiling.ahead ? size : block_threads);  // or one lane per sum
            if (tiling.ahead) {
                const int log_tile =
                    std::countr_zero(static_cast<std::uint64_t>(division.tile_rows));
                launch(ctx, kernel, shape, part, columns, std::int64_t{args.width}, log_tile,
                       tiling.panels, workspace, ctx.counters(), group, row_sums);
            } else {
                launch(ctx, kernel, shape, part, columns, std::int64_t{args.width},
                       division.tile_rows, workspace, ctx.counters(), group, row_sums);
            }
        }
    }
    if (args.sums != nullptr) {
        args.sums->stored = true;
    }
}

#define QUIVER_INSTANTIATE(T)                                                  \
    template std::size_t workspace_bytes(const Context&, const SpmmvArgs<T>&); \
    template void spmmv(Context&, const SpmmvArgs<T>&, void*, bool);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver::cuda
