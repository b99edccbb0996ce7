// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/sparse/device_storage.hpp"

#include <algorithm>
#include <complex>
#include <cstddef>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "blockvec/error.hpp"
#include "blockvec/scalar.hpp"
#include "blockvec/scalar_list.hpp"
#include "kernels/cuda/csr_layout.hpp"
#include "kernels/sparse/device_layout.hpp"
#include "kernels/sparse/matrix_arrays.hpp"

namespace quiver {
namespace {

using Kind = SparseLayout::Kind;

/// The columns and values of the sums of pieces, which follow the `own` columns of X.
template <class T, class To>
void store_sums(Context& ctx, const MatrixStorage& storage, const SparseLayout::Part& p,
                std::int64_t own) {
    std::vector<To> columns;
    for (std::int64_t s = p.first_range; s < p.first_range + p.rows; ++s) {
        const SparseLayout::Range of = storage.apart.range[static_cast<std::size_t>(s)];
        for (std::int64_t piece = of.first; piece < of.first + of.count; ++piece) {
            columns.push_back(static_cast<To>(own + piece));
        }
    }
    const std::vector<T> ones(columns.size(), T(1));
    std::int64_t first = 0;
    device::copy(&first, storage.start.as<std::int64_t>() + p.first_chunk, sizeof(first),
                 ctx.stream());
    ctx.synchronize();
    device::copy(storage.column.as<To>() + first, columns.data(), columns.size() * sizeof(To),
                 ctx.stream());
    device::copy(storage.value.as<T>() + first, ones.data(), ones.size() * sizeof(T), ctx.stream());
    ctx.synchronize();
}

/// Stores the entries of all parts without the sums; only their values if csr.column is null.
template <class T, class Index, class To>
void store_parts(Context& ctx, const MatrixStorage& storage, const CsrOnDevice<T, Index>& csr,
                 To /*width*/) {
    for (const SparseLayout::Part& p : storage.part) {
        if (p.rows == 0 || p.kind == Kind::sums) {
            continue;
        }
        Buffer first;
        if (p.kind == Kind::long_rows) {
            const auto* range = storage.apart.range.data() + p.first_range;
            first = make_array<std::int64_t>(ctx, p.rows, "first entries",
                                             [&](std::size_t s) { return range[s].first; });
        }
        cuda::csr_to_chunks(ctx, CsrToChunksArgs<T, Index, To>{
                                     csr, p.rows, first.as<std::int64_t>(), storage.list_of(p),
                                     p.chunk, storage.start.as<std::int64_t>() + p.first_chunk,
                                     storage.column.as<To>(), storage.value.as<T>()});
        if (first.bytes() > 0) {
            ctx.synchronize();
        }
    }
}

template <class T, class Index>
void store_all(Context& ctx, MatrixStorage& storage, const CsrOnDevice<T, Index>& csr,
               std::int64_t columns) {
    const auto entries = [&]<class To>(To width) {
        // The kernels read entry 0 in place of entries that do not exist.
        const auto count = static_cast<std::size_t>(std::max<std::int64_t>(storage.stored, 1));
        storage.column = ctx.allocate(MemoryKind::device, count * sizeof(To), "column indices");
        storage.value = ctx.allocate(MemoryKind::device, count * sizeof(T), "matrix entries");
        store_parts(ctx, storage, csr, width);
        for (const SparseLayout::Part& p : storage.part) {
            if (p.kind == Kind::sums) {
                store_sums<T, To>(ctx, storage, p, columns);
            }
        }
    };
    storage.wide ? entries(std::int64_t{}) : entries(std::int32_t{});
}

/// The layout of rows that DeviceLayout cannot arrange.
template <class T, class Index>
void arrange_on_host(Context& ctx, MatrixStorage& storage, const CsrOnDevice<T, Index>& csr,
                     std::int64_t columns, const FormatChoice& choice, std::int64_t entries) {
    std::vector<std::int64_t> row_start = in_host_memory<std::int64_t>(
        ctx, Place::device,
        std::span<const Index>(csr.row_start, static_cast<std::size_t>(csr.rows) + 1));
    const std::int64_t first = row_start.front();
    for (std::int64_t& offset : row_start) {
        offset -= first;
    }
    std::vector<Index> column;
    const SparseLayout::Columns columns_on_host = [&] {
        column = in_host_memory<Index>(
            ctx, Place::device,
            std::span<const Index>(csr.column, static_cast<std::size_t>(entries)));
        return EntryColumns(std::span<const Index>(column));
    };
    const bool is_square = columns == csr.rows;
    const SparseLayout layout(choice, row_start, {}, csr.rows,
                              is_square ? columns_on_host : SparseLayout::Columns());
    storage.arrange(ctx, layout, std::max(csr.rows, columns) + layout.count.pieces);
}

template <class T, class Index>
MatrixStorage storage_on_device(Context& ctx, const CsrOnDevice<T, Index>& csr,
                                std::int64_t columns, const RowCounts& counts,
                                const SparseFormat& wish) {
    MatrixStorage storage;
    const FormatChoice choice{wish, Place::device, sizeof(T), is_complex_v<T>, ctx.threads()};
    DeviceLayout<Index> layout(ctx, choice, {csr.rows, csr.row_start, csr.column}, columns, counts);
    if (layout.complete) {
        storage.format = layout.format;
        storage.part = std::move(layout.part);
        storage.stored = storage.matrix_entries = layout.stored;
        storage.wide = layout.wide;
        storage.start = std::move(layout.start);
        storage.list = std::move(layout.list);
    } else {
        arrange_on_host(ctx, storage, csr, columns, choice, counts.entries);
    }
    store_all(ctx, storage, csr, columns);
    return storage;
}

template <class To, class From>
Buffer copy_of(Context& ctx, std::span<const From> from) {
    Buffer result = ctx.allocate(MemoryKind::device, from.size() * sizeof(To), "rows of a matrix");
    copy_to_device(ctx, result.as<To>(), from);
    return result;
}

/// The storage of valid sizes; see store_on_device().
template <class T, class Index>
std::optional<MatrixStorage> store_here(Context& ctx, const CsrOnDevice<T, Index>& csr,
                                        std::int64_t columns, std::int64_t entries,
                                        const SparseFormat& wish, bool sorted) {
    const CsrFacts facts = cuda::csr_facts<Index>(ctx, {csr.rows, csr.row_start, csr.column});
    if (facts.descending != 0 || facts.last - facts.first != entries ||
        (!sorted && !cuda::csr_fits(ctx, csr, columns))) {
        return std::nullopt;
    }
    return storage_on_device(ctx, csr, columns,
                             {csr.rows, entries, static_cast<std::int64_t>(facts.longest)}, wish);
}

template <class T, class To, class Index>
std::optional<MatrixStorage> store_copy(Context& ctx, const CsrArrays<T, Index>& csr,
                                        std::int64_t columns, const SparseFormat& wish,
                                        bool sorted) {
    // The copy and the storage, with some padding.
    const double bytes =
        2.2 * static_cast<double>(csr.column.size()) * (sizeof(T) + sizeof(To)) +
        static_cast<double>(csr.row_start.size()) * (sizeof(To) + 2 * sizeof(std::int64_t));
    if (bytes > static_cast<double>(device::available_bytes(ctx.device().id))) {
        return std::nullopt;
    }
    try {
        const Buffer row_start = copy_of<To>(ctx, csr.row_start);
        const Buffer column = copy_of<To>(ctx, csr.column);
        const Buffer value = copy_of<T>(ctx, csr.value);
        return store_here(
            ctx,
            CsrOnDevice<T, To>{std::ssize(csr.row_start) - 1, row_start.as<const To>(),
                               column.as<const To>(), value.as<const T>()},
            columns, std::ssize(csr.column), wish, sorted);
    } catch (const MemoryError&) {
        return std::nullopt;  // without a copy there may be memory enough
    }
}

}  // namespace

template <class T, class Index>
std::optional<MatrixStorage> store_on_device(Context& ctx, const CsrArrays<T, Index>& csr,
                                             std::int64_t rows, std::int64_t columns,
                                             const SparseFormat& wish, bool sorted) {
    if (std::ssize(csr.row_start) != rows + 1 || csr.column.size() != csr.value.size() ||
        csr.column.empty()) {
        return std::nullopt;
    }
    cuda::request_csr_kernels<T, Index>(ctx);
    if (csr.place == Place::device) {
        return store_here(
            ctx,
            CsrOnDevice<T, Index>{rows, csr.row_start.data(), csr.column.data(), csr.value.data()},
            columns, std::ssize(csr.column), wish, sorted);
    }
    // 32 bits suffice if the first and the last numbers fit and the columns are in range, which
    // only a caller that sorted them knows.
    constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
    if (sorted && std::max(rows, columns) <= most && csr.row_start.back() <= most) {
        return store_copy<T, std::int32_t>(ctx, csr, columns, wish, sorted);
    }
    return store_copy<T, Index>(ctx, csr, columns, wish, sorted);
}

namespace {

/// Calls use(PartSlots) for all parts with entries of the matrix. Index: the width of its indices.
template <class Index, class Use>
void for_each_slot_part(const MatrixStorage& storage, std::int64_t rows,
                        const std::int64_t* piece_row, Use&& use) {
    for (const SparseLayout::Part& p : storage.part) {
        if (p.rows > 0 && p.kind != Kind::sums) {
            use(PartSlots<Index>{p.rows, rows, storage.list_of(p), piece_row, p.chunk,
                                 storage.start.as<std::int64_t>() + p.first_chunk,
                                 storage.column.as<Index>()});
        }
    }
}

/// The row of each piece of a row, in device memory.
Buffer piece_rows_of(Context& ctx, const MatrixStorage& storage) {
    const auto& rows = storage.apart.piece_row;
    return make_array<std::int64_t>(ctx, std::ssize(rows), "rows of pieces",
                                    [&](std::size_t p) { return rows[p]; });
}

}  // namespace

template <class T>
void blocks_on_device(Context& ctx, const MatrixStorage& storage, std::int64_t rows, int size,
                      T* blocks) {
    const Buffer piece_row = piece_rows_of(ctx, storage);
    const auto take = [&]<class Index>(Index /*width*/) {
        for_each_slot_part<Index>(
            storage, rows, piece_row.as<std::int64_t>(), [&](const PartSlots<Index>& part) {
                cuda::diagonal_blocks(ctx, DiagonalBlocksArgs<T, Index>{
                                               part, storage.value.as<const T>(), size, blocks});
            });
    };
    storage.wide ? take(std::int64_t{}) : take(std::int32_t{});
}

template <class T>
MatrixStorage store_blocks_on_device(Context& ctx, std::int64_t rows, int size, T* blocks) {
    const std::int64_t last = rows % size;  // rows of a smaller block
    const std::int64_t entries = (rows - last) * size + last * last;
    if (last > 0) {
        T* const block = blocks + (rows - last) * size;
        const std::size_t line = static_cast<std::size_t>(last) * sizeof(T);
        const Scratch lines =
            ctx.scratch(MemoryKind::device, static_cast<std::size_t>(last) * line);
        device::copy_2d(lines.as<void>(), line, block, static_cast<std::size_t>(size) * sizeof(T),
                        line, static_cast<std::size_t>(last), ctx.stream());
        device::copy(block, lines.as<void>(), static_cast<std::size_t>(last) * line, ctx.stream());
    }
    const auto store = [&]<class Index>(Index /*width*/) {
        const auto allocate = [&](std::int64_t count) {
            return ctx.allocate(MemoryKind::device, static_cast<std::size_t>(count) * sizeof(Index),
                                "rows of a block-diagonal matrix");
        };
        const Buffer row_start = allocate(rows + 1);
        const Buffer column = allocate(entries);
        cuda::rows_of_blocks(ctx, rows, size, row_start.as<Index>(), column.as<Index>());
        return storage_on_device(ctx,
                                 CsrOnDevice<T, Index>{rows, row_start.as<const Index>(),
                                                       column.as<const Index>(), blocks},
                                 rows, {rows, entries, std::min<std::int64_t>(rows, size)},
                                 SparseFormat{});
    };
    return entries <= std::numeric_limits<std::int32_t>::max() ? store(std::int32_t{})
                                                               : store(std::int64_t{});
}

template <class T>
void replace_on_device(Context& ctx, const MatrixStorage& storage, std::int64_t rows,
                       std::int64_t nonzeros, const T* new_value) {
    const Buffer piece_row = piece_rows_of(ctx, storage);
    const std::size_t bytes = (static_cast<std::size_t>(rows) + 1) * sizeof(std::int64_t);
    const Buffer memory = ctx.allocate(MemoryKind::device, bytes, "first entries of rows");
    auto* const first = memory.as<std::int64_t>();
    device::set_zero(first, bytes, ctx.stream());
    const auto replace = [&]<class Index>(Index width) {
        for_each_slot_part<Index>(
            storage, rows, piece_row.as<std::int64_t>(),
            [&](const PartSlots<Index>& part) { cuda::count_entries(ctx, part, first); });
        cuda::prefix_sums(ctx, first, rows);
        std::int64_t total = 0;
        device::copy(&total, first + rows, sizeof(total), ctx.stream());
        ctx.synchronize();
        require_sound_index(total == nonzeros);
        store_parts(ctx, storage, CsrOnDevice<T, std::int64_t>{rows, first, nullptr, new_value},
                    width);
    };
    storage.wide ? replace(std::int64_t{}) : replace(std::int32_t{});
}

#define QUIVER_INSTANTIATE_FROM(T, Index)                                                       \
    template std::optional<MatrixStorage> store_on_device(Context&, const CsrArrays<T, Index>&, \
                                                          std::int64_t, std::int64_t,           \
                                                          const SparseFormat&, bool);
// NOLINTBEGIN(bugprone-macro-parentheses): a type
#define QUIVER_INSTANTIATE(T)                                                                   \
    template void blocks_on_device(Context&, const MatrixStorage&, std::int64_t, int, T*);      \
    template MatrixStorage store_blocks_on_device(Context&, std::int64_t, int, T*);             \
    template void replace_on_device(Context&, const MatrixStorage&, std::int64_t, std::int64_t, \
                                    const T*);                                                  \
    QUIVER_INSTANTIATE_FROM(T, std::int32_t)                                                    \
    QUIVER_INSTANTIATE_FROM(T, std::int64_t)
// NOLINTEND(bugprone-macro-parentheses)
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE
#undef QUIVER_INSTANTIATE_FROM

}  // namespace quiver
