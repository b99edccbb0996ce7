// SPDX-License-Identifier: BSD-3-Clause
// The checksums that a sparse product forms at the end of each row; see spmmv.cuh.
#pragma once

#include "kernels/operations/checksum.hpp"
#include "kernels/operations/spmmv.hpp"
#include "reduce.cuh"
#include "twofold.cuh"

namespace quiver {

/// The operations that follow the sums of a row.
enum Ending {
    scaled,     // Y = alpha A X
    fused,      // also shift and beta
    dotted,     // also the dots y^H y and x^H y
    dotted_xx,  // also the dots x^H x
    summed      // fused, with checksums; summed + f also forms the checksums of the SpmmvSummed f
};

constexpr bool has_dots(int ending) {
    return ending == dotted || ending == dotted_xx;
}
/// The dots that a kernel forms of each column.
constexpr int dots_of_column(int ending) {
    return ending == dotted_xx ? 3 : 2;
}

/// The checksums of a few rows: the plain, mixed and square ones of Y, and those that the flags
/// `ENDING - summed` (SpmmvSummed) select. `value` holds, for each kind in turn, the sums of the
/// COUNT columns of a thread; complex sums are pairs.
template <class T, int COUNT, int ENDING>
struct SpmmvRowSums {
    static constexpr int which = ENDING >= summed ? ENDING - summed : 0;
    static constexpr bool weighs_y = (which & spmmv_weighs_y) != 0;
    static constexpr bool weighs_x = (which & spmmv_weighs_x) != 0;
    static constexpr bool plain_x = (which & spmmv_plain_x) != 0;
    static constexpr bool dots = (which & spmmv_dots_xy) != 0;
    static constexpr bool weighs = weighs_y || weighs_x;
    static constexpr bool reads_x = weighs_x || dots;
    static constexpr int y_kinds = weighs_y ? 5 : 3;
    static constexpr int x_kinds = (weighs_x ? 3 : 0) + (plain_x ? 2 : 0);
    static constexpr int kinds = ENDING >= summed ? y_kinds + x_kinds + (dots ? 1 : 0) : 0;
    using Weight = decltype(widened(T{}));
    static constexpr int reals = sizeof(Weight) / sizeof(double);
    static constexpr int line = COUNT * reals;
    static constexpr int values = kinds > 0 ? kinds* line : 1;

    double value[values] = {};

    /// Adds column v of row `row`.
    void add(const SpmmvSumsArgs& args, std::int64_t row, int v, T y, T x,
             const Weight (&weight)[2]) {
        const unsigned in_chunk =
            static_cast<unsigned>(row) & ((1U << static_cast<unsigned>(args.log_chunk)) - 1);
        const double mixed = mixed_row(in_chunk) * mixed_row_unit;
        const auto wide_y = widened(y);
        put(0, v, 1.0, wide_y);
        put(1, v, mixed, wide_y);
        put_squares(2, v, wide_y);
        if constexpr (weighs_y) {
            put(3, v, weight[0], wide_y);
            put(4, v, weight[1], wide_y);
        }
        const auto wide_x = widened(x);
        if constexpr (weighs_x) {
            put_squares(y_kinds, v, wide_x);
            put(y_kinds + 1, v, weight[0], wide_x);
            put(y_kinds + 2, v, weight[1], wide_x);
        }
        if constexpr (plain_x) {
            put(y_kinds + 3, v, 1.0, wide_x);
            put(y_kinds + 4, v, mixed, wide_x);
        }
        if constexpr (dots) {
            put(kinds - 1, v, wide_x, wide_y);
        }
    }
    /// The address of the first sum of a kind. SpmmvSumsArgs stores the kinds of X in the order of
    /// ChecksumKind; `value` begins with the squares.
    static double* target(const SpmmvSumsArgs& args, int kind) {
        if (dots && kind == kinds - 1) {
            return args.xy;
        }
        const bool of_y = kind < y_kinds;
        const int number = of_y ? kind : (kind - y_kinds + 2) % 5;
        return (of_y ? args.y : args.x) + 2 * number * args.line;
    }

  private:
    double& at(int kind, int real) { return value[kind * line + real]; }
    void put(int kind, int v, double weight, double number) {
        at(kind, v) = __fma_rn(weight, number, at(kind, v));
    }
    void put(int kind, int v, double weight, Complex<double> number) {
        put(kind, 2 * v, weight, number.re);
        put(kind, 2 * v + 1, weight, number.im);
    }
    void put(int kind, int v, Complex<double> weight, Complex<double> number) {
        put(kind, 2 * v, weight.re, number.re);
        put(kind, 2 * v, weight.im, number.im);
        put(kind, 2 * v + 1, weight.re, number.im);
        put(kind, 2 * v + 1, -weight.im, number.re);
    }
    void put_squares(int kind, int v, double number) { put(kind, v, number, number); }
    void put_squares(int kind, int v, Complex<double> number) {
        put(kind, 2 * v, number.re, number.re);
        put(kind, 2 * v + 1, number.im, number.im);
    }
};

/// The checksums of a warp over all its rows, divided among its lanes: UNIT lanes compute the same
/// columns of UNIT rows, and each of them holds the numbers first .. first + left - 1 of the VALUES
/// numbers of SpmmvRowSums. Compensates the additions to `sum`, but not those within SpmmvRowSums
/// and between the lanes.
template <class T, int VALUES, int UNIT>
struct SpmmvLaneSums {
    using A = typename SumOf<typename RealOf<T>::type>::type;
    static constexpr int share(int unit) {
        int left = VALUES;
        for (; unit > 1; unit /= 2) {
            left = (left + 1) / 2;
        }
        return left;
    }
    static constexpr int own = share(UNIT);
    /// Rows that a lane adds before the lanes exchange their sums: 8, as on the host, but at most
    /// 64 rows of all lanes together; 1 if the registers cannot hold the sums for longer than a
    /// row.
    static constexpr int rows_at_once = VALUES > 12 ? 1 : UNIT > 8 ? 64 / UNIT : 8;
    A sum[own] = {};
    int first = 0;
    int left = 0;

    /// Sets `first` and `left`. Called at the end only, to save registers. mine: number of this
    /// lane among the UNIT lanes, which are `slots` lanes apart.
    void locate(bool active, int mine) {
        left = active ? VALUES : 0;
        int all = VALUES;
#pragma unroll
        for (int distance = UNIT / 2; distance > 0; distance /= 2) {
            const int half = (all + 1) / 2;
            const bool upper = (mine & distance) != 0;
            first += upper ? half : 0;
            left = upper ? left - half : minimum(left, half);
            all = half;
        }
    }
    /// Adds the numbers of all UNIT lanes to their `sum` and clears them. In each step a lane gives
    /// half of its numbers to a partner and adds the half that it receives to the half that it
    /// keeps.
    template <int SLOTS>
    void add(double (&value)[VALUES], int mine) {
        constexpr bool power = (SLOTS & (SLOTS - 1)) == 0;
        int all = VALUES;
#pragma unroll
        for (int distance = UNIT / 2; distance > 0; distance /= 2) {
            const int half = (all + 1) / 2;
            const bool upper = (mine & distance) != 0;
            const int lane = threadIdx.x % 32 + (upper ? -distance : distance) * SLOTS;
#pragma unroll
            for (int e = 0; e < (VALUES + 1) / 2; ++e) {
                if (e < half) {
                    const double high = e + half < all ? value[e + half] : 0;
                    const double given = upper ? value[e] : high;
                    const double kept = upper ? high : value[e];
                    value[e] = __dadd_rn(
                        kept, power ? shuffle_xor(given, distance * SLOTS) : shuffle(given, lane));
                }
            }
            all = half;
        }
#pragma unroll
        for (int e = 0; e < own; ++e) {
            add_to(sum[e], value[e]);
        }
#pragma unroll
        for (int e = 0; e < VALUES; ++e) {
            value[e] = 0;
        }
    }
};

/// Stores the checksums of this block in `partials`, sums those of all blocks, and stores the
/// totals. A block has `lanes` lanes of `slots` threads each; threads with the same slot hold the
/// same parts of the sums. `column` is the thread's first column within the panel.
template <int WIDTH, int THREADS, class Rows, class Own>
void spmmv_sum_rows(const SpmmvSumsArgs& args, const Own& own, int lane, int lanes, int slots,
                    int column, int panels, void* workspace, unsigned* counters, int group) {
    using A = typename Own::A;
    constexpr int line = WIDTH * Rows::reals;
    constexpr int size = Rows::kinds * line;
    __shared__ A shared[THREADS];
    A* const partials = static_cast<A*>(workspace);
#pragma unroll
    for (int i = 0; i < Own::own; ++i) {
        A part[1] = {own.sum[i]};
        sum_over_lanes(part, lane, lanes, slots, shared);
        if (lane == 0 && i < own.left) {
            const int kind = (own.first + i) / Rows::line;
            const int real = (own.first + i) % Rows::line + column * Rows::reals;
            partials[static_cast<std::int64_t>(blockIdx.x) * size + kind * line + real] = part[0];
        }
    }
    sum_over_blocks<THREADS, THREADS>(
        panels * size, partials, counters, group, shared,
        [&](int e, A sum) {
            const int in_panel = e % size;
            double* const to =
                Rows::target(args, in_panel / line) + e / size * line + in_panel % line;
            Twofold total = twofold(sum);
            if (args.adds) {
                total = Twofold{to[0], to[args.line]} + total;
            }
            to[0] = total.high;
            to[args.line] = total.low;
        },
        panels);
}

}  // namespace quiver
