// SPDX-License-Identifier: BSD-3-Clause
// shifted_gram on the host: pieces of shifted rows are formed in a buffer that stays in the L1
// cache, and the sums of tsmttsm multiply them.
#include <algorithm>

#include "kernels/host/pieces.hpp"
#include "kernels/precision_lists.hpp"

namespace quiver::host {
namespace {

/// Wider blocks are computed in panels of G, whose sums stay in the cache.
constexpr int widest_panel = 256;
/// Bytes of a piece of one panel: shifted rows stay in the L1 cache; rows that are multiplied in
/// place are longer runs, of which the second-level cache keeps one for the sums of the columns.
constexpr std::int64_t shifted_bytes = 32768;
constexpr std::int64_t in_place_bytes = 262144;
/// Rows after those of a piece that vector loads may read.
constexpr std::int64_t rows_beyond = 16;
/// Rows without gaps are shifted several at a time, as lines of about this many numbers.
constexpr int line_length = 64;

template <class In>
[[gnu::always_inline]] inline double number(In value) {
    if constexpr (sizeof(In) == 2) {
        return static_cast<double>(widened(value));
    } else {
        return static_cast<double>(value);
    }
}

std::int64_t rows_of_piece(std::int64_t bytes, int columns) {
    return std::clamp<std::int64_t>(bytes / 8 / columns / 32 * 32, 32, bytes / 32);
}

/// Forms factor (X - 1 shift^T) for some columns of X, and adds its rows to sums: line r of `rows`
/// rows has its own sums and a copy of the shift. z = null: the sums of X itself only.
template <class In>
struct ShiftedRows {
    const In* x;
    std::int64_t ldx;
    int columns;
    int lines;
    const double* shift;  // lines x columns
    double factor;
    double* z;
    double* sums;  // lines x columns

    template <class Isa>
    [[gnu::always_inline]] inline void rows(Chunk piece) const noexcept {
        for (std::int64_t row = piece.first; row < piece.last; row += lines) {
            const std::int64_t count = std::min<std::int64_t>(lines, piece.last - row) * columns;
            const In* const from = x + row * ldx;
            double* const to = z + (row - piece.first) * columns;
            if (z == nullptr) {
#pragma GCC ivdep
                for (std::int64_t k = 0; k < count; ++k) {
                    sums[k] += number(from[k]);
                }
                continue;
            }
#pragma GCC ivdep
            for (std::int64_t k = 0; k < count; ++k) {
                const double value = factor * (number(from[k]) - shift[k]);
                to[k] = value;
                sums[k] += value;
            }
        }
    }
};

/// The panel of G with the columns of A and B, which are columns of Z; A is B on the diagonal.
template <class In>
class PanelOfGram {
  public:
    PanelOfGram(int threads, const ShiftedGramArgs<In>& args, int first_a, int first_b,
                void* workspace)
        : args_(args),
          chunks_(chunk_count(threads, args.rows,
                              count_of(1, std::min(args.n, widest_panel)) * sizeof(In))),
          a_(args, first_a),
          b_(args, first_b),
          in_place_(std::is_same_v<In, double> && args.factor == 1 && a_.is_unshifted(args) &&
                    b_.is_unshifted(args)),
          rows_(rows_of_piece(in_place_ ? in_place_bytes : shifted_bytes,
                              std::max(a_.columns, b_.columns))),
          sums_bytes_(cache_lines(BlockSums<double>::workspace_bytes(chunks_, product()))),
          workspace_(static_cast<std::byte*>(workspace)) {}

    std::size_t workspace_bytes() const {
        return sums_bytes_ + static_cast<std::size_t>(chunks_) * chunk_bytes();
    }

    void run() {
        for_chunks(chunks_, args_.rows, [&](Chunk chunk) { add(chunk); });
        BlockSums<double>(chunks_, product(), workspace_).finish();
        if (is_diagonal()) {
            double* const sums = args_.sums + std::int64_t{args_.n} * args_.n + a_.first;
            for (int j = 0; j < a_.columns; ++j) {
                sums[j] = 0;
                for (int chunk = 0; chunk < chunks_; ++chunk) {
                    sums[j] += buffers(chunk).totals[j];
                }
            }
        }
        for (int i = 0; i < a_.columns; ++i) {
            for (int j = is_diagonal() ? i + 1 : 0; j < b_.columns; ++j) {
                args_.sums[std::int64_t{b_.first + j} * args_.n + a_.first + i] =
                    args_.sums[std::int64_t{a_.first + i} * args_.n + b_.first + j];
            }
        }
    }

  private:
    /// Some columns of Z.
    struct Columns {
        int first;
        int columns;
        /// Rows of a line of ShiftedRows.
        int lines;

        Columns(const ShiftedGramArgs<In>& args, int first_)
            : first(first_),
              columns(std::min(widest_panel, args.n - first_)),
              lines(args.ldx == columns ? std::max(1, line_length / columns) : 1) {}
        bool is_unshifted(const ShiftedGramArgs<In>& args) const {
            return std::all_of(args.shift + first, args.shift + first + columns,
                               [](double value) { return value == 0; });
        }
        std::size_t line() const { return count_of(lines, columns); }
    };
    /// The memory of a chunk.
    struct Buffers {
        double *z_a, *z_b, *shift_a, *shift_b, *line_a, *line_b, *totals;
    };

    bool is_diagonal() const { return a_.first == b_.first; }
    std::size_t piece_size(const Columns& columns) const {
        return in_place_ ? 0 : count_of(rows_ + rows_beyond, columns.columns);
    }
    std::size_t chunk_bytes() const {
        const auto bytes = [&](const Columns& columns) {
            return cache_lines(piece_size(columns) * sizeof(double)) +
                   2 * cache_lines(columns.line() * sizeof(double));
        };
        return bytes(a_) + bytes(b_) + cache_lines(count_of(1, a_.columns) * sizeof(double));
    }
    Buffers buffers(int chunk) const {
        Arrays arrays(workspace_ + sums_bytes_ + static_cast<std::size_t>(chunk) * chunk_bytes());
        const auto take = [&](std::size_t count) { return arrays.take<double>(count); };
        return {take(piece_size(a_)),
                take(piece_size(b_)),
                take(a_.line()),
                take(b_.line()),
                take(a_.line()),
                take(b_.line()),
                take(count_of(1, a_.columns))};
    }

    /// The product of whole blocks; a piece replaces the operands.
    TsmttsmArgs<double> product() const {
        TsmttsmArgs<double> product{};
        product.rows = args_.rows;
        product.m = a_.columns;
        product.n = b_.columns;
        product.alpha = 1;
        product.lda = a_.columns;
        product.ldb = b_.columns;
        product.c = args_.sums + std::int64_t{a_.first} * args_.n + b_.first;
        product.ldc = args_.n;
        if constexpr (std::is_same_v<In, double>) {
            if (in_place_) {
                product.a = args_.x + a_.first;
                product.b = args_.x + b_.first;
                product.lda = product.ldb = args_.ldx;
            }
        }
        return product;
    }

    /// The rows of a piece in z, unless that is null, and their sums in `line`.
    void form(const Columns& columns, Chunk piece, double* z, const double* shift,
              double* line) const {
        std::fill_n(line, columns.line(), 0.0);
        run_chunk(ShiftedRows<In>{args_.x + columns.first, args_.ldx, columns.columns,
                                  columns.lines, shift, args_.factor, z, line},
                  piece);
    }

    void add(Chunk chunk) const {
        const Buffers memory = buffers(chunk.index);
        std::fill_n(memory.z_a, piece_size(a_), 0.0);
        std::fill_n(memory.z_b, piece_size(b_), 0.0);
        std::fill_n(memory.totals, a_.columns, 0.0);
        const auto repeat = [&](const Columns& columns, double* to) {
            for (int line = 0; line < columns.lines; ++line) {
                std::copy_n(args_.shift + columns.first, columns.columns,
                            to + std::ptrdiff_t{line} * columns.columns);
            }
        };
        repeat(a_, memory.shift_a);
        repeat(b_, memory.shift_b);
        TsmttsmArgs<double> product = this->product();
        std::int64_t first = chunk.first;
        do {
            const Chunk piece{first, std::min(first + rows_, chunk.last), chunk.index};
            const bool starts = first == chunk.first;
            const bool ends = piece.last == chunk.last;
            if (in_place_) {
                // The sums of the columns come second, because the products hide the time of the
                // memory.
                BlockSums<double>(chunks_, product, workspace_)
                    .add(piece, args_.rows, starts, ends);
                if (is_diagonal()) {
                    form(a_, piece, nullptr, memory.shift_a, memory.line_a);
                }
            } else {
                form(a_, piece, memory.z_a, memory.shift_a, memory.line_a);
                if (!is_diagonal()) {
                    form(b_, piece, memory.z_b, memory.shift_b, memory.line_b);
                }
                product.a = memory.z_a;
                product.b = is_diagonal() ? memory.z_a : memory.z_b;
                BlockSums<double>(chunks_, product, workspace_)
                    .add(Chunk{0, piece.last - piece.first, chunk.index}, rows_ + rows_beyond,
                         starts, ends);
            }
            for (std::size_t k = 0; is_diagonal() && k < a_.line(); ++k) {
                memory.totals[k % static_cast<std::size_t>(a_.columns)] += memory.line_a[k];
            }
            first = piece.last;
        } while (first < chunk.last);
    }

    const ShiftedGramArgs<In>& args_;
    int chunks_;
    Columns a_, b_;
    bool in_place_;
    std::int64_t rows_;
    std::size_t sums_bytes_;
    std::byte* workspace_;
};

/// Calls use(panel) for the panels on and above the diagonal.
template <class In, class Use>
void for_panels(int threads, const ShiftedGramArgs<In>& args, void* workspace, const Use& use) {
    for (int i = 0; i < args.n; i += widest_panel) {
        for (int j = i; j < args.n; j += widest_panel) {
            use(PanelOfGram<In>(threads, args, i, j, workspace));
        }
    }
}

}  // namespace

template <class In>
std::size_t workspace_bytes(int threads, const ShiftedGramArgs<In>& args) {
    std::size_t most = 0;
    for_panels(threads, args, nullptr, [&](const PanelOfGram<In>& panel) {
        most = std::max(most, panel.workspace_bytes());
    });
    return most;
}

template <class In>
void shifted_gram(int threads, const ShiftedGramArgs<In>& args, void* workspace) {
    for_panels(threads, args, workspace, [](PanelOfGram<In> panel) { panel.run(); });
}

#define QUIVER_INSTANTIATE(In)                                             \
    template std::size_t workspace_bytes(int, const ShiftedGramArgs<In>&); \
    template void shifted_gram(int, const ShiftedGramArgs<In>&, void*);
QUIVER_FOR_EACH_REAL_ELEMENT(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver::host
