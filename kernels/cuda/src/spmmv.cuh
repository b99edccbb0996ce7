// SPDX-License-Identifier: BSD-3-Clause
// Y = alpha (A - shift) X + beta Y for chunks of rows or compressed rows, with column dots or
// checksums in the same pass. Sources: Kreutzer et al., SIAM J. Sci. Comput. 36, 2014
// (SELL-C-sigma) and IPDPS 2015 (fused block products). Two kernels, which both fetch the next
// entries while the loads of X are in flight: spmmv for any storage and width, where each thread
// fetches for itself; spmmv_ahead for chunks, where the lanes of a warp exchange the entries.
#pragma once

#include "kernels/operations/spmmv.hpp"
#include "reduce.cuh"
#include "spmmv_sums.cuh"

namespace quiver {

template <int BYTES>
struct WordOf {
    using type = int;
};
template <>
struct WordOf<8> {
    using type = int2;
};
template <>
struct WordOf<16> {
    using type = int4;
};

/// COUNT adjacent elements of one row, moved in words of WORD bytes (4, 8 or 16), to which the
/// address must be aligned.
template <class T, int COUNT, int WORD>
struct Packet {
    using Word = typename WordOf<WORD>::type;
    static constexpr int words = COUNT * static_cast<int>(sizeof(T)) / WORD;
    T at[COUNT];

    /// Loads all words by calling move(address of the word).
    template <class Move>
    void load_by(const T* from, Move move) {
        Word word[words];
#pragma unroll
        for (int w = 0; w < words; ++w) {
            word[w] = move(reinterpret_cast<const Word*>(from) + w);
        }
        memcpy(at, word, sizeof(at));
    }
    void load(const T* from) {
        load_by(from, [](const Word* word) { return *word; });
    }
    /// For data that no thread writes during the launch.
    void load_constant(const T* from) {
        load_by(from, [](const Word* word) { return __ldg(word); });
    }
    /// As load_constant, for data that are read once: does not occupy the caches.
    void load_streamed(const T* from) {
        load_by(from, [](const Word* word) { return __ldcs(word); });
    }
    void store_streamed(T* to) const {
        Word word[words];
        memcpy(word, at, sizeof(at));
#pragma unroll
        for (int w = 0; w < words; ++w) {
            __stcs(reinterpret_cast<Word*>(to) + w, word[w]);
        }
    }
};

/// The address of a thread's columns in a row of X or of the halo. It is computed without a branch,
/// because loads behind a branch would wait for each other.
template <bool HALO, class T, class Index>
struct SpmmvSource {
    using Address = unsigned long long;
    Address x, halo;  // halo: address of the halo minus x_rows rows
    std::int64_t ldx, halo_ld;
    std::int64_t x_rows;

    SpmmvSource(const SpmmvArgs<T>& args, std::int64_t halo_ld_, int column)
        : x(reinterpret_cast<Address>(args.x + column)),
          halo(reinterpret_cast<Address>(args.halo + column) -
               static_cast<Address>(args.x_rows * halo_ld_) * sizeof(T)),
          ldx(args.ldx),
          halo_ld(halo_ld_),
          x_rows(args.x_rows) {}
    const T* operator()(Index row) const {
        const bool far = HALO && row >= static_cast<Index>(x_rows);
        const Address from = far ? halo : x;
        if constexpr (sizeof(Index) == 4) {
            // One multiply-add: the launch guarantees that rows are less than 4 GiB apart.
            const unsigned row_bytes =
                static_cast<unsigned>(far ? halo_ld : ldx) * static_cast<unsigned>(sizeof(T));
            return reinterpret_cast<const T*>(
                from + static_cast<Address>(static_cast<unsigned>(row)) * row_bytes);
        } else {
            return reinterpret_cast<const T*>(from) + row * (far ? halo_ld : ldx);
        }
    }
};

/// Finishes VECTORS words of COUNT columns of a row, STRIDE columns apart, from their sums. All its
/// reads precede its writes: words need not end at the boundaries of 32-byte sectors, and reading a
/// sector just after a write to it takes microseconds.
template <int COUNT, int WORD, int VECTORS, int STRIDE, int ENDING, class T>
struct SpmmvEnd {
    const SpmmvArgs<T>& args;
    Packet<T, COUNT, WORD> x[VECTORS] = {};
    Packet<T, COUNT, WORD> old[VECTORS] = {};
    using Sums = SpmmvRowSums<T, COUNT * VECTORS, ENDING>;
    typename Sums::Weight weight[2] = {};

    explicit SpmmvEnd(const SpmmvArgs<T>& args_) : args(args_) {}

    bool shifted() const {
        return ENDING != scaled && (args.shifts != nullptr || !is_zero(args.shift));
    }
    bool accumulates() const { return ENDING != scaled && !is_zero(args.beta); }

    /// Loads row `row` of Y, which comes from global memory.
    void load_old(std::int64_t row, int column) {
        if (accumulates()) {
            const T* const from = args.y + row * args.ldy + column;
#pragma unroll
            for (int w = 0; w < VECTORS; ++w) {
                old[w].load_streamed(from + w * STRIDE);
            }
        }
    }
    /// Loads the weights of the checksums, which also come from global memory.
    void load_weights(const SpmmvSumsArgs& sums, std::int64_t row) {
        if constexpr (Sums::weighs) {
            const auto* const from =
                reinterpret_cast<const typename Sums::Weight*>(sums.weights) + 2 * row;
            weight[0] = load_constant(from);
            weight[1] = load_constant(from + 1);
        }
    }
    /// Loads row `row` of X, which is likely to be cached.
    void load_x(std::int64_t row, int column) {
        // Without these dots, X may have fewer rows than Y.
        const bool dots_with_x =
            has_dots(ENDING) && (args.dot_xy != nullptr || args.dot_xx != nullptr);
        if (shifted() || dots_with_x || Sums::reads_x) {
            const T* const from = args.x + row * args.ldx + column;
#pragma unroll
            for (int w = 0; w < VECTORS; ++w) {
                x[w].load_constant(from + w * STRIDE);
            }
        }
    }
    /// Stores the row and adds to the dots: y^H y first, then x^H y, then x^H x.
    template <class Sums>
    void finish(std::int64_t row, int column, const T* sum, T* dot, Sums& sums,
                const SpmmvSumsArgs& sums_args) const {
        T* const y = args.y + row * args.ldy + column;
#pragma unroll
        for (int w = 0; w < VECTORS; ++w) {
            Packet<T, COUNT, WORD> result;
#pragma unroll
            for (int v = 0; v < COUNT; ++v) {
                T value = sum[w * COUNT + v];
                if (shifted()) {
                    const T shift = args.shifts != nullptr
                                        ? load_constant(args.shifts + column + w * STRIDE + v)
                                        : args.shift;
                    value = multiply_add(-shift, x[w].at[v], value);
                }
                value = multiply(args.alpha, value);
                if (accumulates()) {
                    value = multiply_add(args.beta, old[w].at[v], value);
                }
                result.at[v] = value;
                if constexpr (has_dots(ENDING)) {
                    T& yy = dot[w * COUNT + v];
                    T& xy = dot[(VECTORS + w) * COUNT + v];
                    yy = multiply_add(conjugate(value), value, yy);
                    xy = multiply_add(conjugate(x[w].at[v]), value, xy);
                }
                if constexpr (ENDING == dotted_xx) {
                    T& xx = dot[(2 * VECTORS + w) * COUNT + v];
                    xx = multiply_add(conjugate(x[w].at[v]), x[w].at[v], xx);
                }
                if constexpr (ENDING >= summed) {
                    sums.add(sums_args, row, v, value, x[w].at[v], weight);
                }
            }
            result.store_streamed(y + w * STRIDE);
        }
    }
};

/// Sums the blocks' dots, DOTS WIDTH each, and stores the results.
template <int DOTS, int WIDTH, int THREADS, class T>
void spmmv_sum_dots(const SpmmvArgs<T>& args, T* partials, unsigned* counters, int group,
                    T* shared) {
    sum_over_blocks<DOTS * WIDTH, THREADS>(
        DOTS * WIDTH, partials, counters, group, shared, [&](int e, T total) {
            T* const result = e < WIDTH ? args.dot_yy : e < 2 * WIDTH ? args.dot_xy : args.dot_xx;
            if (result != nullptr) {
                result[e % WIDTH] = total;
            }
        });
}

/// An integer type for sizes and slot numbers, including a few beyond the last slot.
template <int BYTES>
struct SlotOf {
    using type = unsigned;
};
template <>
struct SlotOf<8> {
    using type = std::int64_t;
};

/// With CHECKED, an index that a fault in memory has moved out of its array is replaced by one
/// within it (see SpmmvArgs): offsets by the nearest one, columns by padding, rows by row 0. The
/// comparison waits for the load of the index; an index that is fetched ahead is therefore compared
/// where it is used.
template <bool CHECKED, class T>
std::int64_t spmmv_offset(const SpmmvArgs<T>& args, std::int64_t offset) {
    if constexpr (CHECKED) {
        return args.checked_offset(offset);
    } else {
        return offset;
    }
}
template <bool CHECKED, class T, class Index>
Index spmmv_column(const SpmmvArgs<T>& args, Index column) {
    if constexpr (CHECKED) {
        using Size = typename SlotOf<sizeof(Index)>::type;
        return column < Index{0} || static_cast<Size>(column) < static_cast<Size>(args.columns)
                   ? column
                   : Index{-1};
    } else {
        return column;
    }
}
template <bool CHECKED, class T>
std::int64_t spmmv_row(const SpmmvArgs<T>& args, std::int64_t slot) {
    const std::int64_t row = args.row_of(slot);
    if constexpr (CHECKED) {
        return args.is_row(row) ? row : 0;
    } else {
        return row;
    }
}
template <bool CHECKED, class T>
std::int64_t spmmv_row_or_piece(const SpmmvArgs<T>& args, std::int64_t slot) {
    const std::int64_t row = args.row_of(slot);
    if constexpr (CHECKED) {
        return args.is_row_or_piece(row) ? row : 0;
    } else {
        return row;
    }
}

/// The threads of a row: one per WORD bytes of its WIDTH columns, times SPLIT (a power of two)
/// threads that share the entries of the row. Rows follow each other in a block without regard to
/// warps, so that every width keeps all threads busy. A block walks down tiles of tile_rows rows, a
/// multiple of the rows that it computes at once, so that its L1 cache holds the rows of X that
/// neighbouring rows share. A thread takes BATCH entries at a time: while their rows of X are in
/// flight, it fetches the next BATCH entries, and the bounds of the row after that. WORD: X, Y, the
/// halo, the pieces and all their rows are aligned to it. The rows of the halo and of the pieces
/// have halo_ld elements; without HALO there is no halo. There must be at least one entry in
/// memory.
///
/// No load depends on a condition, because such loads would wait for each other. In place of an
/// entry beyond its row, a thread loads its first one again, and padding loads row 0 of X.
template <class T, class Index, int WIDTH, int WORD, int SPLIT, int BATCH, int THREADS, int BLOCKS,
          bool HALO, int ENDING, bool CHECKED>
__global__ void __launch_bounds__(THREADS, BLOCKS)
    spmmv(SpmmvArgs<T> args, const Index* column_of, std::int64_t halo_ld, std::int64_t tile_rows,
          void* workspace, unsigned* counters, int group, SpmmvSumsArgs sums_args) {
    constexpr int bytes = sizeof(T);
    constexpr int count = WORD > bytes ? WORD / bytes : 1;
    constexpr int slots = WIDTH / count * SPLIT;
    constexpr int lanes = THREADS / slots;
    static_assert(WIDTH % count == 0 && lanes > 0);

    const int lane = threadIdx.x / slots;
    const int column = threadIdx.x % slots / SPLIT * count;
    const int part = threadIdx.x % SPLIT;
    const int log_chunk = __ffs(args.chunk) - 1;
    const int step = args.chunk * SPLIT;
    const SpmmvSource<HALO, T, Index> source_of(args, halo_ld, column);
    struct Entries {
        Index column[BATCH];
        Packet<T, 1, bytes> value[BATCH];
        int left;  // entries of the row from the first of these on, those of other parts included
    };
    struct Run {
        std::int64_t entry;  // this thread's next entry of the row
        int left;            // as in Entries; at most 0: none
    };
    const auto run_of = [&](std::int64_t base) {
        const std::int64_t slot = base + lane;
        Run run{0, 0};
        if (lane < lanes && slot < args.rows) {
            const std::int64_t* const start = args.start + (slot >> log_chunk);
            const std::int64_t begin = spmmv_offset<CHECKED>(args, load_constant(start));
            const std::int64_t end = spmmv_offset<CHECKED>(args, load_constant(start + 1));
            run.entry = begin + (slot & (args.chunk - 1)) + part * args.chunk;
            std::int64_t length = (end - begin) >> log_chunk;
            if constexpr (CHECKED) {
                // An offset that a fault has changed can give any number, also a negative one.
                constexpr std::int64_t most = std::int64_t{1} << 30;
                length = length < 0 ? 0 : minimum(length, most);
            }
            run.left = static_cast<int>(length) - part;
        }
        return run;
    };
    const auto fetch = [&](std::int64_t entry, int left, Entries& to) {
        const std::int64_t first = left > 0 ? entry : 0;
        const Index* const columns = column_of + first;
        const T* const values = args.value + first;
        to.left = left;
#pragma unroll
        for (int u = 0; u < BATCH; ++u) {
            const int offset = u * SPLIT < left ? u * step : 0;
            to.column[u] = __ldcs(columns + offset);
            to.value[u].load_streamed(values + offset);
        }
    };
    // The first slots of the block's steps, in order.
    const int tile_steps = static_cast<int>(tile_rows) / lanes;
    std::int64_t ahead = static_cast<std::int64_t>(blockIdx.x) * tile_rows;
    int steps_left = tile_steps;
    const auto advance = [&] {
        ahead += lanes;
        if (--steps_left == 0) {
            ahead += static_cast<std::int64_t>(gridDim.x - 1) * tile_rows;
            steps_left = tile_steps;
        }
        return ahead;
    };

    constexpr int dots = dots_of_column(ENDING);
    T dot[dots * count] = {};
    using End = SpmmvEnd<count, WORD, 1, 0, ENDING, T>;
    typename End::Sums row_sums;
    SpmmvLaneSums<T, End::Sums::values, 1> sums;
    int summed_rows = 0;
    std::int64_t base = ahead;
    Run run = run_of(base);
    std::int64_t next_base = advance();
    Run next_run = run_of(next_base);
    Entries now;
    fetch(run.entry, run.left, now);
    // The threads of a block loop together, because all threads of a warp take part in the
    // shuffles.
    while (base < args.rows) {
        const std::int64_t base_after = advance();
        const Run run_after = run_of(base_after);
        T sum[count] = {};
        bool more = false;
        do {
            Packet<T, count, WORD> x[BATCH];
#pragma unroll
            for (int u = 0; u < BATCH; ++u) {
                now.column[u] = spmmv_column<CHECKED>(args, now.column[u]);
                const Index source = now.column[u] < 0 ? 0 : now.column[u];
                x[u].load_constant(source_of(source));
            }
            run.entry += static_cast<std::int64_t>(BATCH) * step;
            run.left -= BATCH * SPLIT;
            more = run.left > 0;
            Entries next;
            fetch(more ? run.entry : next_run.entry, more ? run.left : next_run.left, next);
#pragma unroll
            for (int u = 0; u < BATCH; ++u) {
                if (u * SPLIT < now.left && now.column[u] >= 0) {
#pragma unroll
                    for (int v = 0; v < count; ++v) {
                        sum[v] = multiply_add(now.value[u].at[0], x[u].at[v], sum[v]);
                    }
                }
            }
            now = next;
        } while (more);
#pragma unroll
        for (int distance = SPLIT / 2; distance > 0; distance /= 2) {
#pragma unroll
            for (int v = 0; v < count; ++v) {
                sum[v] = sum[v] + shuffle_xor(sum[v], distance);
            }
        }
        const std::int64_t slot = base + lane;
        if (lane < lanes && slot < args.rows && part == 0) {
            const std::int64_t row = spmmv_row_or_piece<CHECKED>(args, slot);
            if (row < args.y_rows) {
                End end_of_row(args);
                end_of_row.load_old(row, column);
                end_of_row.load_weights(sums_args, row);
                end_of_row.load_x(row, column);
                end_of_row.finish(row, column, sum, dot, row_sums, sums_args);
                if constexpr (ENDING >= summed) {
                    if (++summed_rows % decltype(sums)::rows_at_once == 0) {
                        sums.template add<1>(row_sums.value, 0);
                    }
                }
            } else {
                Packet<T, count, WORD> piece;
#pragma unroll
                for (int v = 0; v < count; ++v) {
                    piece.at[v] = sum[v];
                }
                piece.store_streamed(args.pieces + (row - args.y_rows) * halo_ld + column);
            }
        }
        base = next_base;
        run = next_run;
        next_base = base_after;
        next_run = run_after;
    }
    if constexpr (has_dots(ENDING)) {
        __shared__ T shared[dots * count * THREADS];
        T* const partials = static_cast<T*>(workspace);
        sum_over_lanes(dot, lane, lanes, slots, shared);
        if (lane == 0 && part == 0) {
            T* const mine =
                partials + static_cast<std::int64_t>(blockIdx.x) * (dots * WIDTH) + column;
#pragma unroll
            for (int d = 0; d < dots; ++d) {
#pragma unroll
                for (int v = 0; v < count; ++v) {
                    mine[d * WIDTH + v] = dot[d * count + v];
                }
            }
        }
        // Several lanes per sum would need too many registers.
        T* const none = nullptr;
        spmmv_sum_dots<dots, WIDTH, THREADS>(args, partials, counters, group, none);
    }
    if constexpr (ENDING >= summed) {
        sums.template add<1>(row_sums.value, 0);
        sums.locate(part == 0, 0);
        spmmv_sum_rows<WIDTH, THREADS, typename End::Sums>(sums_args, sums, lane, lanes, slots,
                                                           column, 1, workspace, counters, group);
    }
}

template <bool FIRST, class A, class B>
struct Either {
    using type = A;
};
template <class A, class B>
struct Either<false, A, B> {
    using type = B;
};

constexpr int power_of_two_within(int most) {
    int power = 1;
    while (2 * power <= most) {
        power *= 2;
    }
    return power;
}

/// A warp computes `unit` neighbouring slots at once, the largest power of two for which it has
/// lanes: of a row's WIDTH columns, a lane has VECTORS words of WORD bytes (or one column each, if
/// that is larger). Chunks have at least `unit` slots. Together the lanes hold HELD entries of
/// every slot, an equal and contiguous share each, and broadcast BATCH entries at a time. While the
/// rows of X for these entries are in flight, the lanes fetch the following entries, and the bounds
/// of the chunk after that. A block walks down tiles of 2^log_tile slots. If there are several
/// `panels` of WIDTH columns, neighbouring blocks process those of one tile. HALO, WORD: as for
/// spmmv.
///
/// Padding entries become 0 times the row of X of the first entry of their own row. No load then
/// depends on a condition (such loads would wait for each other), and NaN stays in its own rows.
template <class T, class Index, int WIDTH, int WORD, int VECTORS, int HELD, int BATCH, int THREADS,
          int BLOCKS, bool HALO, int ENDING, bool CHECKED>
__global__ void __launch_bounds__(THREADS, BLOCKS)
    spmmv_ahead(SpmmvArgs<T> args, const Index* column_of, std::int64_t halo_ld, int log_tile,
                int panels, void* workspace, unsigned* counters, int group,
                SpmmvSumsArgs sums_args) {
    constexpr int bytes = sizeof(T);
    constexpr int count = WORD > bytes ? WORD / bytes : 1;
    constexpr int slots = WIDTH / (count * VECTORS);
    constexpr int unit = power_of_two_within(32 / slots);
    constexpr int share = unit * HELD / 32;
    constexpr int warps = THREADS / 32;
    constexpr bool alone = unit == 32;
    // Load the old rows of Y together with the rows of X if there are registers for both.
    constexpr bool old_in_time = VECTORS == 1 && (ENDING == fused || ENDING >= summed);
    static_assert(WIDTH % (count * VECTORS) == 0 && slots <= 32 && share * 32 == unit * HELD);
    struct Entries {
        Index column[share];
        T value[share];
    };
    using Slot = typename SlotOf<sizeof(Index)>::type;
    struct Run {
        std::int64_t begin;  // position of the first entries of a unit's rows
        int length;          // entries of a row
    };
    // Offsets that are checked are kept as they are loaded. Otherwise a Run is kept, which needs
    // fewer registers.
    struct Offsets {
        std::int64_t begin, end;
    };
    struct Head {
        Slot slot;  // first slot of the unit
        typename Either<CHECKED, Offsets, Run>::type chunk;
    };

    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;
    // The remaining lanes repeat the work of the first one.
    const bool active = lane < unit * slots;
    const int mine = active ? lane / slots : 0;
    const int panel = static_cast<int>(blockIdx.x) % panels;
    const int column = (active ? lane % slots : 0) * count + panel * WIDTH;
    const int log_chunk = __ffs(args.chunk) - 1;
    const int log_units = log_tile - (__ffs(unit) - 1);
    const int first_tile = static_cast<int>(blockIdx.x) / panels;
    const int tile_step = static_cast<int>(gridDim.x) / panels;
    const SpmmvSource<HALO, T, Index> source_of(args, halo_ld, column);

    const auto run_between = [&](Slot slot, const Offsets& chunk) {
        return Run{chunk.begin + (static_cast<int>(slot) & (args.chunk - 1)),
                   static_cast<int>((chunk.end - chunk.begin) >> log_chunk)};
    };
    const auto head_of = [&](int turn) {
        const Slot tile = first_tile + static_cast<Slot>(turn >> log_units) * tile_step;
        Head head{(tile << log_tile) + (turn & ((1 << log_units) - 1)) * unit, {}};
        if (head.slot < args.rows) {
            const std::int64_t* const start = args.start + (head.slot >> log_chunk);
            const Offsets loaded{load_constant(start), load_constant(start + 1)};
            if constexpr (CHECKED) {
                head.chunk = loaded;
            } else {
                head.chunk = run_between(head.slot, loaded);
            }
        }
        return head;
    };
    const auto run_of = [&](const Head& head) {
        if constexpr (CHECKED) {
            return run_between(head.slot, {spmmv_offset<true>(args, head.chunk.begin),
                                           spmmv_offset<true>(args, head.chunk.end)});
        } else {
            return head.chunk;
        }
    };
    const auto fetch = [&](std::int64_t begin, int length, Entries& to) {
        const std::int64_t first = begin + lane % unit;
#pragma unroll
        for (int i = 0; i < share; ++i) {
            const int k = (i * 32 + lane) / unit;
            to.column[i] = -1;
            if (k < length) {
                const std::int64_t entry = first + (k << log_chunk);
                Packet<T, 1, bytes> value;
                to.column[i] = __ldcs(column_of + entry);
                value.load_streamed(args.value + entry);
                to.value[i] = value.at[0];
            }
        }
    };

    constexpr int dots = dots_of_column(ENDING);
    T dot[dots * count * VECTORS] = {};
    using End = SpmmvEnd<count, WORD, VECTORS, slots * count, ENDING, T>;
    typename End::Sums row_sums;
    SpmmvLaneSums<T, End::Sums::values, unit> sums;
    Entries now{};
    int turn = warp;
    Head head = head_of(turn);
    Head next_head = head_of(turn + warps);
    Run run = run_of(head);
    fetch(run.begin, run.length, now);
    while (head.slot < args.rows) {
        const Head head_after = head_of(turn + 2 * warps);
        const Run next_run = run_of(next_head);
        T sum[count * VECTORS] = {};
        const Slot slot = head.slot + mine;
        // Slots beyond the last one use the row of the last.
        const auto row_of = [&] {
            return static_cast<Slot>(spmmv_row<CHECKED>(
                args, slot < args.rows ? slot : static_cast<Slot>(args.rows - 1)));
        };
        Slot row = old_in_time ? row_of() : 0;
        End end_of_row(args);
        if constexpr (old_in_time) {
            end_of_row.load_old(row, column);
            end_of_row.load_weights(sums_args, row);
        }
        // The first entry of the row whose entries this lane holds.
        const Index first = shuffle(spmmv_column<CHECKED>(args, now.column[0]), lane % unit);
        bool more = false;
        do {
            const int left = run.length;
            run.length -= HELD;
            run.begin += static_cast<std::int64_t>(HELD) << log_chunk;
            more = run.length > 0;
#pragma unroll
            for (int i = 0; i < share; ++i) {
                now.column[i] = spmmv_column<CHECKED>(args, now.column[i]);
                if (now.column[i] < 0) {
                    now.column[i] = first < 0 ? 0 : first;
                    now.value[i] = T{};
                }
            }
            Entries next{};
#pragma unroll
            for (int b = 0; b < HELD; b += BATCH) {
                Packet<T, count, WORD> x[BATCH][VECTORS];
                const bool some = b == 0 || b < left;
                if (some) {
#pragma unroll
                    for (int u = 0; u < BATCH && b + u < HELD; ++u) {
                        Index source = now.column[(b + u) * unit / 32];
                        if constexpr (!alone) {
                            source = shuffle(source, (b + u) * unit % 32 + mine);
                        }
                        const T* const from = source_of(source);
#pragma unroll
                        for (int w = 0; w < VECTORS; ++w) {
                            x[u][w].load_constant(from + w * slots * count);
                        }
                    }
                }
                if (b == 0) {
                    fetch(more ? run.begin : next_run.begin, more ? run.length : next_run.length,
                          next);
                }
                if (some) {
#pragma unroll
                    for (int u = 0; u < BATCH && b + u < HELD; ++u) {
                        T value = now.value[(b + u) * unit / 32];
                        if constexpr (!alone) {
                            value = shuffle(value, (b + u) * unit % 32 + mine);
                        }
#pragma unroll
                        for (int w = 0; w < VECTORS; ++w) {
#pragma unroll
                            for (int v = 0; v < count; ++v) {
                                T& to = sum[w * count + v];
                                to = multiply_add(value, x[u][w].at[v], to);
                            }
                        }
                    }
                }
            }
            now = next;
        } while (more);
        // For a row without entries, row 0 of X was read, and its sums must be discarded.
        const bool empty = shuffle(static_cast<int>(first < 0), mine) != 0;
        if (active && slot < args.rows) {
#pragma unroll
            for (int i = 0; i < count * VECTORS; ++i) {
                sum[i] = empty ? T{} : sum[i];
            }
            if constexpr (!old_in_time) {
                row = row_of();
                end_of_row.load_old(row, column);
            }
            end_of_row.load_x(row, column);
            end_of_row.finish(row, column, sum, dot, row_sums, sums_args);
        }
        if constexpr (ENDING >= summed) {
            if ((turn / warps + 1) % decltype(sums)::rows_at_once == 0) {
                sums.template add<slots>(row_sums.value, mine);
            }
        }
        head = next_head;
        run = next_run;
        next_head = head_after;
        turn += warps;
    }
    if constexpr (has_dots(ENDING)) {
        constexpr int lanes = warps * unit;
        __shared__ T shared[dots * count * VECTORS * THREADS];
        T* const partials = static_cast<T*>(workspace);
        const int row_lane = active ? warp * unit + mine : lanes;
        sum_over_lanes(dot, row_lane, lanes, slots, shared, row_lane * slots + lane % slots);
        if (row_lane == 0) {
            T* const sums =
                partials + static_cast<std::int64_t>(blockIdx.x) * (dots * WIDTH) + column;
#pragma unroll
            for (int w = 0; w < dots * VECTORS; ++w) {
                T* const to = sums + w / VECTORS * WIDTH + w % VECTORS * slots * count;
#pragma unroll
                for (int v = 0; v < count; ++v) {
                    to[v] = dot[w * count + v];
                }
            }
        }
        spmmv_sum_dots<dots, WIDTH, THREADS>(args, partials, counters, group, shared);
    }
    if constexpr (ENDING >= summed) {
        static_assert(VECTORS == 1);
        sums.template add<slots>(row_sums.value, mine);
        sums.locate(active, mine);
        spmmv_sum_rows<WIDTH, THREADS, typename End::Sums>(sums_args, sums, warp, warps, 32,
                                                           column - panel * WIDTH, panels,
                                                           workspace, counters, group);
    }
}

}  // namespace quiver
