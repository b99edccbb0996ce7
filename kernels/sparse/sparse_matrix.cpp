// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/sparse/sparse_matrix.hpp"

#include <algorithm>
#include <bit>
#include <complex>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include <omp.h>

#include "blockvec/config.hpp"
#include "blockvec/error.hpp"
#include "blockvec/scalar_list.hpp"
#include "kernels/cuda/cuda_kernels.hpp"
#include "kernels/operation.hpp"
#include "kernels/sparse/assemble.hpp"
#include "kernels/sparse/device_storage.hpp"
#include "kernels/sparse/entry_order.hpp"
#include "kernels/sparse/gathered_rows.hpp"
#include "kernels/sparse/halo.hpp"
#include "kernels/sparse/matrix_arrays.hpp"
#include "kernels/sparse/matrix_storage.hpp"
#include "kernels/sparse/product_arrays.hpp"
#include "kernels/sparse/row_split.hpp"
#include "kernels/sparse/sparse_checks.hpp"
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
struct SparseMatrix<T>::Data : MatrixStorage {
    RowMap map;  // of the rows and of Y
    struct Domain {
        RowMap map;           // of the columns and of X
        bool aligned = true;  // both maps are equal
    };
    Domain domain;
    Symmetry symmetry = Symmetry::general;
    Place place = Place::host;
    struct Nonzeros {
        std::int64_t local = 0;
        std::int64_t global = 0;
    };
    Nonzeros nonzeros;
    EntryOrder order;  // of the caller's entries
    std::unique_ptr<Halo<T>> halo;
    std::weak_ptr<const void> index_checks;  // see check_indices()

    void upload(Context& ctx, CsrRows<T>&& rows, const NeededRows& needed,
                const SparseLayout& layout);
    /// Takes the rows of a single rank if the device can store them; see store_on_device().
    template <class Index>
    bool take(Context& ctx, const CsrArrays<T, Index>& csr, const SparseFormat& wish, bool sorted);
    /// Sets the rows of a part, their halo if they need one, and the memory for `pieces` rows.
    void set_rows(SpmmvArgs<T>& args, const SparseLayout::Part& rows, const T* received,
                  T* sums_of_pieces) const;
    /// Memory for the sums of the pieces of a product, and for a row of X if X has no rows.
    struct ProductMemory {
        ProductMemory(Context& ctx, const Data& data, int width);
        std::size_t bytes;
        const T* row_of_x() const { return zeros ? zeros->template as<T>() : nullptr; }
        Scratch pieces;
        std::optional<Scratch> zeros;
    };
    SpmmvArgs<T> arguments(BlockView<const T> x, BlockView<T> y, const ApplyOptions<T>& options,
                           const T* row_of_x) const;
};

namespace {

template <class T>
SparseLayout layout_of(const CsrRows<T>& rows, Place place, const SparseFormat& wish,
                       const RowSplit& split, int threads = 1) {
    SparseLayout::Columns columns;
    // Tiles follow the diagonal, so that row i reads row i of X and its neighbours.
    if (rows.domain_map() == rows.map) {
        columns = [&] { return EntryColumns(std::span<const std::int64_t>(rows.column)); };
    }
    return SparseLayout({wish, place, sizeof(T), is_complex_v<T>, threads}, rows.row_start,
                        split.order, split.interior, columns, rows.map.first_row(), split.stages);
}

}  // namespace

template <class T>
SparseStorage storage_of(const CsrRows<T>& rows, Place place, const SparseFormat& format) {
    check_format(format);
    require_offsets(rows);
    const SparseLayout layout = layout_of(rows, place, format, split_rows(rows, false));
    return {layout.format, layout.matrix_entries(), layout.count.long_rows};
}

template <class T>
void SparseMatrix<T>::Data::upload(Context& ctx, CsrRows<T>&& rows, const NeededRows& needed,
                                   const SparseLayout& layout) {
    const std::int64_t own = domain.map.local_rows();
    arrange(ctx, layout,
            std::max(map.local_rows(), own) + std::max(halo->size(), layout.count.pieces));
    const std::int64_t first = domain.map.first_row();
    // Within a row the order of the global columns is kept, for any number of ranks.
    const auto local_column = [&](std::size_t k) {
        const std::int64_t column = rows.column[k];
        if (column >= first && column < first + own) {
            return column - first;
        }
        return own + needed.place_of(column);
    };
    const auto piece_column = [&](std::int64_t piece) { return own + piece; };
    column = wide ? make_entries<std::int64_t>(ctx, layout, rows.row_start, "column indices", -1,
                                               local_column, piece_column)
                  : make_entries<std::int32_t>(ctx, layout, rows.row_start, "column indices", -1,
                                               local_column, piece_column);
    std::vector<std::int64_t>().swap(rows.column);
    value = make_entries<T>(
        ctx, layout, rows.row_start, "matrix entries", T(0),
        [&](std::size_t k) { return rows.value[k]; }, [](std::int64_t) { return T(1); });
}

template <class T>
template <class Index>
bool SparseMatrix<T>::Data::take(Context& ctx, const CsrArrays<T, Index>& csr,
                                 const SparseFormat& wish, bool sorted) {
    if constexpr (config::have_cuda) {
        std::optional<MatrixStorage> storage =
            store_on_device(ctx, csr, map.local_rows(), domain.map.local_rows(), wish, sorted);
        if (storage) {
            static_cast<MatrixStorage&>(*this) = std::move(*storage);
            nonzeros = {std::ssize(csr.column), std::ssize(csr.column)};
            halo = std::make_unique<Halo<T>>(ctx, domain.map, std::vector<std::int64_t>(),
                                             std::vector<std::uint8_t>(), 1);
            return true;
        }
    }
    return false;
}

template <class T>
SparseMatrix<T>::SparseMatrix(Context& ctx, const RowMap& range, const RowMap& domain,
                              Symmetry symmetry)
    : data_(std::make_shared<Data>()) {
    data_->map = range;
    data_->domain = {domain, range == domain};
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
    : SparseMatrix(ctx, rows.map, rows.domain_map(), rows.symmetry) {
    Data& data = *data_;
    const Comm& comm = ctx.comm();
    bool taken = false;
    comm.agree([&] {
        check_format(format);
        check_rows(comm, rows, ctx.threads());
        taken = data.place == Place::device && comm.size() == 1 &&
                data.take(ctx, CsrArrays<T, std::int64_t>{rows.row_start, rows.column, rows.value},
                          format, true);
    });
    if (taken) {
        return;
    }
    const bool in_stages = Halo<T>::comes_in_stages(ctx);
    RowSplit split;
    NeededRows needed;
    comm.agree([&] {
        split = split_rows(rows, in_stages, ctx.threads());
        needed = needed_rows(rows, split);
    });
    data.nonzeros.local = rows.nonzeros();
    data.nonzeros.global = comm.sum(data.nonzeros.local);
    data.halo =
        std::make_unique<Halo<T>>(ctx, data.domain.map, needed.rows, needed.stage, split.stages);
    comm.agree([&] {
        const SparseLayout layout = layout_of(rows, data.place, format, split, ctx.threads());
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
    if (ctx.place() == Place::device && ctx.comm().size() == 1 && map.ranks() == 1) {
        check_format(format);
        const RowMap& domain = csr.column_map ? *csr.column_map : map;
        // Everything else, and every error, is for rows_from_csr.
        if (domain.ranks() == 1 &&
            (symmetry == Symmetry::general || domain.global_rows() == map.global_rows())) {
            SparseMatrix matrix(ctx, map, domain, symmetry);
            if (matrix.data_->take(ctx, csr, format, false)) {
                return matrix;
            }
        }
    }
    const auto from_host = [&](const CsrArrays<T, Index>& host) {
        SparseMatrix matrix(
            ctx,
            rows_from_csr<T, Index>(ctx.comm(), map, symmetry, host.row_start, host.column,
                                    host.value, ctx.threads(), csr.column_map),
            format);
        ctx.comm().agree([&] {
            matrix.data_->order = EntryOrder::of(host.row_start, host.column, ctx.threads());
        });
        return matrix;
    };
    if (csr.place == Place::host) {
        return from_host(csr);
    }
    const auto row_start = in_host_memory<Index>(ctx, csr.place, csr.row_start);
    const auto column = in_host_memory<Index>(ctx, csr.place, csr.column);
    const auto value = in_host_memory<T>(ctx, csr.place, csr.value);
    return from_host({row_start, column, value});
}

template <class T>
void SparseMatrix<T>::replace_values(Context& ctx, std::span<const T> value, Place place) {
    Data& data = this->data();
    std::vector<T> on_host;
    ctx.comm().agree([&] {
        if (ctx.place() != data.place || (place == Place::device && place != data.place)) {
            throw ShapeError(std::string("sparse matrix: new values on the ") + to_string(place) +
                             " in a Context on the " + to_string(ctx.place()) +
                             " for a matrix on the " + to_string(data.place) +
                             "; matrix and Context must be in one place, and so must values on a "
                             "device");
        }
        const auto& source = data.order.source;
        const std::int64_t entries = source.empty() ? data.nonzeros.local : std::ssize(source);
        if (std::ssize(value) != entries) {
            throw ShapeError("sparse matrix: " + std::to_string(value.size()) +
                             " new values for the " + std::to_string(entries) +
                             " entries of this rank; the structure cannot change");
        }
        require_finite(ctx, value, place);
        if (!source.empty()) {
            on_host = data.order.template apply<T>(in_host_memory<T>(ctx, place, value));
            value = on_host;
            place = Place::host;
        }
    });
    ctx.comm().agree([&] {
        Buffer copy;
        if (place != data.place && !value.empty()) {
            copy = ctx.allocate(MemoryKind::device, value.size_bytes(), "new matrix entries");
            copy_to_device(ctx, copy.as<T>(), value);
            value = {copy.as<const T>(), value.size()};
        }
        data.replace_values(ctx, data.map.local_rows(), data.nonzeros.local, value.data());
        ctx.synchronize();
    });
}

template <class T>
SparseMatrix<T>::SparseMatrix(std::shared_ptr<Data> data) : data_(std::move(data)) {}
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
    const Data& data = this->data();
    if (!data.domain.aligned) {
        const std::int64_t rows = data.map.global_rows();
        const std::int64_t columns = data.domain.map.global_rows();
        throw ShapeError("sparse matrix: " + std::to_string(rows) + " rows and " +
                         std::to_string(columns) +
                         (rows == columns ? " columns, which the ranks share differently"
                                          : " columns; the matrix must be square") +
                         ". Solvers and shifts need one distribution of X and Y; products of other "
                         "matrices use range_map() and domain_map()");
    }
    return data.map;
}
template <class T>
const RowMap& SparseMatrix<T>::range_map() const {
    return data().map;
}
template <class T>
const RowMap& SparseMatrix<T>::domain_map() const {
    return data().domain.map;
}
template <class T>
std::int64_t SparseMatrix<T>::global_nonzeros() const {
    return data().nonzeros.global;
}
template <class T>
std::int64_t SparseMatrix<T>::local_nonzeros() const {
    return data().nonzeros.local;
}
template <class T>
std::int64_t SparseMatrix<T>::halo_size() const {
    return data().halo->size();
}
template <class T>
std::int64_t SparseMatrix<T>::boundary_rows() const {
    return data().count.boundary_rows;
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
    return data().nonzeros.local == 0 ? 1.0
                                      : static_cast<double>(data().matrix_entries) /
                                            static_cast<double>(data().nonzeros.local);
}

namespace {

/// The elements of a buffer, in host memory.
template <class To, class V>
std::vector<To> elements(Context& ctx, Place place, const Buffer& buffer) {
    return in_host_memory<To>(
        ctx, place, std::span<const V>(buffer.template as<const V>(), buffer.bytes() / sizeof(V)));
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
    const std::int64_t own = data.map.local_rows();
    const std::int64_t columns = data.domain.map.local_rows() + data.halo->size();
    for (const SparseLayout::Part& part : data.part) {
        if (part.kind == SparseLayout::Kind::sums) {
            continue;
        }
        const std::int64_t pieces =
            part.kind == SparseLayout::Kind::rows ? 0 : std::ssize(data.apart.piece_row);
        for (std::int64_t s = 0; s < part.rows; ++s) {
            const auto run = static_cast<std::size_t>(part.first_run + s / part.run);
            std::int64_t row = list.empty() ? part.first_slot + s : list[run] + s % part.run;
            const auto c = static_cast<std::size_t>(part.first_chunk + s / part.chunk);
            require_sound_index(row >= 0 && row < own + pieces && start[c] >= 0 &&
                                start[c] <= start[c + 1] && start[c + 1] <= data.stored);
            row = row < own ? row : data.apart.piece_row[static_cast<std::size_t>(row - own)];
            const auto end = static_cast<std::size_t>(start[c + 1]);
            for (auto e = static_cast<std::size_t>(start[c] + s % part.chunk); e < end;
                 e += static_cast<std::size_t>(part.chunk)) {
                require_sound_index(column[e] < columns);
                if (column[e] >= 0) {
                    use(static_cast<std::size_t>(row), column[e], value[e]);
                }
            }
        }
    }
}

template <class T>
CsrRows<T> SparseMatrix<T>::diagonal_block(Context& ctx) const {
    const RowMap& map = row_map();
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
Buffer SparseMatrix<T>::diagonal_blocks(Context& ctx, int size) const {
    const std::int64_t own = row_map().local_rows();
    if (ctx.place() != data().place) {
        throw ShapeError(std::string("sparse matrix: diagonal blocks with a Context on the ") +
                         to_string(ctx.place()) + " of a matrix on the " + to_string(data().place));
    }
    const std::int64_t rows = (own + size - 1) / size * size;
    const std::size_t row_bytes = static_cast<std::size_t>(size) * sizeof(T);
    Buffer result = ctx.allocate(memory_kind(data().place),
                                 static_cast<std::size_t>(rows) * row_bytes, "diagonal blocks");
    if (own == 0) {
        return result;
    }
    T* const blocks = result.template as<T>();
    // The rows of the identity.
    std::vector<T> end(static_cast<std::size_t>((rows - own) * size));
    for (std::int64_t row = own; row < rows; ++row) {
        end[static_cast<std::size_t>((row - own) * size + row % size)] = T(1);
    }
    if (data().place == Place::host) {
        std::fill(blocks, blocks + own * size, T(0));
        std::copy(end.begin(), end.end(), blocks + own * size);
        for_each_entry(ctx, [&](std::size_t row, std::int64_t column, T value) {
            const auto i = static_cast<std::int64_t>(row);
            if (column < own && column / size == i / size) {
                blocks[i * size + column % size] = value;
            }
        });
    } else if constexpr (config::have_cuda) {
        device::set_zero(blocks, static_cast<std::size_t>(own) * row_bytes, ctx.stream());
        if (!end.empty()) {
            device::copy(blocks + own * size, end.data(), end.size() * sizeof(T), ctx.stream());
        }
        blocks_on_device(ctx, data(), own, size, blocks);
    }
    return result;
}

namespace {

/// The rows of a matrix of diagonal blocks in host memory.
template <class T>
CsrRows<T> rows_of_blocks(const RowMap& map, int size, const T* blocks) {
    CsrRows<T> rows;
    rows.map = map;
    rows.global_cols = map.global_rows();
    const std::int64_t own = map.local_rows();
    for (std::int64_t row = 0; row < own; ++row) {
        const std::int64_t begin = row / size * size;
        const std::int64_t end = std::min(begin + size, own);
        for (std::int64_t column = begin; column < end; ++column) {
            rows.column.push_back(map.first_row() + column);
            rows.value.push_back(blocks[row * size + column - begin]);
        }
        rows.row_start.push_back(rows.nonzeros());
    }
    return rows;
}

}  // namespace

template <class T>
SparseMatrix<T> SparseMatrix<T>::from_diagonal_blocks(Context& ctx, const RowMap& map, int size,
                                                      Buffer blocks) {
    SparseMatrix matrix(ctx, map, map, Symmetry::general);
    Data& data = *matrix.data_;
    const std::int64_t own = map.local_rows();
    const std::int64_t last = own % size;
    const bool on_device = data.place == Place::device && own > 0;
    if constexpr (config::have_cuda) {
        ctx.comm().agree([&] {
            if (on_device) {
                static_cast<MatrixStorage&>(data) =
                    store_blocks_on_device(ctx, own, size, blocks.template as<T>());
            }
        });
    }
    data.nonzeros.local = (own - last) * size + last * last;
    data.nonzeros.global = ctx.comm().sum(data.nonzeros.local);
    data.halo = std::make_unique<Halo<T>>(ctx, map, std::vector<std::int64_t>(),
                                          std::vector<std::uint8_t>(), 1);
    ctx.comm().agree([&] {
        if (!on_device) {
            CsrRows<T> rows = rows_of_blocks(map, size, blocks.template as<const T>());
            const RowSplit split = split_rows(rows, false, ctx.threads());
            const SparseLayout layout = layout_of(rows, data.place, {}, split, ctx.threads());
            data.upload(ctx, std::move(rows), {}, layout);
        }
    });
    return matrix;
}

template <class T>
SparseMatrix<T> SparseMatrix<T>::adjoint(Context& ctx, const SparseFormat& format) {
    const Data& data = this->data();
    const bool is_hermitian = data.symmetry == Symmetry::hermitian ||
                              (data.symmetry == Symmetry::symmetric && !is_complex_v<T>);
    if (is_hermitian && data.domain.aligned) {
        return SparseMatrix(data_);
    }
    return SparseMatrix(ctx, adjoint_rows(ctx, *this), format);
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
void SparseMatrix<T>::Data::set_rows(SpmmvArgs<T>& args, const SparseLayout::Part& rows,
                                     const T* received, T* sums_of_pieces) const {
    using Kind = SparseLayout::Kind;
    const bool sums = rows.kind == Kind::sums;
    args.halo = sums ? sums_of_pieces : rows.stage > 0 ? received : nullptr;
    args.pieces = rows.kind == Kind::rows ? nullptr : sums_of_pieces;
    args.piece_count = rows.kind == Kind::rows ? 0 : count.pieces;
    args.apart = count.long_rows > 0;
    args.chunk = rows.chunk;
    args.rows = rows.rows;
    args.entries = rows.entries;
    args.list = list_of(rows);
    args.tile = format.kind == SparseFormat::sell && format.tile > 1 ? format.tile : 0;
    const std::int64_t far = args.halo == nullptr ? 0 : sums ? count.pieces : halo->size();
    args.columns = index_checks.expired() ? 0 : domain.map.local_rows() + far;
    args.start = start.template as<std::int64_t>() + rows.first_chunk;
    args.full = full.bytes() == 0 ? nullptr : full.template as<std::int32_t>() + rows.first_chunk;
}

template <class T>
SparseMatrix<T>::Data::ProductMemory::ProductMemory(Context& ctx, const Data& data, int width)
    : bytes(static_cast<std::size_t>(data.count.pieces) * static_cast<std::size_t>(width) *
            sizeof(T)),
      pieces(ctx.scratch(memory_kind(data.place), bytes)) {
    if (data.place == Place::device && data.domain.map.local_rows() == 0) {
        const std::size_t row = static_cast<std::size_t>(width) * sizeof(T);
        zeros.emplace(ctx.memory(), memory_kind(data.place), row);
        device::set_zero(zeros->template as<void>(), row, ctx.stream());
    }
    if (bytes > 0 && !data.index_checks.expired()) {
        // The sums must not read other data in place of a piece that a wrong index left unwritten.
        device::set_zero(pieces.as<void>(), bytes, ctx.stream());
    }
}

template <class T>
SpmmvArgs<T> SparseMatrix<T>::Data::arguments(BlockView<const T> x, BlockView<T> y,
                                              const ApplyOptions<T>& options,
                                              const T* row_of_x) const {
    SpmmvArgs<T> args{};
    args.stored = stored;
    args.width = x.cols;
    args.x_rows = domain.map.local_rows();
    args.y_rows = map.local_rows();
    args.column32 = wide ? nullptr : column.template as<std::int32_t>();
    args.column64 = wide ? column.template as<std::int64_t>() : nullptr;
    args.value = value.template as<T>();
    args.alpha = options.alpha;
    args.beta = options.beta;
    args.shift = options.shift.size() == 1 ? options.shift[0] : T(0);
    args.x = row_of_x != nullptr ? row_of_x : x.data;
    args.ldx = x.ld;
    args.y = y.data;
    args.ldy = y.ld;
    return args;
}

namespace {

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
        T nowhere{};
        SpmmvArgs<T> args = data.arguments(BlockView<const T>(), BlockView<T>(), {}, nullptr);
        for (const SparseLayout::Part& rows : data.part) {
            data.set_rows(args, rows, &nowhere, &nowhere);
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
    check_arguments(ctx, data.place, data.map, data.domain.map, x, y, options);
    if (x.cols == 0) {
        return;
    }
    const ProductArrays<T> small(ctx, x.cols, data.part.size(), options);
    const typename Data::ProductMemory memory(ctx, data, x.cols);
    SpmmvArgs<T> args = data.arguments(x, y, options, memory.row_of_x());
    args.shifts = small.shifts();
    args.sums = sums;
    dispatch<operations::spmmv, T>(ctx, [&](const auto& kernel) {
        const Ledger::Entry entry = kernel.enter(cost(args, data.nonzeros.local));
        data.halo->begin(ctx, x);
        const T* received = nullptr;
        int arrived = 0;
        for (std::size_t p = 0; p < data.part.size(); ++p) {
            const SparseLayout::Part& rows = data.part[p];
            for (; arrived < rows.stage; ++arrived) {
                received = data.halo->arrive(ctx, arrived);
            }
            data.set_rows(args, rows, received, memory.pieces.template as<T>());
            small.set_dots(args, p);
            multiply(kernel, args, arrived == 0 && data.halo->takes_multiprocessors());
        }
    });
    small.reduce();
}

template <class T>
void SparseMatrix<T>::repeat(Context& ctx, BlockView<const T> x, BlockView<T> y,
                             const ApplyOptions<T>& options, SpmmvSums* sums) {
    const Data& data = this->data();
    ApplyOptions<T> silent = options;
    silent.dot_yy = silent.dot_xy = silent.dot_xx = {};
    check_arguments(ctx, data.place, data.map, data.domain.map, x, y, silent);
    if (x.cols == 0) {
        return;
    }
    const ProductArrays<T> small(ctx, x.cols, data.part.size(), silent);
    const typename Data::ProductMemory memory(ctx, data, x.cols);
    SpmmvArgs<T> args = data.arguments(x, y, silent, memory.row_of_x());
    args.shifts = small.shifts();
    args.sums = sums;
    dispatch<operations::spmmv, T>(ctx, [&](const auto& kernel) {
        const Ledger::Entry entry = kernel.enter(cost(args, data.nonzeros.local));
        for (const SparseLayout::Part& rows : data.part) {
            data.set_rows(args, rows, data.halo->received(), memory.pieces.template as<T>());
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
