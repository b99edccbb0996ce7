// SPDX-License-Identifier: BSD-3-Clause
// Y = H X on the host. Exchanges of bits add whole runs of rows (ExchangeRuns). Otherwise a batch
// of rows first lists its entries as states, then replaces the states by rows of X, and then adds:
// each loop is short, and its memory accesses do not wait for each other.
#include "kernels/operations/hamiltonian.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <type_traits>
#include <vector>

#include "blockvec/scalar_list.hpp"
#include "kernels/hamiltonian/entry_math.hpp"
#include "kernels/host/hamiltonian_runs.hpp"
#include "kernels/host/simd.hpp"

namespace quiver::host {
namespace {

constexpr int batch_rows = 64;
/// A batch ends with the row in which it reaches this number of entries.
constexpr int batch_entries = 512;
/// The most columns that are added at once.
constexpr std::size_t run_columns = 8;

/// The memory of a thread's batches.
template <class T>
struct EntryBatch {
    /// The column of each entry: at first the state, then the row of X.
    std::vector<std::int64_t> column;
    std::vector<T> value;

    /// Of the rows of a run: the diagonal, and the sums of up to run_columns columns.
    std::vector<T> diagonal;
    std::vector<T> sums;

    EntryBatch(int entries_of_row, std::int64_t longest_run)
        : column(static_cast<std::size_t>(batch_entries + entries_of_row)),
          value(column.size()),
          diagonal(static_cast<std::size_t>(longest_run)),
          sums(run_columns * diagonal.size()) {}
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
    /// Null: row by row.
    const ExchangeRuns<T>* runs;

    template <class Isa>
    [[gnu::always_inline]] void rows(Chunk chunk) const noexcept {
        // A local copy: the compiler then knows that stored entries do not change it.
        const HamiltonianArgs<T> args = shared_args;
        EntryBatch<T>& memory = batches[static_cast<std::size_t>(chunk.index)];
        RowBatch<T> batch{
            memory.column.data(), memory.value.data(), args.first + chunk.first, 0, {}, {}};
        const std::int64_t last = args.first + chunk.last;
        std::uint64_t word = batch.first < last ? args.space.word(batch.first) : 0;
        while (batch.first < last) {
            std::int64_t end = last;
            if (runs != nullptr) {
                const Run run(args, *runs, word);
                end = std::min(last, run.first + run.rows);
                if (batch.first == run.first && end == run.first + run.rows) {
                    add_run(args, *runs, run, memory);
                    batch.first = end;
                    word = args.space.next(end - 1, run.last_word);
                    continue;
                }
            }
            for (; batch.first < end; batch.first += batch.rows) {
                word = collect(args, word, end, batch);
                resolve(args, batch);
                for_columns(
                    args.width, [&](auto columns, int first) __attribute__((always_inline)) {
                        add<columns()>(args, batch, first);
                    });
            }
        }
    }

  private:
    /// Calls use(number, first) for the columns in groups of 8, 4, 2 and 1.
    template <class Use>
    [[gnu::always_inline]] static void for_columns(int width, const Use& use) {
        int column = 0;
        for (; column + 8 <= width; column += 8) {
            use(std::integral_constant<int, 8>(), column);
        }
        if (column + 4 <= width) {
            use(std::integral_constant<int, 4>(), column);
            column += 4;
        }
        if (column + 2 <= width) {
            use(std::integral_constant<int, 2>(), column);
            column += 2;
        }
        if (column < width) {
            use(std::integral_constant<int, 1>(), column);
        }
    }

    /// The run that contains a word.
    struct Run {
        std::uint64_t high;
        int ones;  // of the low words
        std::int64_t first;
        std::int64_t rows;
        std::uint64_t last_word;

        Run(const HamiltonianArgs<T>& args, const ExchangeRuns<T>& all, std::uint64_t word)
            : high(word >> args.space.low.low_bits),
              ones(args.space.low.ones - count_ones(high)),
              first(args.space.low.high[high]),
              rows(std::ssize(all.words(ones))),
              last_word(high << args.space.low.low_bits | all.words(ones).back()) {}
    };

    [[gnu::always_inline]] static void add_run(const HamiltonianArgs<T>& args,
                                               const ExchangeRuns<T>& all, const Run& run,
                                               EntryBatch<T>& memory) {
        const std::uint32_t* const words = all.words(run.ones).data();
        const std::uint64_t high = run.high << args.space.low.low_bits;
        T* const diagonal = memory.diagonal.data();
        for (std::int64_t r = 0; r < run.rows; ++r) {
            diagonal[r] = diagonal_entry<EntryMath>(args, high | words[r]) - args.shift;
        }
        for_columns(
            args.width, [&](auto columns, int first) __attribute__((always_inline)) {
                add_run_columns<columns()>(args, all, run, diagonal, memory.sums.data(), first);
            });
    }

    /// Columns first .. first + columns - 1 of a run.
    template <int columns>
    [[gnu::always_inline]] static void add_run_columns(const HamiltonianArgs<T>& args,
                                                       const ExchangeRuns<T>& all, const Run& run,
                                                       const T* diagonal, T* sums, int first) {
        using Kind = typename RunExchange<T>::Kind;
        const T* const x = args.x + first;
        const std::int64_t ldx = args.ldx;
        const std::int64_t rows = run.rows;
        for_run<false, columns>(
            rows, ldx, [=](std::int64_t r) { return diagonal[r]; }, x + run.first * ldx, sums);
        const WordList& list = args.space.low;
        for (const RunExchange<T>& exchange : all.exchanges()) {
            const T factor = exchange.coefficient;
            const std::uint64_t here = run.high & exchange.high_flip;
            if (exchange.kind == Kind::within) {
                const T* const from = x + run.first * ldx;
                for (const RunPair pair : all.pairs(exchange, run.ones)) {
                    add_row<columns>(factor, from + pair.second * ldx, sums + pair.first * columns);
                    add_row<columns>(factor, from + pair.first * ldx, sums + pair.second * columns);
                }
            } else if (exchange.kind == Kind::across) {
                const T* const from = x + list.high[run.high ^ exchange.high_flip] * ldx;
                for (const RunPair link : all.links(exchange, run.ones, here == 0)) {
                    add_row<columns>(factor, from + link.second * ldx, sums + link.first * columns);
                }
            } else if (here != 0 && here != exchange.high_flip) {
                for_run<true, columns>(
                    rows, ldx, [=](std::int64_t) { return factor; },
                    x + list.high[run.high ^ exchange.high_flip] * ldx, sums);
            }
        }
        for (std::int64_t r = 0; r < rows; ++r) {
            Columns<columns> sum;
            take(sums + r * columns, sum);
            finish_row<columns>(args, run.first - args.first + r, first, sum);
        }
    }

    template <int columns>
    [[gnu::always_inline]] static void add_row(T factor, const T* x, T* sum) {
        Columns<columns> from;
        Columns<columns> to;
        take(x, from);
        take(sum, to);
        multiply_columns<true, columns>(factor, from, to);
        std::memcpy(static_cast<void*>(sum), &to, sizeof(to));
    }

    /// sums = factor(r) x for all rows, or with `adds` sums += factor(r) x.
    template <bool adds, int columns, class Factor>
    [[gnu::always_inline]] static void for_run(std::int64_t rows, std::int64_t ldx,
                                               const Factor& factor, const T* x, T* sums) {
        if constexpr (columns == 1) {
            if (ldx == 1) {
#pragma GCC ivdep
                for (std::int64_t r = 0; r < rows; ++r) {
                    const T product = multiply(factor(r), x[r]);
                    sums[r] = adds ? sums[r] + product : product;
                }
                return;
            }
        }
        for (std::int64_t r = 0; r < rows; ++r) {
            Columns<columns> from;
            Columns<columns> to;
            take(x + r * ldx, from);
            if constexpr (adds) {
                take(sums + r * columns, to);
            }
            multiply_columns<adds, columns>(factor(r), from, to);
            std::memcpy(static_cast<void*>(sums + r * columns), &to, sizeof(to));
        }
    }

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
            finish_row<columns>(args, local + r, first, sum);
        }
    }

    /// y = alpha (sum - shifts x) + beta y in row `local` of this rank.
    template <int columns>
    [[gnu::always_inline]] static void finish_row(const HamiltonianArgs<T>& args,
                                                  std::int64_t local, int first,
                                                  Columns<columns>& sum) {
        T* const to = args.y + local * args.ldy + first;
        if (args.shifts != nullptr) {
            T shifted[columns];
            take(&sum, shifted);
            for (int j = 0; j < columns; ++j) {
                const T own = args.x[local * args.ldx + first + j];
                shifted[j] -= multiply(args.shifts[first + j], own);
            }
            take(shifted, sum);
        }
        Columns<columns> y;
        multiply_columns<false, columns>(args.alpha, sum, y);
        if (args.beta != T(0)) {
            Columns<columns> before;
            take(to, before);
            multiply_columns<true, columns>(args.beta, before, y);
        }
        std::memcpy(static_cast<void*>(to), &y, sizeof(y));
    }
};

}  // namespace

template <class T>
void hamiltonian(int threads, const HamiltonianArgs<T>& args) {
    const auto width = static_cast<std::size_t>(args.width);
    const int chunks =
        chunk_count(threads, args.rows,
                    2 * sizeof(T) * width + 16 * static_cast<std::size_t>(args.entries + 1));
    const std::optional<ExchangeRuns<T>> runs = ExchangeRuns<T>::make(args);
    std::vector<EntryBatch<T>> batches;
    batches.reserve(static_cast<std::size_t>(chunks));
    for (int chunk = 0; chunk < chunks; ++chunk) {
        batches.emplace_back(args.entries, runs ? runs->longest() : 0);
    }
    run_chunks(chunks, args.rows, HamiltonianRows<T>{args, batches, runs ? &*runs : nullptr});
}

#define QUIVER_INSTANTIATE(T) template void hamiltonian(int, const HamiltonianArgs<T>&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver::host
