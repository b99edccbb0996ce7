// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/sparse/assemble.hpp"

#include <algorithm>
#include <complex>
#include <exception>
#include <string>
#include <tuple>
#include <utility>

#include <omp.h>

#include "blockvec/error.hpp"
#include "blockvec/host_memory.hpp"
#include "blockvec/scalar.hpp"
#include "blockvec/scalar_list.hpp"
#include "kernels/sparse/exchange.hpp"

namespace quiver {
namespace {

/// A name that explicit instantiations in a macro can use.
template <class T>
using Entries = std::vector<Entry<T>>;

std::string place_of(std::int64_t row, std::int64_t column) {
    return "row " + std::to_string(row) + ", column " + std::to_string(column);
}

/// Throws InputError for an invalid entry. `what` names the source in the message; rows and columns
/// count from 0.
template <class T>
void check_entry(const char* what, std::int64_t row, std::int64_t column, std::int64_t cols,
                 T value) {
    if (column < 0 || column >= cols) {
        throw InputError(std::string(what) + ": " + place_of(row, column) +
                         ": the matrix has columns 0 .. " + std::to_string(cols - 1));
    }
    if (!is_finite(value)) {
        throw InputError(std::string(what) + ": " + place_of(row, column) +
                         ": the value is not finite");
    }
}

/// Calls grow(), which enlarges a vector to `size` elements; throws MemoryError with `what` on
/// failure.
template <class V, class Grow>
void grow_or_explain(const std::vector<V>&, std::uint64_t size, const char* what, Grow&& grow) {
    try {
        grow();
    } catch (const std::exception&) {  // bad_alloc or length_error
        throw MemoryError(std::string("sparse matrix: ") + std::to_string(size) + " x " +
                          std::to_string(sizeof(V)) + " bytes of memory for " + what +
                          " are not available");
    }
}

template <class V>
void resize_or_explain(std::vector<V>& vector, std::uint64_t size, const char* what) {
    grow_or_explain(vector, size, what, [&] { vector.resize(size); });
}

/// Reserves memory for an empty vector. All threads touch it, because the first access to a page
/// costs more than to set the page to zero.
template <class V>
void reserve_by_threads(std::vector<V>& vector, std::uint64_t size, const char* what, int threads) {
    grow_or_explain(vector, size, what, [&] { vector.reserve(size); });
    constexpr std::size_t page = 4096;
    auto* const bytes = reinterpret_cast<volatile char*>(vector.data());
#pragma omp parallel for num_threads(threads) schedule(static)
    for (std::size_t at = 0; at < size * sizeof(V); at += page) {
        bytes[at] = 0;
    }
}

/// Resizes both arrays of entries at the same time: each resize is a memset by one thread. The
/// memory is reserved before, so that no exception leaves a section.
template <class T>
void resize_by_threads(CsrRows<T>& rows, std::uint64_t entries, int threads) {
    reserve_by_threads(rows.column, entries, "column indices", threads);
    reserve_by_threads(rows.value, entries, "matrix entries", threads);
#pragma omp parallel sections num_threads(threads)
    {
#pragma omp section
        rows.column.resize(entries);
#pragma omp section
        rows.value.resize(entries);
    }
}

/// Number of row offsets: one more than the rows, whose number may be the largest of 64 bits.
inline std::uint64_t offsets_of(const RowMap& map) {
    return static_cast<std::uint64_t>(map.local_rows()) + 1;
}

/// Sorts rows by column and sums duplicates. The values of one position are summed in ascending
/// order, so that the sum does not depend on their source or order.
template <class T>
class RowFinisher {
  public:
    /// Returns the number of remaining entries, which are at the front.
    std::size_t finish(std::int64_t* column, T* value, std::size_t count) {
        if (std::adjacent_find(column, column + count, std::greater_equal<>()) == column + count) {
            return count;
        }
        entries_.resize(count);
        for (std::size_t i = 0; i < count; ++i) {
            entries_[i] = {column[i], value[i]};
        }
        std::sort(entries_.begin(), entries_.end(),
                  [](const auto& left, const auto& right) { return key(left) < key(right); });
        std::size_t last = 0;
        column[0] = entries_[0].first;
        value[0] = entries_[0].second;
        for (std::size_t i = 1; i < count; ++i) {
            if (entries_[i].first == column[last]) {
                value[last] += entries_[i].second;
            } else {
                ++last;
                column[last] = entries_[i].first;
                value[last] = entries_[i].second;
            }
        }
        return last + 1;
    }

  private:
    using Pair = std::pair<std::int64_t, T>;
    static auto key(const Pair& entry) {
        if constexpr (is_complex_v<T>) {
            return std::tuple(entry.first, entry.second.real(), entry.second.imag());
        } else {
            return std::tuple(entry.first, entry.second);
        }
    }
    std::vector<Pair> entries_;
};

/// Sorts every row in place and closes the gaps that summed duplicates leave.
template <class T>
void finish_rows(CsrRows<T>& rows, int threads = 1) {
    const std::int64_t count = std::ssize(rows.row_start) - 1;
    const auto begin_of = [&](std::int64_t row) {
        return rows.row_start[static_cast<std::size_t>(row)];
    };
    std::vector<std::int64_t> kept(static_cast<std::size_t>(count));
    bool complete = true;
#pragma omp parallel num_threads(threads) reduction(&& : complete)
    {
        RowFinisher<T> finisher;
#pragma omp for schedule(static)
        for (std::int64_t i = 0; i < count; ++i) {
            const std::int64_t length = begin_of(i + 1) - begin_of(i);
            const auto left = static_cast<std::int64_t>(
                finisher.finish(rows.column.data() + begin_of(i), rows.value.data() + begin_of(i),
                                static_cast<std::size_t>(length)));
            kept[static_cast<std::size_t>(i)] = left;
            complete = complete && left == length;
        }
    }
    if (complete) {
        return;
    }
    std::int64_t write = 0;
    std::int64_t begin = 0;
    for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t end = begin_of(i + 1);
        const std::int64_t left = kept[static_cast<std::size_t>(i)];
        if (write != begin) {
            std::copy_n(rows.column.begin() + begin, left, rows.column.begin() + write);
            std::copy_n(rows.value.begin() + begin, left, rows.value.begin() + write);
        }
        write += left;
        rows.row_start[static_cast<std::size_t>(i) + 1] = write;
        begin = end;
    }
    rows.column.resize(static_cast<std::size_t>(write));
    rows.value.resize(static_cast<std::size_t>(write));
}

template <class T>
using RowCallback = std::function<void(std::int64_t, RowEntries<T>&)>;

/// Calls use(thread, row, entries) for every row of the map; each thread handles consecutive rows.
/// Throws the error of the lowest failing row.
template <class T, class Use>
void for_each_row(const RowMap& map, int threads, const RowCallback<T>& make_row, Use&& use) {
    std::vector<std::exception_ptr> errors(static_cast<std::size_t>(threads));
#pragma omp parallel for num_threads(threads) schedule(static, 1)
    for (int thread = 0; thread < threads; ++thread) {
        try {
            RowEntries<T> entries;
            const std::int64_t begin = map.local_rows() / threads * thread +
                                       std::min<std::int64_t>(map.local_rows() % threads, thread);
            const std::int64_t end =
                begin + map.local_rows() / threads + (thread < map.local_rows() % threads ? 1 : 0);
            for (std::int64_t i = begin; i < end; ++i) {
                entries.column.clear();
                entries.value.clear();
                make_row(map.first_row() + i, entries);
                use(static_cast<std::size_t>(thread), i, entries);
            }
        } catch (...) {
            errors[static_cast<std::size_t>(thread)] = std::current_exception();
        }
    }
    for (const std::exception_ptr& error : errors) {
        if (error) {
            std::rethrow_exception(error);
        }
    }
}

/// The entries that a thread makes, in blocks, so that they need not move when more follow.
template <class T>
class EntryBlocks {
  public:
    void append(const RowEntries<T>& row, std::size_t count) {
        if (blocks_.empty() || blocks_.back().column.size() + count > capacity_) {
            capacity_ = std::max(count, entries_of_block);
            RowEntries<T>& block = blocks_.emplace_back();
            grow_or_explain(block.column, size_ + capacity_, "column indices",
                            [&] { block.column.reserve(capacity_); });
            grow_or_explain(block.value, size_ + capacity_, "matrix entries",
                            [&] { block.value.reserve(capacity_); });
        }
        RowEntries<T>& block = blocks_.back();
        const auto end = static_cast<std::ptrdiff_t>(count);
        block.column.insert(block.column.end(), row.column.begin(), row.column.begin() + end);
        block.value.insert(block.value.end(), row.value.begin(), row.value.begin() + end);
        size_ += count;
    }
    std::size_t size() const { return size_; }
    /// Moves all entries to these addresses.
    void move_to(std::int64_t* column, T* value) {
        for (RowEntries<T>& block : blocks_) {
            column = std::copy(block.column.begin(), block.column.end(), column);
            value = std::copy(block.value.begin(), block.value.end(), value);
            block = {};
        }
    }

  private:
    static constexpr std::size_t entries_of_block = std::size_t{1} << 16;
    std::vector<RowEntries<T>> blocks_;
    std::size_t capacity_ = 0;  // of the last block
    std::size_t size_ = 0;
};

template <class T>
void fill_from_callback(CsrRows<T>& rows, int threads, const RowCallback<T>& make_row) {
    struct Part {
        EntryBlocks<T> entries;
        RowFinisher<T> finisher;
    };
    std::vector<Part> parts(static_cast<std::size_t>(threads));
    reserve_by_threads(rows.row_start, offsets_of(rows.map), "row offsets", threads);
    rows.row_start.resize(offsets_of(rows.map));
    for_each_row<T>(
        rows.map, threads, make_row,
        [&](std::size_t thread, std::int64_t i, RowEntries<T>& entries) {
            const std::int64_t row = rows.map.first_row() + i;
            if (entries.column.size() != entries.value.size()) {
                throw InputError("row callback: row " + std::to_string(row) + " has " +
                                 std::to_string(entries.column.size()) + " columns and " +
                                 std::to_string(entries.value.size()) + " values");
            }
            for (std::size_t k = 0; k < entries.column.size(); ++k) {
                check_entry("row callback", row, entries.column[k], rows.global_cols,
                            entries.value[k]);
            }
            Part& part = parts[thread];
            const std::size_t kept = part.finisher.finish(
                entries.column.data(), entries.value.data(), entries.column.size());
            part.entries.append(entries, kept);
            rows.row_start[static_cast<std::size_t>(i) + 1] = static_cast<std::int64_t>(kept);
        });
    std::partial_sum(rows.row_start.begin(), rows.row_start.end(), rows.row_start.begin());
    std::vector<std::size_t> first(parts.size(), 0);
    for (std::size_t p = 1; p < parts.size(); ++p) {
        first[p] = first[p - 1] + parts[p - 1].entries.size();
    }
    resize_by_threads(rows, static_cast<std::uint64_t>(rows.row_start.back()), threads);
#pragma omp parallel for num_threads(threads) schedule(static, 1)
    for (std::size_t p = 0; p < parts.size(); ++p) {
        parts[p].entries.move_to(rows.column.data() + first[p], rows.value.data() + first[p]);
    }
}

/// Copies valid offsets, and columns and values. Throws InputError for the first entry that is
/// invalid.
template <class T, class Index>
void copy_csr(CsrRows<T>& rows, std::span<const Index> row_start, std::span<const Index> column,
              std::span<const T> value, int threads) {
    reserve_by_threads(rows.row_start, row_start.size(), "row offsets", threads);
    rows.row_start.resize(row_start.size());
    resize_by_threads(rows, column.size(), threads);
    const std::int64_t first = row_start.front();
    bool valid = true;
#pragma omp parallel num_threads(threads) reduction(&& : valid)
    {
#pragma omp for schedule(static) nowait
        for (std::size_t i = 0; i < row_start.size(); ++i) {
            rows.row_start[i] = row_start[i] - first;
        }
#pragma omp for schedule(static)
        for (std::size_t k = 0; k < column.size(); ++k) {
            rows.column[k] = column[k];
            rows.value[k] = value[k];
            valid = valid && column[k] >= 0 && column[k] < rows.global_cols && is_finite(value[k]);
        }
    }
    for (std::size_t i = 0; i + 1 < row_start.size() && !valid; ++i) {
        for (auto k = static_cast<std::size_t>(rows.row_start[i]);
             k < static_cast<std::size_t>(rows.row_start[i + 1]); ++k) {
            check_entry("user CSR", rows.map.first_row() + static_cast<std::int64_t>(i),
                        rows.column[k], rows.global_cols, value[k]);
        }
    }
}

/// Checks that the memory for row offsets and counts suffices, before any entry is known.
void require_row_memory(const Comm& comm, const RowMap& map) {
    require_host_memory(comm, 16 * static_cast<double>(map.local_rows()),
                        "sparse matrix: " + std::to_string(map.global_rows()) + " rows take");
}

/// Counts the entries, duplicates included, that each row of this rank will get.
template <class T>
std::vector<std::int64_t> count_rows(const Comm& comm, const RowMap& map,
                                     const std::vector<Entry<T>>& entries) {
    std::vector<std::int64_t> counts;
    comm.agree([&] {
        resize_or_explain(counts, static_cast<std::uint64_t>(map.local_rows()), "row counts");
    });
    exchange<std::int64_t>(
        comm, static_cast<std::int64_t>(entries.size()),
        [&](std::int64_t i) { return entries[static_cast<std::size_t>(i)].row; },
        [&](std::int64_t row) { return map.owner(row); },
        [&](int, std::span<const std::int64_t> items) {
            for (const std::int64_t row : items) {
                ++counts[static_cast<std::size_t>(row - map.first_row())];
            }
        });
    return counts;
}

template <class T>
void check_entries(const std::vector<Entry<T>>& entries, std::int64_t global_rows,
                   std::int64_t global_cols) {
    for (const Entry<T>& entry : entries) {
        if (entry.row < 0 || entry.row >= global_rows) {
            throw InputError("entries: " + place_of(entry.row, entry.column) +
                             ": the matrix has rows 0 .. " + std::to_string(global_rows - 1));
        }
        check_entry("entries", entry.row, entry.column, global_cols, entry.value);
    }
}

/// Sends the entries to the owners of their rows. `next`: the counts of count_rows().
template <class T>
CsrRows<T> place_entries(const Comm& comm, const RowMap& map, std::int64_t global_cols,
                         Symmetry symmetry, std::vector<Entry<T>> entries,
                         std::vector<std::int64_t> next) {
    CsrRows<T> rows;
    rows.map = map;
    rows.global_cols = global_cols;
    rows.symmetry = symmetry;
    comm.agree([&] {
        resize_or_explain(rows.row_start, offsets_of(rows.map), "row offsets");
        std::partial_sum(next.begin(), next.end(), rows.row_start.begin() + 1);
        resize_or_explain(rows.column, static_cast<std::uint64_t>(rows.row_start.back()),
                          "column indices");
        resize_or_explain(rows.value, static_cast<std::uint64_t>(rows.row_start.back()),
                          "matrix entries");
    });
    std::copy_n(rows.row_start.begin(), next.size(), next.begin());
    exchange<Entry<T>>(
        comm, static_cast<std::int64_t>(entries.size()),
        [&](std::int64_t i) { return entries[static_cast<std::size_t>(i)]; },
        [&](const Entry<T>& entry) { return rows.map.owner(entry.row); },
        [&](int, std::span<const Entry<T>> items) {
            for (const Entry<T>& entry : items) {
                const auto slot = static_cast<std::size_t>(
                    next[static_cast<std::size_t>(entry.row - rows.map.first_row())]++);
                rows.column[slot] = entry.column;
                rows.value[slot] = entry.value;
            }
        });
    std::vector<Entry<T>>().swap(entries);
    comm.agree([&] { finish_rows(rows); });
    return rows;
}

}  // namespace

template <class T>
CsrRows<T> rows_from_callback(const Comm& comm, std::int64_t global_rows, Symmetry symmetry,
                              const RowCallback<T>& make_row, Partition partition, int threads,
                              std::optional<std::int64_t> global_cols) {
    CsrRows<T> rows;
    comm.agree([&] { rows.map = RowMap::by_rows(comm, global_rows, partition.weights); });
    require_row_memory(comm, rows.map);
    rows.global_cols = global_cols.value_or(global_rows);
    rows.symmetry = symmetry;
    threads = std::max(threads, 1);
    if (partition.kind == Partition::by_nonzeros && comm.size() > 1) {
        std::vector<std::int64_t> counts;
        comm.agree([&] {
            resize_or_explain(counts, static_cast<std::uint64_t>(rows.map.local_rows()),
                              "row counts");
            for_each_row<T>(rows.map, threads, make_row,
                            [&](std::size_t, std::int64_t i, RowEntries<T>& entries) {
                                counts[static_cast<std::size_t>(i)] =
                                    static_cast<std::int64_t>(entries.column.size());
                            });
        });
        rows.map = RowMap::by_nonzeros(comm, rows.map, counts, partition.weights);
    }
    comm.agree([&] { fill_from_callback(rows, threads, make_row); });
    return rows;
}

template <class T, class Index>
CsrRows<T> rows_from_csr(const Comm& comm, const RowMap& map, Symmetry symmetry,
                         std::span<const Index> row_start, std::span<const Index> column,
                         std::span<const T> value, int threads,
                         const std::optional<RowMap>& column_map) {
    CsrRows<T> rows;
    rows.map = map;
    rows.global_cols = (column_map ? *column_map : map).global_rows();
    rows.column_map = column_map;
    rows.symmetry = symmetry;
    comm.agree([&] {
        if (map.ranks() != comm.size() || map.rank() != comm.rank()) {
            throw ShapeError("user CSR: the row map is that of rank " + std::to_string(map.rank()) +
                             " of " + std::to_string(map.ranks()) + ", but this is rank " +
                             std::to_string(comm.rank()) + " of " + std::to_string(comm.size()));
        }
        const auto local_rows = static_cast<std::size_t>(map.local_rows());
        if (row_start.size() != local_rows + 1) {
            throw ShapeError("user CSR: " + std::to_string(row_start.size()) + " row offsets for " +
                             std::to_string(local_rows) +
                             " rows; the number of offsets must be the number of rows plus one" +
                             (comm.size() > 1 ? "; each rank passes its own rows only" : ""));
        }
        if (!std::is_sorted(row_start.begin(), row_start.end())) {
            throw InputError("user CSR: the row offsets must be nondecreasing");
        }
        const auto count = static_cast<std::size_t>(row_start.back() - row_start.front());
        if (column.size() != count || value.size() != count) {
            throw ShapeError("user CSR: the row offsets span " + std::to_string(count) +
                             " entries, but there are " + std::to_string(column.size()) +
                             " columns and " + std::to_string(value.size()) + " values");
        }
        copy_csr(rows, row_start, column, value, threads);
        finish_rows(rows, threads);
    });
    return rows;
}

template <class T>
CsrRows<T> rows_from_entries(const Comm& comm, std::int64_t global_rows, std::int64_t global_cols,
                             Symmetry symmetry, std::vector<Entry<T>> entries,
                             Partition partition) {
    RowMap map;
    comm.agree([&] { map = RowMap::by_rows(comm, global_rows, partition.weights); });
    require_row_memory(comm, map);
    comm.agree([&] { check_entries(entries, global_rows, global_cols); });
    std::vector<std::int64_t> counts = count_rows(comm, map, entries);
    if (partition.kind == Partition::by_nonzeros && comm.size() > 1) {
        const RowMap balanced = RowMap::by_nonzeros(comm, map, counts, partition.weights);
        if (!(balanced == map)) {
            map = balanced;
            counts = count_rows(comm, map, entries);
        }
    }
    return place_entries(comm, map, global_cols, symmetry, std::move(entries), std::move(counts));
}

template <class T>
CsrRows<T> rows_from_entries(const Comm& comm, const RowMap& map, const RowMap& column_map,
                             Symmetry symmetry, std::vector<Entry<T>> entries) {
    const std::int64_t global_cols = column_map.global_rows();
    require_row_memory(comm, map);
    comm.agree([&] { check_entries(entries, map.global_rows(), global_cols); });
    std::vector<std::int64_t> counts = count_rows(comm, map, entries);
    CsrRows<T> rows =
        place_entries(comm, map, global_cols, symmetry, std::move(entries), std::move(counts));
    rows.column_map = column_map;
    return rows;
}

#define QUIVER_INSTANTIATE(T)                                                                  \
    template CsrRows<T> rows_from_callback(const Comm&, std::int64_t, Symmetry,                \
                                           const RowCallback<T>&, Partition, int,              \
                                           std::optional<std::int64_t>);                       \
    template CsrRows<T> rows_from_csr(                                                         \
        const Comm&, const RowMap&, Symmetry, std::span<const std::int32_t>,                   \
        std::span<const std::int32_t>, std::span<const T>, int, const std::optional<RowMap>&); \
    template CsrRows<T> rows_from_csr(                                                         \
        const Comm&, const RowMap&, Symmetry, std::span<const std::int64_t>,                   \
        std::span<const std::int64_t>, std::span<const T>, int, const std::optional<RowMap>&); \
    template CsrRows<T> rows_from_entries(const Comm&, std::int64_t, std::int64_t, Symmetry,   \
                                          Entries<T>, Partition);                              \
    template CsrRows<T> rows_from_entries(const Comm&, const RowMap&, const RowMap&, Symmetry, \
                                          Entries<T>);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
