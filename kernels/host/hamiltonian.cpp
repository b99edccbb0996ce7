// SPDX-License-Identifier: BSD-3-Clause
// Y = H X on the host. A batch of rows first lists its entries as states, then replaces the states
// by rows of X, and then adds: each loop is short, and its memory accesses do not wait for each
// other.
#include "kernels/operations/hamiltonian.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <vector>

#include "blockvec/scalar_list.hpp"
#include "kernels/hamiltonian/entry_math.hpp"
#include "kernels/host/simd.hpp"

namespace quiver::host {
namespace {

constexpr int batch_rows = 64;
/// A batch ends with the row in which it reaches this number of entries.
constexpr int batch_entries = 512;

/// The memory of a thread's batches.
template <class T>
struct EntryBatch {
    /// The column of each entry: at first the state, then the row of X.
    std::vector<std::int64_t> column;
    std::vector<T> value;

    explicit EntryBatch(int entries_of_row)
        : column(static_cast<std::size_t>(batch_entries + entries_of_row)), value(column.size()) {}
};

/// One batch: rows first .. first + rows - 1, and the ends of their entries.
template <class T>
struct RowBatch {
    std::int64_t* column;
    T* value;
    std::int64_t first;
    int rows;
    T diagonal[batch_rows];
    int end[batch_rows];
};

template <class T>
struct HamiltonianRows {
    const HamiltonianArgs<T>& shared_args;
    std::vector<EntryBatch<T>>& batches;

    template <class Isa>
    [[gnu::always_inline]] void rows(Chunk chunk) const noexcept {
        // A local copy: the compiler then knows that stored entries do not change it.
        const HamiltonianArgs<T> args = shared_args;
        EntryBatch<T>& memory = batches[static_cast<std::size_t>(chunk.index)];
        RowBatch<T> batch{
            memory.column.data(), memory.value.data(), args.first + chunk.first, 0, {}, {}};
        const std::int64_t last = args.first + chunk.last;
        std::uint64_t word = batch.first < last ? args.space.word(batch.first) : 0;
        for (; batch.first < last; batch.first += batch.rows) {
            word = collect(args, word, last, batch);
            resolve(args, batch);
            int column = 0;
            for (; column + 8 <= args.width; column += 8) {
                add<8>(args, batch, column);
            }
            if (column + 4 <= args.width) {
                add<4>(args, batch, column);
                column += 4;
            }
            if (column + 2 <= args.width) {
                add<2>(args, batch, column);
                column += 2;
            }
            if (column < args.width) {
                add<1>(args, batch, column);
            }
        }
    }

  private:
    /// Lists the entries of the rows from batch.first on, whose first word is `word`; returns the
    /// word of the row after them.
    [[gnu::always_inline]] static std::uint64_t collect(const HamiltonianArgs<T>& args,
                                                        std::uint64_t word, std::int64_t last,
                                                        RowBatch<T>& batch) {
        int count = 0;
        int rows = 0;
        std::int64_t* const column = batch.column;
        T* const value = batch.value;
        for (; batch.first + rows < last && rows < batch_rows && count < batch_entries; ++rows) {
            batch.diagonal[rows] = diagonal_entry<EntryMath>(args, word);
            for_each_entry(
                args, word, [&](std::uint64_t t, T entry) __attribute__((always_inline)) {
                    column[count] = static_cast<std::int64_t>(t);
                    value[count] = entry;
                    ++count;
                });
            batch.end[rows] = count;
            const std::int64_t row = batch.first + rows;
            word = !args.space.symmetric()     ? args.space.next(row, word)
                   : row + 1 < args.space.rows ? args.space.representatives[row + 1]
                                               : 0;
        }
        batch.rows = rows;
        return word;
    }

    /// Replaces the states of the entries by rows of X.
    [[gnu::always_inline]] static void resolve(const HamiltonianArgs<T>& args, RowBatch<T>& batch) {
        const int count = batch.end[batch.rows - 1];
        std::int64_t* const column = batch.column;
        if (args.space.symmetric()) {
            for (int r = 0, e = 0; r < batch.rows; ++r) {
                for (; e < batch.end[r]; ++e) {
                    const StateEntry<T> entry =
                        entry_of<EntryMath>(args, batch.first + r,
                                            static_cast<std::uint64_t>(column[e]), batch.value[e]);
                    column[e] = entry.column;
                    batch.value[e] = entry.value;
                }
            }
        } else {
            for (int e = 0; e < count; ++e) {
                column[e] = args.space.rank(static_cast<std::uint64_t>(column[e]));
            }
        }
        if (args.rows < args.space.rows) {
            for (int e = 0; e < count; ++e) {
                column[e] = args.place_of(column[e]);
            }
        }
    }

    /// Columns first .. first + columns - 1 of a row of real numbers are one vector of the
    /// compiler, because it does not vectorise loops over so few numbers; complex ones are an
    /// array.
    template <int columns>
    struct ComplexColumns {
        T part[columns];
    };
    template <int columns>
    using Columns = std::conditional_t<is_complex_v<T>, ComplexColumns<columns>,
                                       typename VectorOf<real_t<T>, columns>::type>;

    template <class Row>
    [[gnu::always_inline]] static void take(const void* from, Row& to) {
        std::memcpy(static_cast<void*>(&to), from, sizeof(Row));
    }

    /// sum = factor x, or with `adds` sum += factor x.
    template <bool adds, int columns>
    [[gnu::always_inline]] static void multiply_columns(T factor, const Columns<columns>& x,
                                                        Columns<columns>& sum) {
        if constexpr (is_complex_v<T>) {
#pragma GCC ivdep
            for (int j = 0; j < columns; ++j) {
                const T product = multiply(factor, x.part[j]);
                sum.part[j] = adds ? sum.part[j] + product : product;
            }
        } else {
            sum = adds ? sum + factor * x : factor * x;
        }
    }

    /// Columns first .. first + columns - 1 of the rows of a batch.
    template <int columns>
    [[gnu::always_inline]] static void add(const HamiltonianArgs<T>& args, const RowBatch<T>& batch,
                                           int first) {
        using Row = Columns<columns>;
        const std::int64_t local = batch.first - args.first;
        const std::int64_t* const column = batch.column;
        const T* const value = batch.value;
        for (int r = 0, e = 0; r < batch.rows; ++r) {
            Row x;
            Row sum;
            take(args.x + (local + r) * args.ldx + first, x);
            multiply_columns<false, columns>(batch.diagonal[r] - args.shift, x, sum);
            for (const int end = batch.end[r]; e < end; ++e) {
                take(args.row_of_x(column[e]) + first, x);
                multiply_columns<true, columns>(value[e], x, sum);
            }
            T* const to = args.y + (local + r) * args.ldy + first;
            if (args.shifts != nullptr) {
                T shifted[columns];
                take(&sum, shifted);
                for (int j = 0; j < columns; ++j) {
                    const T own = args.x[(local + r) * args.ldx + first + j];
                    shifted[j] -= multiply(args.shifts[first + j], own);
                }
                take(shifted, sum);
            }
            Row y;
            multiply_columns<false, columns>(args.alpha, sum, y);
            if (args.beta != T(0)) {
                take(to, x);
                multiply_columns<true, columns>(args.beta, x, y);
            }
            std::memcpy(static_cast<void*>(to), &y, sizeof(Row));
        }
    }
};

}  // namespace

template <class T>
void hamiltonian(int threads, const HamiltonianArgs<T>& args) {
    const auto width = static_cast<std::size_t>(args.width);
    const int chunks =
        chunk_count(threads, args.rows,
                    2 * sizeof(T) * width + 16 * static_cast<std::size_t>(args.entries + 1));
    std::vector<EntryBatch<T>> batches;
    batches.reserve(static_cast<std::size_t>(chunks));
    for (int chunk = 0; chunk < chunks; ++chunk) {
        batches.emplace_back(args.entries);
    }
    run_chunks(chunks, args.rows, HamiltonianRows<T>{args, batches});
}

#define QUIVER_INSTANTIATE(T) template void hamiltonian(int, const HamiltonianArgs<T>&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver::host
