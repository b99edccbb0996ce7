// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/sparse/sparse_matrix.hpp"

#include <algorithm>
#include <bit>
#include <complex>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include <omp.h>

#include "blockvec/config.hpp"
#include "blockvec/error.hpp"
#include "blockvec/scalar_list.hpp"
#include "blockvec/shape.hpp"
#include "kernels/cuda/cuda_kernels.hpp"
#include "kernels/operation.hpp"
#include "kernels/sparse/assemble.hpp"
#include "kernels/sparse/halo.hpp"
#include "kernels/sparse/product_arrays.hpp"
#include "kernels/sparse/row_split.hpp"
#include "kernels/sparse/sparse_layout.hpp"

namespace quiver {

const char* to_string(Symmetry symmetry) {
    switch (symmetry) {
        case Symmetry::symmetric:
            return "symmetric";
        case Symmetry::skew_symmetric:
            return "skew-symmetric";
        case Symmetry::hermitian:
            return "hermitian";
        default:
            return "general";
    }
}

template <class T>
struct SparseMatrix<T>::Data {
    RowMap map;
    Symmetry symmetry = Symmetry::general;
    Place place = Place::host;
    std::int64_t nonzeros = 0;
    std::int64_t global_nonzeros = 0;
    std::int64_t stored = 0;  // nonzeros and padding
    bool wide = false;        // 64-bit indices
    SparseFormat format;
    std::vector<SparseLayout::Part> part;  // see SparseLayout
    int tile = 0;                          // see SparseLayout
    Buffer list;                           // see SparseLayout::list()
    Buffer start;
    Buffer full;  // on the host only
    Buffer column;
    Buffer value;
    std::unique_ptr<Halo<T>> halo;
    std::weak_ptr<const void> index_checks;  // see check_indices()

    void arrange(Context& ctx, const SparseLayout& layout);
    void upload(Context& ctx, CsrRows<T>&& rows, const NeededRows& needed,
                const SparseLayout& layout);
    template <class Index>
    void convert(Context& ctx, const CsrArrays<T, Index>& csr,
                 const std::vector<std::int64_t>& row_start, const SparseFormat& wish);
    void set_rows(SpmmvArgs<T>& args, const SparseLayout::Part& rows) const;
    SpmmvArgs<T> arguments(BlockView<const T> x, BlockView<T> y,
                           const ApplyOptions<T>& options) const;
};

namespace {

template <class T>
void require_offsets(const CsrRows<T>& rows) {
    const auto local_rows = static_cast<std::size_t>(rows.map.local_rows());
    if (rows.row_start.size() != local_rows + 1 || rows.row_start.front() != 0 ||
        !std::is_sorted(rows.row_start.begin(), rows.row_start.end()) ||
        rows.row_start.back() != rows.nonzeros() || rows.column.size() != rows.value.size()) {
        throw ShapeError("sparse matrix: row offsets, columns and values do not match " +
                         std::to_string(local_rows) + " rows");
    }
}

template <class T>
void check_rows(const Comm& comm, const CsrRows<T>& rows, int threads) {
    const RowMap& map = rows.map;
    const auto local_rows = static_cast<std::size_t>(map.local_rows());
    if (map.ranks() != comm.size() || map.rank() != comm.rank()) {
        throw ShapeError("sparse matrix: the row map is that of rank " +
                         std::to_string(map.rank()) + " of " + std::to_string(map.ranks()) +
                         ", but this is rank " + std::to_string(comm.rank()) + " of " +
                         std::to_string(comm.size()));
    }
    require_offsets(rows);
    bool fits = true;
#pragma omp parallel for num_threads(threads) schedule(static) reduction(&& : fits)
    for (std::size_t k = 0; k < rows.column.size(); ++k) {
        fits = fits && rows.column[k] >= 0 && rows.column[k] < rows.global_cols;
    }
    for (std::size_t i = 0; i < local_rows && !fits; ++i) {
        for (auto k = static_cast<std::size_t>(rows.row_start[i]);
             k < static_cast<std::size_t>(rows.row_start[i + 1]); ++k) {
            if (rows.column[k] < 0 || rows.column[k] >= rows.global_cols) {
                throw InputError("sparse matrix: row " +
                                 std::to_string(map.first_row() + static_cast<std::int64_t>(i)) +
                                 " has column " + std::to_string(rows.column[k]) +
                                 ", but the matrix has columns 0 .. " +
                                 std::to_string(rows.global_cols - 1));
            }
        }
    }
}

Buffer to_place(Context& ctx, Buffer host, const char* what) {
    if (ctx.place() == Place::host || host.bytes() == 0) {
        return host;
    }
    Buffer result = ctx.allocate(MemoryKind::device, host.bytes(), what);
    device::copy(result.as<void>(), host.as<void>(), host.bytes(), ctx.stream());
    ctx.synchronize();
    return result;
}

template <class V>
Buffer host_array(Context& ctx, std::int64_t size, const char* what) {
    return ctx.allocate(MemoryKind::host, static_cast<std::size_t>(size) * sizeof(V), what);
}

/// Fills a new array in the Context's place with at(i), using all threads.
template <class V, class At>
Buffer make_array(Context& ctx, std::int64_t size, const char* what, At&& at) {
    Buffer host = host_array<V>(ctx, size, what);
    V* data = host.as<V>();
#pragma omp parallel for num_threads(ctx.threads()) schedule(static)
    for (std::int64_t i = 0; i < size; ++i) {
        data[i] = static_cast<V>(at(static_cast<std::size_t>(i)));
    }
    return to_place(ctx, std::move(host), what);
}

/// The entries in storage order: at(k) for entry k of the rows, `padding` elsewhere.
template <class V, class At>
Buffer make_entries(Context& ctx, const SparseLayout& layout,
                    const std::vector<std::int64_t>& row_start, const char* what, V padding,
                    At&& at) {
    Buffer host = host_array<V>(ctx, layout.stored(), what);
    V* data = host.as<V>();
    const int chunk = layout.format.chunk;
    for (const SparseLayout::Part& part : layout.part) {
        const std::int64_t chunks = (part.rows + chunk - 1) / chunk;
#pragma omp parallel for num_threads(ctx.threads()) schedule(static)
        for (std::int64_t c = 0; c < chunks; ++c) {
            const auto start = layout.start.begin() + part.first_chunk + c;
            std::fill(data + start[0], data + start[1], padding);
            for (std::int64_t s = c * chunk; s < std::min((c + 1) * chunk, part.rows); ++s) {
                const auto row = static_cast<std::size_t>(layout.row_of(part.first_slot + s));
                V* to = data + start[0] + (s - c * chunk);
                for (std::int64_t k = row_start[row]; k < row_start[row + 1]; ++k, to += chunk) {
                    *to = static_cast<V>(at(static_cast<std::size_t>(k)));
                }
            }
        }
    }
    return to_place(ctx, std::move(host), what);
}

template <class T>
SparseLayout layout_of(const CsrRows<T>& rows, Place place, const SparseFormat& wish,
                       RowSplit split, int threads = 1) {
    return SparseLayout(
        {wish, place, sizeof(T), is_complex_v<T>, threads}, rows.row_start, std::move(split.order),
        split.interior, [&] { return EntryColumns(std::span<const std::int64_t>(rows.column)); },
        rows.map.first_row(), split.stages);
}

template <class T, class Index>
CsrOnDevice<T, Index> on_device(const CsrArrays<T, Index>& csr) {
    return {std::ssize(csr.row_start) - 1, csr.row_start.data(), csr.column.data(),
            csr.value.data()};
}

/// The elements of an array in either place, as To, in host memory.
template <class To, class V>
std::vector<To> in_host_memory(Context& ctx, Place place, std::span<const V> from) {
    if (place == Place::host) {
        return {from.begin(), from.end()};
    }
    std::vector<V> values(from.size());
    if (!values.empty()) {
        device::copy(values.data(), from.data(), from.size_bytes(), ctx.stream());
        ctx.synchronize();
    }
    if constexpr (std::is_same_v<To, V>) {
        return values;
    } else {
        return {values.begin(), values.end()};
    }
}

}  // namespace

template <class T>
SparseStorage storage_of(const CsrRows<T>& rows, Place place, const SparseFormat& format) {
    check_format(format);
    require_offsets(rows);
    const SparseLayout layout = layout_of(rows, place, format, split_rows(rows, false));
    return {layout.format, layout.stored()};
}

/// Everything but the entries.
template <class T>
void SparseMatrix<T>::Data::arrange(Context& ctx, const SparseLayout& layout) {
    format = layout.format;
    part = layout.part;
    stored = layout.stored();
    wide = map.local_rows() + halo->size() > std::numeric_limits<std::int32_t>::max();
    start =
        make_array<std::int64_t>(ctx, static_cast<std::int64_t>(layout.start.size()),
                                 "chunk offsets", [&](std::size_t i) { return layout.start[i]; });
    if (place == Place::host && format.chunk > 1) {
        full = make_array<std::int32_t>(ctx, static_cast<std::int64_t>(layout.full.size()),
                                        "chunk lengths",
                                        [&](std::size_t i) { return layout.full[i]; });
    }
    tile = layout.tile;
    const std::vector<std::int64_t> first_rows = layout.list();
    const auto at = [&](std::size_t i) { return first_rows[i]; };
    list = wide ? make_array<std::int64_t>(ctx, std::ssize(first_rows), "row list", at)
                : make_array<std::int32_t>(ctx, std::ssize(first_rows), "row list", at);
}

template <class T>
void SparseMatrix<T>::Data::upload(Context& ctx, CsrRows<T>&& rows, const NeededRows& needed,
                                   const SparseLayout& layout) {
    arrange(ctx, layout);
    const std::int64_t own = map.local_rows();
    const std::int64_t first = map.first_row();
    // Within a row the order of the global columns is kept, for any number of ranks.
    const auto local_column = [&](std::size_t k) {
        const std::int64_t column = rows.column[k];
        if (column >= first && column < first + own) {
            return column - first;
        }
        return own + needed.place_of(column);
    };
    column = wide ? make_entries<std::int64_t>(ctx, layout, rows.row_start, "column indices", -1,
                                               local_column)
                  : make_entries<std::int32_t>(ctx, layout, rows.row_start, "column indices", -1,
                                               local_column);
    std::vector<std::int64_t>().swap(rows.column);
    value = make_entries<T>(ctx, layout, rows.row_start, "matrix entries", T(0),
                            [&](std::size_t k) { return rows.value[k]; });
}

/// Stores rows of a device's memory there. row_start: the offsets in host memory, from 0.
template <class T>
template <class Index>
void SparseMatrix<T>::Data::convert(Context& ctx, const CsrArrays<T, Index>& csr,
                                    const std::vector<std::int64_t>& row_start,
                                    const SparseFormat& wish) {
    if constexpr (config::have_cuda) {
        std::vector<Index> columns;
        const auto columns_on_host = [&] {
            columns = in_host_memory<Index>(ctx, csr.place, csr.column);
            return EntryColumns(std::span<const Index>(columns));
        };
        arrange(ctx, SparseLayout({wish, place, sizeof(T), is_complex_v<T>, ctx.threads()},
                                  row_start, {}, map.local_rows(), columns_on_host));
        SpmmvArgs<T> rows{};
        set_rows(rows, part[0]);
        const auto entries = [&]<class To>(To /*width*/) {
            const auto count = static_cast<std::size_t>(stored);
            column = ctx.allocate(MemoryKind::device, count * sizeof(To), "column indices");
            value = ctx.allocate(MemoryKind::device, count * sizeof(T), "matrix entries");
            cuda::csr_to_chunks(ctx, CsrToChunksArgs<T, Index, To>{
                                         on_device(csr), rows.list, format.chunk, rows.start,
                                         column.template as<To>(), value.template as<T>()});
        };
        wide ? entries(std::int64_t{}) : entries(std::int32_t{});
    }
}

template <class T>
SparseMatrix<T>::SparseMatrix(Context& ctx, const RowMap& map, Symmetry symmetry)
    : data_(std::make_unique<Data>()) {
    data_->map = map;
    data_->symmetry = symmetry;
    data_->place = ctx.place();
    if constexpr (config::have_cuda) {
        if (data_->place == Place::device) {
            cuda::open_compiler(ctx);
        }
    }
}

template <class T>
SparseMatrix<T>::SparseMatrix(Context& ctx, CsrRows<T> rows, const SparseFormat& format)
    : SparseMatrix(ctx, rows.map, rows.symmetry) {
    Data& data = *data_;
    const Comm& comm = ctx.comm();
    if (rows.global_cols != rows.map.global_rows()) {
        throw ShapeError("sparse matrix: " + std::to_string(rows.map.global_rows()) + " rows and " +
                         std::to_string(rows.global_cols) + " columns; it must be square");
    }
    const bool in_stages = Halo<T>::comes_in_stages(ctx);
    RowSplit split;
    NeededRows needed;
    comm.agree([&] {
        check_format(format);
        check_rows(comm, rows, ctx.threads());
        split = split_rows(rows, in_stages);
        needed = needed_rows(rows, split);
    });
    data.nonzeros = rows.nonzeros();
    data.global_nonzeros = comm.sum(data.nonzeros);
    data.halo = std::make_unique<Halo<T>>(ctx, data.map, needed.rows, needed.stage, split.stages);
    comm.agree([&] {
        const SparseLayout layout =
            layout_of(rows, data.place, format, std::move(split), ctx.threads());
        data.upload(ctx, std::move(rows), needed, layout);
    });
}

template <class T>
template <class Index>
SparseMatrix<T> SparseMatrix<T>::from_csr(Context& ctx, const RowMap& map, Symmetry symmetry,
                                          const CsrArrays<T, Index>& csr,
                                          const SparseFormat& format) {
    if (csr.place == Place::device && ctx.place() == Place::host) {
        throw ShapeError("user CSR: the arrays are on a device, but the Context works on the host");
    }
    if constexpr (config::have_cuda) {
        if (csr.place == Place::device && ctx.comm().size() == 1 && map.ranks() == 1) {
            check_format(format);
            std::vector<std::int64_t> row_start =
                in_host_memory<std::int64_t>(ctx, csr.place, csr.row_start);
            const std::int64_t first = row_start.empty() ? 0 : row_start.front();
            for (std::int64_t& offset : row_start) {
                offset -= first;
            }
            // Everything else, and every error, is for rows_from_csr.
            if (std::ssize(row_start) == map.local_rows() + 1 &&
                std::is_sorted(row_start.begin(), row_start.end()) &&
                row_start.back() == std::ssize(csr.column) &&
                csr.column.size() == csr.value.size() && !csr.column.empty() &&
                cuda::csr_fits(ctx, on_device(csr), map.global_rows())) {
                SparseMatrix matrix(ctx, map, symmetry);
                Data& data = *matrix.data_;
                data.nonzeros = data.global_nonzeros = row_start.back();
                data.halo = std::make_unique<Halo<T>>(ctx, map, std::vector<std::int64_t>(),
                                                      std::vector<std::uint8_t>(), 1);
                data.convert(ctx, csr, row_start, format);
                return matrix;
            }
        }
    }
    if (csr.place == Place::host) {
        return SparseMatrix(ctx,
                            rows_from_csr<T, Index>(ctx.comm(), map, symmetry, csr.row_start,
                                                    csr.column, csr.value),
                            format);
    }
    const auto row_start = in_host_memory<Index>(ctx, csr.place, csr.row_start);
    const auto column = in_host_memory<Index>(ctx, csr.place, csr.column);
    const auto value = in_host_memory<T>(ctx, csr.place, csr.value);
    return SparseMatrix(
        ctx, rows_from_csr<T, Index>(ctx.comm(), map, symmetry, row_start, column, value), format);
}

template <class T>
SparseMatrix<T>::SparseMatrix(SparseMatrix&&) noexcept = default;
template <class T>
SparseMatrix<T>& SparseMatrix<T>::operator=(SparseMatrix&&) noexcept = default;
template <class T>
SparseMatrix<T>::~SparseMatrix() = default;

template <class T>
auto SparseMatrix<T>::data() const -> Data& {
    if (!data_) {
        throw InputError("sparse matrix: its contents were moved to another SparseMatrix");
    }
    return *data_;
}

template <class T>
const RowMap& SparseMatrix<T>::row_map() const {
    return data().map;
}
template <class T>
std::int64_t SparseMatrix<T>::global_nonzeros() const {
    return data().global_nonzeros;
}
template <class T>
std::int64_t SparseMatrix<T>::local_nonzeros() const {
    return data().nonzeros;
}
template <class T>
std::int64_t SparseMatrix<T>::halo_size() const {
    return data().halo->size();
}
template <class T>
std::int64_t SparseMatrix<T>::boundary_rows() const {
    return data().map.local_rows() - data().part.front().rows;
}
template <class T>
Symmetry SparseMatrix<T>::symmetry() const {
    return data().symmetry;
}

template <class T>
const SparseFormat& SparseMatrix<T>::format() const {
    return data().format;
}
template <class T>
double SparseMatrix<T>::padding() const {
    return data().nonzeros == 0
               ? 1.0
               : static_cast<double>(data().stored) / static_cast<double>(data().nonzeros);
}

namespace {

/// The elements of a buffer, in host memory.
template <class To, class V>
std::vector<To> elements(Context& ctx, Place place, const Buffer& buffer) {
    return in_host_memory<To>(
        ctx, place, std::span<const V>(buffer.template as<const V>(), buffer.bytes() / sizeof(V)));
}

void require_sound_index(bool sound) {
    if (!sound) {
        throw NumericalError(
            "sparse matrix: an index array has changed in memory; read the matrix again");
    }
}

}  // namespace

template <class T>
void SparseMatrix<T>::for_each_entry(
    Context& ctx, const std::function<void(std::size_t, std::int64_t, T)>& use) const {
    const Data& data = this->data();
    const auto indices = [&](const Buffer& buffer) {
        return data.wide ? elements<std::int64_t, std::int64_t>(ctx, data.place, buffer)
                         : elements<std::int64_t, std::int32_t>(ctx, data.place, buffer);
    };
    const auto start = elements<std::int64_t, std::int64_t>(ctx, data.place, data.start);
    const auto list = indices(data.list), column = indices(data.column);
    const auto value = elements<T, T>(ctx, data.place, data.value);
    const std::int64_t columns = data.map.local_rows() + data.halo->size();
    for (const SparseLayout::Part& part : data.part) {
        for (std::int64_t s = 0; s < part.rows; ++s) {
            const auto slot = static_cast<std::size_t>(part.first_slot + s);
            const auto run = static_cast<std::size_t>(part.first_run + s / part.run);
            const std::size_t row =
                list.empty() ? slot : static_cast<std::size_t>(list[run] + s % part.run);
            const auto c = static_cast<std::size_t>(part.first_chunk + s / data.format.chunk);
            require_sound_index(row < static_cast<std::size_t>(data.map.local_rows()) &&
                                start[c] >= 0 && start[c] <= start[c + 1] &&
                                start[c + 1] <= data.stored);
            const auto end = static_cast<std::size_t>(start[c + 1]);
            for (auto e = static_cast<std::size_t>(start[c] + s % data.format.chunk); e < end;
                 e += static_cast<std::size_t>(data.format.chunk)) {
                require_sound_index(column[e] < columns);
                if (column[e] >= 0) {
                    use(row, column[e], value[e]);
                }
            }
        }
    }
}

template <class T>
CsrRows<T> SparseMatrix<T>::diagonal_block(Context& ctx) const {
    const RowMap& map = data().map;
    const std::int64_t own = map.local_rows();
    CsrRows<T> rows{map, map.global_rows(), data().symmetry, {}, {}, {}};
    rows.row_start.assign(static_cast<std::size_t>(own) + 1, 0);
    for_each_entry(ctx, [&](std::size_t row, std::int64_t column, T) {
        rows.row_start[row + 1] += column < own ? 1 : 0;
    });
    std::partial_sum(rows.row_start.begin(), rows.row_start.end(), rows.row_start.begin());
    rows.column.resize(static_cast<std::size_t>(rows.row_start.back()));
    rows.value.resize(rows.column.size());
    std::vector<std::int64_t> next(rows.row_start.begin(), rows.row_start.end() - 1);
    for_each_entry(ctx, [&](std::size_t row, std::int64_t column, T value) {
        if (column < own) {
            // The arrays may have changed since the first pass.
            require_sound_index(next[row] < rows.row_start[row + 1]);
            const auto to = static_cast<std::size_t>(next[row]++);
            rows.column[to] = map.first_row() + column;
            rows.value[to] = value;
        }
    });
    require_sound_index(std::equal(next.begin(), next.end(), rows.row_start.begin() + 1));
    return rows;
}

template <class T>
std::vector<MatrixArray> SparseMatrix<T>::arrays() const {
    const Data& data = this->data();
    return {{"matrix entries", data.value.template as<void>(), data.value.bytes()},
            {"column indices", data.column.template as<void>(), data.column.bytes()},
            {"chunk offsets", data.start.template as<void>(), data.start.bytes()},
            {"row list", data.list.template as<void>(), data.list.bytes()},
            {"chunk lengths", data.full.template as<void>(), data.full.bytes()},
            {"halo plan", data.halo->plan().template as<void>(), data.halo->plan().bytes()}};
}

template <class T>
std::shared_ptr<const void> SparseMatrix<T>::check_indices() {
    std::shared_ptr<const void> checks = data().index_checks.lock();
    if (!checks) {
        checks = std::make_shared<char>();
        data().index_checks = checks;
    }
    return checks;
}

template <class T>
BlockView<const T> SparseMatrix<T>::received(int width) const {
    return {data().halo->received(), data().halo->size(), width, width, data().place};
}

template <class T>
void SparseMatrix<T>::Data::set_rows(SpmmvArgs<T>& args, const SparseLayout::Part& rows) const {
    const auto listed = [&]<class Index>(const Index* all) {
        return all == nullptr ? nullptr : all + rows.first_run;
    };
    args.rows = rows.rows;
    args.entries = rows.entries;
    args.list = {wide ? nullptr : listed(list.template as<const std::int32_t>()),
                 wide ? listed(list.template as<const std::int64_t>()) : nullptr,
                 std::countr_zero(static_cast<unsigned>(rows.run))};
    args.tile = tile;
    args.columns =
        index_checks.expired() ? 0 : map.local_rows() + (args.halo == nullptr ? 0 : halo->size());
    args.start = start.template as<std::int64_t>() + rows.first_chunk;
    args.full = full.bytes() == 0 ? nullptr : full.template as<std::int32_t>() + rows.first_chunk;
}

template <class T>
SpmmvArgs<T> SparseMatrix<T>::Data::arguments(BlockView<const T> x, BlockView<T> y,
                                              const ApplyOptions<T>& options) const {
    SpmmvArgs<T> args{};
    set_rows(args, part[0]);
    args.stored = stored;
    args.chunk = format.chunk;
    args.width = x.cols;
    args.own = map.local_rows();
    args.column32 = wide ? nullptr : column.template as<std::int32_t>();
    args.column64 = wide ? column.template as<std::int64_t>() : nullptr;
    args.value = value.template as<T>();
    args.alpha = options.alpha;
    args.beta = options.beta;
    args.shift = options.shift.size() == 1 ? options.shift[0] : T(0);
    args.x = x.data;
    args.ldx = x.ld;
    args.y = y.data;
    args.ldy = y.ld;
    return args;
}

namespace {

template <class T>
void check_arguments(const Context& ctx, Place place, const RowMap& map, BlockView<const T> x,
                     BlockView<T> y, const ApplyOptions<T>& options) {
    constexpr const char* name = operations::spmmv.name;
    require_valid(x, name, "X");
    require_valid(y, name, "Y");
    const auto both = [&] { return "X: " + describe(x) + "; Y: " + describe(y); };
    require_shape(ctx.place() == place && x.place == place && y.place == place, name,
                  "Context, matrix and blocks must be in one place", [&] {
                      return std::string("Context: ") + to_string(ctx.place()) +
                             "; matrix: " + to_string(place) + "; " + both();
                  });
    require_shape(
        ctx.comm().size() == map.ranks() && ctx.comm().rank() == map.rank(), name,
        "the Context must have the ranks of the matrix",
        [&] { return std::to_string(ctx.comm().size()) + " and " + std::to_string(map.ranks()); });
    require_shape(x.rows == map.local_rows() && y.rows == map.local_rows(), name,
                  "X and Y must have this rank's rows of the matrix",
                  [&] { return std::to_string(map.local_rows()) + " rows; " + both(); });
    require_shape(x.cols == y.cols, name, "X and Y must have the same width", both);
    require_shape(!overlap(x, y), name, "X and Y must not overlap", both);
    const auto width = static_cast<std::size_t>(x.cols);
    require_shape(options.shift.size() <= 1 || options.shift.size() == width, name,
                  "there must be no shift, one, or one per column",
                  [&] { return std::to_string(options.shift.size()) + " shifts; " + both(); });
    const auto fits = [&](std::size_t size) { return size == 0 || size == width; };
    require_shape(fits(options.dot_yy.size()) && fits(options.dot_xy.size()), name,
                  "there must be one dot per column", [&] {
                      return std::to_string(options.dot_yy.size()) + " and " +
                             std::to_string(options.dot_xy.size()) + " dots; " + both();
                  });
}

template <class Kernel, class T>
void multiply(const Kernel& kernel, const SpmmvArgs<T>& args, bool beside_others) {
    if (args.rows > 0) {
        kernel.leaf(args, beside_others);
    }
}

}  // namespace

template <class T>
void SparseMatrix<T>::apply(Context& ctx, BlockView<const T> x, BlockView<T> y) {
    apply_fused(ctx, x, y, {});
}

template <class T>
void SparseMatrix<T>::prepare(Context& ctx, std::span<const int> widths, bool dots) {
    if constexpr (config::have_cuda) {
        if (ctx.place() != Place::device) {
            return;
        }
        const Data& data = this->data();
        const T nowhere{};
        for (std::size_t i = 0; i < data.part.size(); ++i) {
            SpmmvArgs<T> args = data.arguments(BlockView<const T>(), BlockView<T>(), {});
            args.halo = i > 0 ? &nowhere : nullptr;
            data.set_rows(args, data.part[i]);
            if (args.rows > 0) {
                cuda::request_spmmv(ctx, args, widths, dots);
            }
        }
    }
}

template <class T>
void SparseMatrix<T>::apply_fused(Context& ctx, BlockView<const T> x, BlockView<T> y,
                                  const ApplyOptions<T>& options) {
    product(ctx, x, y, options, nullptr);
}

template <class T>
void SparseMatrix<T>::apply_summed(Context& ctx, BlockView<const T> x, BlockView<T> y,
                                   const ApplyOptions<T>& options, SpmmvSums& sums) {
    product(ctx, x, y, options, &sums);
}

template <class T>
void SparseMatrix<T>::product(Context& ctx, BlockView<const T> x, BlockView<T> y,
                              const ApplyOptions<T>& options, SpmmvSums* sums) {
    Data& data = this->data();
    check_arguments(ctx, data.place, data.map, x, y, options);
    if (x.cols == 0) {
        return;
    }
    const ProductArrays<T> small(ctx, x.cols, data.part.size(), options);
    SpmmvArgs<T> args = data.arguments(x, y, options);
    args.shifts = small.shifts();
    args.sums = sums;
    dispatch<operations::spmmv, T>(ctx, [&](const auto& kernel) {
        const Ledger::Entry entry = kernel.enter(cost(args, data.nonzeros));
        data.halo->begin(ctx, x);
        small.set_dots(args, 0);
        multiply(kernel, args, data.halo->takes_multiprocessors());
        for (std::size_t p = 1; p < data.part.size(); ++p) {
            args.halo = data.halo->arrive(ctx, static_cast<int>(p) - 1);
            data.set_rows(args, data.part[p]);
            small.set_dots(args, p);
            multiply(kernel, args, false);
        }
    });
    small.reduce();
}

template <class T>
void SparseMatrix<T>::repeat(Context& ctx, BlockView<const T> x, BlockView<T> y,
                             const ApplyOptions<T>& options, SpmmvSums* sums) {
    const Data& data = this->data();
    ApplyOptions<T> silent = options;
    silent.dot_yy = silent.dot_xy = {};
    check_arguments(ctx, data.place, data.map, x, y, silent);
    if (x.cols == 0) {
        return;
    }
    const ProductArrays<T> small(ctx, x.cols, data.part.size(), silent);
    SpmmvArgs<T> args = data.arguments(x, y, silent);
    args.shifts = small.shifts();
    args.sums = sums;
    args.halo = data.halo->received();
    dispatch<operations::spmmv, T>(ctx, [&](const auto& kernel) {
        const Ledger::Entry entry = kernel.enter(cost(args, data.nonzeros));
        for (const SparseLayout::Part& rows : data.part) {
            data.set_rows(args, rows);
            multiply(kernel, args, false);
        }
    });
}

#define QUIVER_INSTANTIATE_FROM(T, Index)               \
    template SparseMatrix<T> SparseMatrix<T>::from_csr( \
        Context&, const RowMap&, Symmetry, const CsrArrays<T, Index>&, const SparseFormat&);
#define QUIVER_INSTANTIATE(T)                                                         \
    template SparseStorage storage_of(const CsrRows<T>&, Place, const SparseFormat&); \
    template class SparseMatrix<T>;                                                   \
    QUIVER_INSTANTIATE_FROM(T, std::int32_t)                                          \
    QUIVER_INSTANTIATE_FROM(T, std::int64_t)
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE
#undef QUIVER_INSTANTIATE_FROM

}  // namespace quiver
