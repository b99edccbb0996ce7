// SPDX-License-Identifier: BSD-3-Clause
// The sparse product on the host: one row of A at a time times a panel of columns that stays in
// registers; several rows at a time if X has a single real column. For complex matrices, the real
// and imaginary parts of X are multiplied separately and combined once per row.
#include <bit>
#include <numeric>
#include <vector>

#include "blockvec/scalar_list.hpp"
#include "kernels/host/gathered_row.hpp"
#include "kernels/host/simd.hpp"
#include "kernels/host/spmmv_sums.hpp"
#include "kernels/leaf_args.hpp"
#include "kernels/sparse/product_sums.hpp"

namespace quiver::host {
namespace {

template <class T>
struct Spmmv {
    using R = real_t<T>;
    SpmmvArgs<T> args;
    int chunks;
    /// chunk = 2^shift.
    int shift;
    /// True if there is a shift, beta or dots, so that the end of a row is more than a scaling.
    bool fused;
    bool shifted;
    /// True for compressed rows in natural order with 32-bit columns, no halo, no dots and at most
    /// one shift.
    bool straight;
    /// Bounds of the columns and offsets that are used: with checked indices those of the matrix,
    /// else the largest numbers. A fault may change an index at any time. Each index is therefore
    /// compared after the load for its use; an earlier pass might see another value.
    std::uint64_t columns;
    std::uint64_t stored;
    /// The dots (Y, Y), (X, Y) and (X, X) of each part of the rows, 3 x width; null without dots.
    T* partial;
    /// The sums of each part of the rows, SpmmvSums::x, old and y one after the other; null without
    /// SpmmvSums.
    double* summed;

    template <class Isa>
    static constexpr int full_lanes = Isa::vector_bytes / static_cast<int>(sizeof(R));
    /// The most vectors of a panel: their sums, two per vector for complex numbers, use half of the
    /// registers.
    template <class Isa>
    static constexpr int most_vectors = is_complex_v<T> ? 4 : 8;
    template <class Isa>
    static constexpr int most_columns = most_vectors<Isa>* full_lanes<Isa> / reals_v<T>;

    [[gnu::always_inline]] inline std::int64_t column_of(std::int64_t entry) const noexcept {
        return args.column64 != nullptr ? args.column64[entry] : args.column32[entry];
    }
    /// False for padding as well.
    [[gnu::always_inline]] inline bool is_column(std::int64_t column) const noexcept {
        return static_cast<std::uint64_t>(column) < columns;
    }
    [[gnu::always_inline]] inline std::int64_t offset(std::int64_t chunk) const noexcept {
        return static_cast<std::int64_t>(
            std::min(static_cast<std::uint64_t>(args.start[chunk]), stored));
    }
    [[gnu::always_inline]] inline const T* x_row(std::int64_t column) const noexcept {
        return column < args.x_rows ? args.x + column * args.ldx
                                    : args.halo + (column - args.x_rows) * args.width;
    }
    /// First slot of the i-th of `chunks` parts with about equal work; the work of a slot is its
    /// entries plus two, for its rows of X and Y.
    std::int64_t first_slot(int i) const noexcept {
        const std::int64_t all = (args.rows + args.chunk - 1) >> shift;
        const std::int64_t base = offset(0);
        const auto work = [&](std::int64_t c) { return offset(c) - base + 2 * c * args.chunk; };
        const auto target = static_cast<std::int64_t>(static_cast<double>(work(all)) * i / chunks);
        std::int64_t low = 0;
        std::int64_t high = all;
        while (low < high) {
            const std::int64_t middle = (low + high) / 2;
            if (work(middle) < target) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        return i == chunks ? args.rows : std::min(low * args.chunk, args.rows);
    }

    /// Finishes columns j .. j + width - 1 of row i: shift, alpha, beta and dots.
    [[gnu::always_inline]] inline void finish_row(std::int64_t i, int j, int width, T* values,
                                                  T* dots) const noexcept {
        T* y = args.y + i * args.ldy + j;
        const bool reads_x = shifted || args.dot_xy != nullptr || args.dot_xx != nullptr;
        // Otherwise X may have fewer rows than Y.
        const T* x = reads_x ? args.x + i * args.ldx + j : nullptr;
        if (args.shifts != nullptr) {
            for (int v = 0; v < width; ++v) {
                values[v] -= multiply(args.shifts[j + v], x[v]);
            }
        } else if (shifted) {
            for (int v = 0; v < width; ++v) {
                values[v] -= multiply(args.shift, x[v]);
            }
        }
        if (args.beta != T(0)) {
            for (int v = 0; v < width; ++v) {
                values[v] = multiply(args.alpha, values[v]) + multiply(args.beta, y[v]);
            }
        } else {
            for (int v = 0; v < width; ++v) {
                values[v] = multiply(args.alpha, values[v]);
            }
        }
        std::copy_n(values, width, y);
        if (args.dot_yy != nullptr) {
            for (int v = 0; v < width; ++v) {
                dots[j + v] += T(abs_squared(values[v]));
            }
        }
        if (args.dot_xy != nullptr) {
#pragma GCC ivdep
            for (int v = 0; v < width; ++v) {
                dots[args.width + j + v] += multiply(conjugate(x[v]), values[v]);
            }
        }
        if (args.dot_xx != nullptr) {
            for (int v = 0; v < width; ++v) {
                dots[2 * args.width + j + v] += T(abs_squared(x[v]));
            }
        }
    }

    /// sum += value x; vector v of x begins at number at(v).
    template <int lanes, int vectors, class At>
    [[gnu::always_inline]] static inline void add(typename VectorOf<R, lanes>::type (&sum)[vectors],
                                                  R value, const R* x, const At& at) noexcept {
#pragma GCC unroll 8
        for (int v = 0; v < vectors; ++v) {
            typename VectorOf<R, lanes>::type part;
            std::memcpy(&part, x + at(v), sizeof part);
            sum[v] += value * part;
        }
    }
    /// panel() for compressed rows in natural order without halo columns, Y = alpha (A - shift) X +
    /// beta Y; without `ends`, shift and beta are 0. Narrow blocks are bound by instructions. The
    /// loops therefore do not test for padding, handle four entries per iteration (added in order),
    /// and use copies of the members of `args`, which the compiler would otherwise reload after
    /// each store to Y.
    template <bool checked, bool ends, int lanes, int vectors, class At>
    [[gnu::always_inline]] inline void narrow_rows(std::int64_t first, std::int64_t last, int j,
                                                   const At& at) const noexcept {
        constexpr int together = 4;
        const std::int64_t* const start = args.start;
        const std::int32_t* const column32 = args.column32;
        const auto most = static_cast<std::uint32_t>(columns);
        const auto most_entries = static_cast<std::int64_t>(stored);
        const auto within = [most_entries](std::int64_t at_entry) {
            return checked ? std::clamp<std::int64_t>(at_entry, 0, most_entries) : at_entry;
        };
        const auto column = [column32, most](std::int64_t entry) {
            const auto found = static_cast<std::uint32_t>(column32[entry]);
            return static_cast<std::int64_t>(checked && found >= most ? 0 : found);
        };
        const T* const value = args.value;
        const T* const x = args.x + j;
        T* const y = args.y + j;
        const std::int64_t ldx = args.ldx;
        const std::int64_t ldy = args.ldy;
        const T alpha = args.alpha;
        const T beta = args.beta;
        const T shift = args.shift;
        std::int64_t entry = within(start[first]);
        for (std::int64_t i = first; i < last; ++i) {
            typename VectorOf<R, lanes>::type sum[vectors] = {};
            const std::int64_t end = within(start[i + 1]);
            for (; entry + together <= end; entry += together) {
#pragma GCC unroll 4
                for (int k = 0; k < together; ++k) {
                    add<lanes>(sum, value[entry + k], x + column(entry + k) * ldx, at);
                }
            }
            for (; entry < end; ++entry) {
                add<lanes>(sum, value[entry], x + column(entry) * ldx, at);
            }
            entry = end;
            if constexpr (ends) {
                if (shift != T(0)) {
                    add<lanes>(sum, -shift, x + i * ldx, at);
                }
            }
#pragma GCC unroll 2
            for (int v = 0; v < vectors; ++v) {
                sum[v] *= alpha;
            }
            if constexpr (ends) {
                if (beta != T(0)) {
                    add<lanes>(sum, beta, y + i * ldy, at);
                }
            }
#pragma GCC unroll 2
            for (int v = 0; v < vectors; ++v) {
                std::memcpy(y + i * ldy + at(v), &sum[v], sizeof sum[v]);
            }
        }
    }

    /// Columns from j on of slots first .. last - 1: `reals` real numbers in `vectors` vectors. All
    /// vectors but the last are side by side; the last one ends at the last column, and may repeat
    /// some columns.
    template <class Isa, int lanes, int vectors>
    [[gnu::always_inline]] inline void panel(std::int64_t first, std::int64_t last, int j,
                                             int reals, T* dots) const noexcept {
        using Vector = typename VectorOf<R, lanes>::type;
        const int repeating = std::max(reals - lanes, 0);
        const auto at = [repeating](int v) { return v + 1 < vectors ? v * lanes : repeating; };
        if constexpr (!is_complex_v<T> && vectors <= 2) {
            if (straight) {
                if (fused) {
                    args.columns > 0 ? narrow_rows<true, true, lanes, vectors>(first, last, j, at)
                                     : narrow_rows<false, true, lanes, vectors>(first, last, j, at);
                } else {
                    args.columns > 0
                        ? narrow_rows<true, false, lanes, vectors>(first, last, j, at)
                        : narrow_rows<false, false, lanes, vectors>(first, last, j, at);
                }
                return;
            }
        }
        for (std::int64_t slot = first; slot < last; ++slot) {
            Vector sum[vectors];
            Vector imaginary[vectors];
#pragma GCC unroll 8
            for (int v = 0; v < vectors; ++v) {
                sum[v] = Vector{};
                imaginary[v] = Vector{};
            }
            const std::int64_t chunk = slot >> shift;
            const std::int64_t end = offset(chunk + 1);
            for (std::int64_t entry = offset(chunk) + (slot & (args.chunk - 1)); entry < end;
                 entry += args.chunk) {
                const std::int64_t column = column_of(entry);
                if (!is_column(column)) {
                    break;
                }
                const R* x = as_reals(x_row(column) + j);
                const T value = args.value[entry];
#pragma GCC unroll 8
                for (int v = 0; v < vectors; ++v) {
                    Vector part;
                    std::memcpy(&part, x + at(v), sizeof(Vector));
                    if constexpr (is_complex_v<T>) {
                        sum[v] += value.real() * part;
                        imaginary[v] += value.imag() * part;
                    } else {
                        sum[v] += value * part;
                    }
                }
            }
            if constexpr (is_complex_v<T>) {
#pragma GCC unroll 8
                for (int v = 0; v < vectors; ++v) {
                    add_times_i<R, lanes>(sum[v], R(1), imaginary[v]);
                }
            }
            const std::int64_t i = args.row_of(slot);
            if (!args.is_row(i)) {
                continue;
            }
            if (!fused) {
                R* y = as_reals(args.y + i * args.ldy + j);
#pragma GCC unroll 8
                for (int v = 0; v < vectors; ++v) {
                    if constexpr (is_complex_v<T>) {
                        Vector scaled = args.alpha.real() * sum[v];
                        add_times_i<R, lanes>(scaled, args.alpha.imag(), sum[v]);
                        sum[v] = scaled;
                    } else {
                        sum[v] *= args.alpha;
                    }
                    std::memcpy(y + at(v), &sum[v], sizeof(Vector));
                }
                continue;
            }
            T values[most_columns<Isa>];
#pragma GCC unroll 8
            for (int v = 0; v < vectors; ++v) {
                std::memcpy(as_reals(values) + at(v), &sum[v], sizeof(Vector));
            }
            finish_row(i, j, reals / reals_v<T>, values, dots);
        }
    }

    struct PanelArgs {
        const Spmmv& product;
        std::int64_t first;
        std::int64_t last;
        int j;
        int reals;
        T* dots;
    };
    template <class Isa, int lanes, int vectors>
    struct Panel {
        [[gnu::always_inline]] static inline void run(const PanelArgs& a) noexcept {
            a.product.template panel<Isa, lanes, vectors>(a.first, a.last, a.j, a.reals, a.dots);
        }
    };
    /// Runs one panel. Each panel has its own function, because one function with all panels takes
    /// three times as long to compile. The panels of complex doubles are inlined: functions of
    /// their own were 5 to 9% slower (24 and 64 columns).
    template <class Isa, int lanes, int vectors>
    [[gnu::always_inline]] static inline void one_panel(const PanelArgs& args) noexcept {
        if constexpr (sizeof(T) == 2 * sizeof(double)) {
            Panel<Isa, lanes, vectors>::run(args);
        } else {
            entry<Isa, Panel<Isa, lanes, vectors>, PanelArgs>()(args);
        }
    }
    /// one_panel() with as many vectors as the numbers need.
    template <class Isa, int lanes, int vectors = 1>
    [[gnu::always_inline]] static inline void any_panel(const PanelArgs& args) noexcept {
        if constexpr (lanes < full_lanes<Isa>) {
            if (args.reals == lanes) {
                one_panel<Isa, lanes, 1>(args);
            } else if (args.reals < 2 * lanes) {
                one_panel<Isa, lanes, 2>(args);
            } else {
                any_panel<Isa, 2 * lanes>(args);
            }
        } else if constexpr (vectors < most_vectors<Isa>) {
            if (args.reals <= vectors * lanes) {
                one_panel<Isa, lanes, vectors>(args);
            } else {
                any_panel<Isa, lanes, vectors + 1>(args);
            }
        } else {
            one_panel<Isa, lanes, vectors>(args);
        }
    }

    /// The element of X's single column for an entry; `local`: no column is in the halo.
    template <bool local, class Index>
    [[gnu::always_inline]] inline T single(Index column) const noexcept {
        const auto i = static_cast<std::int64_t>(column);
        return local || i < args.x_rows ? args.x[i * args.ldx] : args.halo[i - args.x_rows];
    }

    template <bool checked>
    [[gnu::always_inline]] inline void store_single(std::int64_t slot, T sum,
                                                    T* dots) const noexcept {
        const std::int64_t i = args.row_of(slot);
        if (checked && !args.is_row(i)) {
            return;
        }
        if (fused) {
            finish_row(i, 0, 1, &sum, dots);
        } else {
            args.y[i * args.ldy] = multiply(args.alpha, sum);
        }
    }

    /// Width 1, real, compressed rows; `dense`: X is contiguous. The loops use copies of the
    /// members of `args`, which the compiler would otherwise reload after each store to Y.
    template <bool local, bool dense, bool checked, class Index>
    [[gnu::always_inline]] inline void single_rows(const Index* column, std::int64_t first,
                                                   std::int64_t last, T* dots) const noexcept {
        const std::int64_t* const start = args.start;
        const std::uint64_t most = columns;
        const std::uint64_t most_entries = stored;
        const auto within = [most_entries](std::int64_t at) {
            return checked ? static_cast<std::int64_t>(
                                 std::min(static_cast<std::uint64_t>(at), most_entries))
                           : at;
        };
        const T* const value = args.value;
        const T* const x = args.x;
        const T* const halo = args.halo;
        const std::int64_t ldx = dense ? 1 : args.ldx;
        const std::int64_t x_rows = args.x_rows;
        std::int64_t entry = within(start[first]);
        for (std::int64_t slot = first; slot < last; ++slot) {
            T sum(0);
            // The test of the column is always true without a fault. It keeps the compiler from
            // using gather instructions, which are slower and round products that the loop over
            // chunks does not round.
            const std::int64_t end = within(start[slot + 1]);
            for (; entry < end; ++entry) {
                const auto i = static_cast<std::int64_t>(column[entry]);
                if (checked ? static_cast<std::uint64_t>(i) >= most : i < 0) {
                    break;
                }
                sum += value[entry] * (local || i < x_rows ? x[i * ldx] : halo[i - x_rows]);
            }
            entry = checked ? end : entry;
            store_single<checked>(slot, sum, dots);
        }
    }

#if defined(__x86_64__)
    /// Width 1, compressed rows with 32-bit columns, X contiguous and without halo.
    template <bool checked>
    [[QUIVER_AVX512, gnu::noinline]] void gathered_rows(std::int64_t first, std::int64_t last,
                                                        T* dots) const noexcept {
        const std::int64_t* const start = args.start;
        const std::int32_t* const column = args.column32;
        const T* const value = args.value;
        const T* const x = args.x;
        const auto most = static_cast<std::uint32_t>(columns);
        const bool is_listed = !args.list.empty();
        T* const y = fused || is_listed ? nullptr : args.y;
        const std::int64_t ldy = args.ldy;
        const T alpha = args.alpha;
        std::int64_t entry = checked ? offset(first) : start[first];
        for (std::int64_t slot = first; slot < last; ++slot) {
            const std::int64_t end = checked ? offset(slot + 1) : start[slot + 1];
            const T sum = gathered_row<checked>(column + entry, value + entry,
                                                std::max<std::int64_t>(end - entry, 0), x, most);
            entry = end;
            if (y != nullptr) {
                y[slot * ldy] = multiply(alpha, sum);
            } else {
                store_single<checked>(slot, sum, dots);
            }
        }
    }
#endif

    /// Width 1, real, chunks that consist of whole vectors: one lane per row.
    template <class Isa, bool local, bool checked, class Index>
    [[gnu::always_inline]] inline void single_chunks(const Index* column, std::int64_t first,
                                                     std::int64_t last, T* dots) const noexcept {
        constexpr int lanes = full_lanes<Isa>;
        using Vector = typename VectorOf<R, lanes>::type;
        const auto within = [this](Index found) {
            return checked && !is_column(found) ? Index(0) : found;
        };
        for (std::int64_t slot = first; slot < last; slot += lanes) {
            const std::int64_t chunk = slot >> shift;
            const std::int64_t begin =
                (checked ? offset(chunk) : args.start[chunk]) + (slot & (args.chunk - 1));
            const std::int64_t full = checked ? std::max(args.full[chunk], 0) : args.full[chunk];
            const std::int64_t all = begin + full * args.chunk;
            const std::int64_t whole =
                checked ? std::min(all, static_cast<std::int64_t>(stored) - lanes + 1) : all;
            Vector sum{};
            for (std::int64_t entry = begin; entry < whole; entry += args.chunk) {
                Vector value;
                Vector x;
                std::memcpy(&value, args.value + entry, sizeof(Vector));
#pragma GCC unroll 16
                for (int l = 0; l < lanes; ++l) {
                    x[l] = single<local>(within(column[entry + l]));
                }
                sum += value * x;
            }
            T values[lanes];
            std::memcpy(values, &sum, sizeof(Vector));
            const std::int64_t end = checked ? offset(chunk + 1) : args.start[chunk + 1];
            const auto rows = static_cast<int>(std::min<std::int64_t>(lanes, last - slot));
            for (int l = 0; l < rows; ++l) {
                for (std::int64_t entry = all + l; entry < end; entry += args.chunk) {
                    const Index found = column[entry];
                    if (checked ? !is_column(found) : found < 0) {
                        break;
                    }
                    values[l] += args.value[entry] * single<local>(found);
                }
                store_single<checked>(slot + l, values[l], dots);
            }
        }
    }

    /// Width 1, real, by whichever of the two functions above applies; returns false if neither
    /// does.
    template <class Isa, bool checked, class Index>
    [[gnu::always_inline]] inline bool single_column(const Index* column, std::int64_t first,
                                                     std::int64_t last, T* dots) const noexcept {
        if (args.chunk == 1) {
            if (args.halo != nullptr) {
                single_rows<false, false, checked>(column, first, last, dots);
            } else if (args.ldx == 1) {
                single_rows<true, true, checked>(column, first, last, dots);
            } else {
                single_rows<true, false, checked>(column, first, last, dots);
            }
            return true;
        }
        if (args.full == nullptr || args.chunk % full_lanes<Isa> != 0) {
            return false;
        }
        if (args.halo == nullptr) {
            single_chunks<Isa, true, checked>(column, first, last, dots);
        } else {
            single_chunks<Isa, false, checked>(column, first, last, dots);
        }
        return true;
    }
    template <class Isa, class Index>
    [[gnu::always_inline]] inline bool single_column(const Index* column, std::int64_t first,
                                                     std::int64_t last, T* dots) const noexcept {
        return args.columns > 0 ? single_column<Isa, true>(column, first, last, dots)
                                : single_column<Isa, false>(column, first, last, dots);
    }

    /// Slots that are multiplied and summed together: few enough that the processor loads rows of
    /// the next slots meanwhile.
    static constexpr int summed_slots = 32;
    /// The rows of some slots, and their mixed weights; rows out of range are omitted.
    struct SummedRows {
        std::int64_t row[summed_slots];
        double mixed[summed_slots];
        int count = 0;
    };
    [[gnu::always_inline]] inline void list_rows(std::int64_t first, std::int64_t last,
                                                 SummedRows& rows) const noexcept {
        const std::uint32_t mask = (std::uint32_t{1} << args.sums->log_chunk) - 1;
        rows.count = 0;
        if (args.list.empty()) {
            rows.count = static_cast<int>(last - first);
            std::iota(rows.row, rows.row + rows.count, first);
        }
        for (std::int64_t slot = first; !args.list.empty() && slot < last; ++slot) {
            const std::int64_t row = args.row_of(slot);
            rows.row[rows.count] = row;
            rows.count += args.is_row(row) ? 1 : 0;
        }
        for (int i = 0; i < rows.count; ++i) {
            rows.mixed[i] =
                mixed_row(static_cast<std::uint32_t>(rows.row[i]) & mask) * mixed_row_unit;
        }
    }
    /// high + low += value, with the rounding error of the addition in low.
    template <class V>
    [[gnu::always_inline]] static inline void add_compensated(double* to, std::int64_t line,
                                                              const V& value) noexcept {
        V high;
        V low;
        std::memcpy(&high, to, sizeof(V));
        std::memcpy(&low, to + line, sizeof(V));
        const V sum = high + value;
        const V rest = sum - high;
        low += (high - (sum - rest)) + (value - rest);
        std::memcpy(to, &sum, sizeof(V));
        std::memcpy(to + line, &low, sizeof(V));
    }
    /// Adds the rows of a block, which have ld reals, to the sums `to`: `vectors` x `lanes` reals
    /// from j on. The additions within 8 rows are not compensated.
    template <int lanes, int vectors, bool plain, bool given>
    [[gnu::always_inline]] inline void sum_strip(const R* block, std::int64_t ld, int j,
                                                 const SummedRows& rows,
                                                 double* to) const noexcept {
        using V = typename VectorOf<double, lanes>::type;
        using X = typename VectorOf<R, lanes>::type;
        constexpr int together = 8;
        constexpr int kinds = SpmmvSums::kinds;
        const std::int64_t line = std::int64_t{reals_v<T>} * args.width;
        const double* const weights = args.sums->weights;
        V squares[vectors] = {};
        for (int i = 0; i < rows.count;) {
            V sum[kinds][vectors] = {};
            for (const int end = std::min(i + together, rows.count); i < end; ++i) {
                const std::int64_t row = rows.row[i];
                const double* const w = weights + 2 * reals_v<T> * row;
#pragma GCC unroll 2
                for (int v = 0; v < vectors; ++v) {
                    X source;
                    std::memcpy(&source, block + row * ld + j + v * lanes, sizeof(X));
                    V x;
                    if constexpr (lanes > 1) {
                        x = __builtin_convertvector(source, V);
                    } else {
                        x = static_cast<double>(source);
                    }
                    squares[v] += x * x;
                    if constexpr (plain) {
                        sum[checksum_plain][v] += x;
                        sum[checksum_mixed][v] += x * rows.mixed[i];
                    }
                    if constexpr (given) {
                        sum[checksum_first][v] += x * w[0];
                        sum[checksum_second][v] += x * w[reals_v<T>];
                    }
                    if constexpr (given && is_complex_v<T>) {
                        add_times_i<double, lanes>(sum[checksum_first][v], -w[1], x);
                        add_times_i<double, lanes>(sum[checksum_second][v], -w[3], x);
                    }
                }
            }
#pragma GCC unroll 2
            for (int v = 0; v < vectors; ++v) {
                const int at = j + v * lanes;
                if constexpr (plain) {
                    add_compensated(to + 2 * checksum_plain * line + at, line,
                                    sum[checksum_plain][v]);
                    add_compensated(to + 2 * checksum_mixed * line + at, line,
                                    sum[checksum_mixed][v]);
                }
                if constexpr (given) {
                    add_compensated(to + 2 * checksum_first * line + at, line,
                                    sum[checksum_first][v]);
                    add_compensated(to + 2 * checksum_second * line + at, line,
                                    sum[checksum_second][v]);
                }
            }
        }
        for (int v = 0; v < vectors; ++v) {
            add_compensated(to + 2 * checksum_squares * line + j + v * lanes, line, squares[v]);
        }
    }
    /// sum_strip() for all reals from j on.
    template <int lanes, int vectors, bool plain, bool given>
    [[gnu::always_inline]] inline void sum_rows(const T* block, std::int64_t ld, int j,
                                                const SummedRows& rows, double* to) const noexcept {
        const int reals = reals_v<T> * args.width;
        for (; j + lanes * vectors <= reals; j += lanes * vectors) {
            sum_strip<lanes, vectors, plain, given>(as_reals(block), reals_v<T> * ld, j, rows, to);
        }
        if constexpr (vectors > 1) {
            sum_rows<lanes, 1, plain, given>(block, ld, j, rows, to);
        } else if constexpr (lanes > reals_v<T>) {
            if (j < reals) {
                sum_rows<lanes / 2, 1, plain, given>(block, ld, j, rows, to);
            }
        }
    }
    /// Flips the bits of the fault that is to be injected into Y, if its row is among `rows`.
    void strike(const SummedRows& rows) const noexcept {
        using Word = std::conditional_t<sizeof(R) == 4, std::uint32_t, std::uint64_t>;
        SpmmvSums& sums = *args.sums;
        if (std::find(rows.row, rows.row + rows.count, sums.struck_row) != rows.row + rows.count) {
            R& real = as_reals(args.y + sums.struck_row * args.ldy)[sums.struck_real];
            sums.before = static_cast<double>(real);
            real =
                std::bit_cast<R>(static_cast<Word>(std::bit_cast<Word>(real) ^ sums.struck_bits));
        }
    }
    /// The blocks of SpmmvSums, in the order in which they are summed.
    enum Summed : int { of_x, of_old, of_y, summed_blocks };
    static std::int64_t sums_of_block(int width) {
        return std::int64_t{2} * SpmmvSums::kinds * reals_v<T> * width;
    }
    struct SumArgs {
        const Spmmv& product;
        const T* block;
        std::int64_t ld;
        const SummedRows& rows;
        double* sums;
    };
    /// sum_rows() as a function of its own, which keeps the time of compilation short.
    template <class Isa, bool plain, bool given>
    struct SumRows {
        [[gnu::always_inline]] static inline void run(const SumArgs& a) noexcept {
            a.product.template sum_rows<lanes_v<Isa, double>, 2, plain, given>(a.block, a.ld, 0,
                                                                               a.rows, a.sums);
        }
    };
    template <class Isa>
    [[gnu::always_inline]] inline void sum_block(int which, const SummedRows& rows,
                                                 double* sums) const noexcept {
        const SpmmvSums& ask = *args.sums;
        const bool is_x = which == of_x;
        if (which == of_y && ask.struck_row >= 0) {
            strike(rows);
        }
        if ((is_x ? ask.x : which == of_old ? ask.old : ask.y) == nullptr) {
            return;
        }
        const SumArgs sum{*this, is_x ? args.x : args.y, is_x ? args.ldx : args.ldy, rows,
                          sums + which * sums_of_block(args.width)};
        if (!(is_x || (which == of_y && ask.given_of_y))) {
            entry<Isa, SumRows<Isa, true, false>, SumArgs>()(sum);
        } else if (is_x && !ask.plain_of_x) {
            entry<Isa, SumRows<Isa, false, true>, SumArgs>()(sum);
        } else {
            entry<Isa, SumRows<Isa, true, true>, SumArgs>()(sum);
        }
    }
    template <class Isa>
    [[gnu::always_inline]] inline void rows(Chunk part) const noexcept {
        T* dots =
            partial == nullptr ? nullptr : partial + std::int64_t{3} * part.index * args.width;
        const std::int64_t end = first_slot(part.index + 1);
        double* const sums = summed == nullptr
                                 ? nullptr
                                 : summed + summed_blocks * sums_of_block(args.width) * part.index;
        SummedRows listed;
        for (std::int64_t first = first_slot(part.index), last = end; first < end; first = last) {
            if (sums != nullptr) {
                last = std::min(first + summed_slots, end);
                list_rows(first, last, listed);
            }
            for (const int block : {of_x, of_old, of_y}) {
                if (block == of_y) {
                    any_width<Isa>(first, last, dots);
                }
                if (sums != nullptr) {
                    sum_block<Isa>(block, listed, sums);
                }
            }
        }
    }
    template <class Isa>
    [[gnu::always_inline]] inline void any_width(std::int64_t first, std::int64_t last,
                                                 T* dots) const noexcept {
#if defined(__x86_64__)
        if constexpr (std::is_same_v<Isa, Avx512>) {
            if (args.width == 1 && args.chunk == 1 && args.halo == nullptr && args.ldx == 1 &&
                args.column32 != nullptr) {
                args.columns > 0 ? gathered_rows<true>(first, last, dots)
                                 : gathered_rows<false>(first, last, dots);
                return;
            }
        }
#endif
        if constexpr (!is_complex_v<T>) {
            if (args.width == 1 &&
                (args.column64 != nullptr ? single_column<Isa>(args.column64, first, last, dots)
                                          : single_column<Isa>(args.column32, first, last, dots))) {
                return;
            }
        }
        // With several panels, process one row at a time, so that whole rows of X are read
        // together.
        const int panels = (args.width + most_columns<Isa> - 1) / most_columns<Isa>;
        const std::int64_t step = panels == 1 ? last - first : 1;
        for (std::int64_t slot = first; slot < last; slot += step) {
            for (int p = 0; p < panels; ++p) {
                const int begin = args.width * p / panels;
                const int end = args.width * (p + 1) / panels;
                any_panel<Isa, reals_v<T>>({*this, slot, std::min(slot + step, last), begin,
                                            reals_v<T> * (end - begin), dots});
            }
        }
    }
};

}  // namespace

template <class T>
void spmmv(int threads, const SpmmvArgs<T>& args) {
    const auto width = static_cast<std::size_t>(args.width);
    const bool dots = args.dot_yy != nullptr || args.dot_xy != nullptr || args.dot_xx != nullptr;
    const auto entries_of_row =
        static_cast<std::size_t>(args.entries / std::max<std::int64_t>(args.rows, 1));
    const int chunks = chunk_count(threads, args.rows,
                                   2 * sizeof(T) * width + (sizeof(T) + 4) * (entries_of_row + 1));
    std::vector<T> partial(dots ? static_cast<std::size_t>(chunks) * 3 * width : 0);
    Spmmv<T> product{args,
                     chunks,
                     std::countr_zero(static_cast<unsigned>(args.chunk)),
                     false,
                     false,
                     false,
                     std::uint64_t{1} << 63,
                     std::uint64_t{1} << 63,
                     dots ? partial.data() : nullptr,
                     nullptr};
    std::vector<double> summed(args.sums == nullptr ? 0
                                                    : static_cast<std::size_t>(chunks) * 3 * 2 *
                                                          SpmmvSums::kinds * reals_v<T> * width);
    product.summed = args.sums == nullptr ? nullptr : summed.data();
    if (args.columns > 0) {
        product.columns = static_cast<std::uint64_t>(args.columns);
        product.stored = static_cast<std::uint64_t>(args.stored);
    }
    product.shifted = args.shifts != nullptr || args.shift != T(0);
    product.fused = product.shifted || args.beta != T(0) || dots;
    product.straight = args.chunk == 1 && args.list.empty() && args.halo == nullptr &&
                       args.column32 != nullptr && args.shifts == nullptr && !dots;
    run_chunks(chunks, chunks, product);
    if (args.sums != nullptr) {
        add_sums(args, summed);
    }
    T* const results[] = {args.dot_yy, args.dot_xy, args.dot_xx};
    for (std::size_t i = 0; dots && i < 3 * width; ++i) {
        T sum(0);
        for (std::size_t chunk = 0; chunk < static_cast<std::size_t>(chunks); ++chunk) {
            sum += partial[chunk * 3 * width + i];
        }
        if (results[i / width] != nullptr) {
            results[i / width][i % width] = sum;
        }
    }
}

#define QUIVER_INSTANTIATE(T) template void spmmv(int, const SpmmvArgs<T>&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver::host
