// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/precond/block_jacobi.hpp"

#include <algorithm>
#include <complex>
#include <span>
#include <string>
#include <utility>

#include "blockvec/error.hpp"
#include "blockvec/scalar_list.hpp"
#include "kernels/batched.hpp"

namespace quiver {
namespace {

/// The inverses of `count` contiguous matrices in the Context's place, which are overwritten.
template <class T>
Buffer inverses_of(Context& ctx, const RowMap& map, int size, std::int64_t count, T* blocks) {
    const auto allocate = [&](std::int64_t elements, std::size_t bytes, const char* what) {
        return ctx.allocate(memory_kind(ctx.place()), static_cast<std::size_t>(elements) * bytes,
                            what);
    };
    const auto ints = [](const Buffer& buffer) {
        return std::span<int>(buffer.as<int>(), buffer.bytes() / sizeof(int));
    };
    const Buffer pivots = allocate(count * size, sizeof(int), "pivots of diagonal blocks");
    const Buffer status = allocate(count, sizeof(int), "status of diagonal blocks");
    const auto batch = MatrixBatch<T>::packed(blocks, count, size, size, ctx.place());
    lu_factor(ctx, batch, ints(pivots), ints(status));
    if (const BatchFailures failures = find_failures(ctx, ints(status)); failures.count > 0) {
        const std::int64_t begin = map.first_row() + failures.matrix * size;
        const std::int64_t end = std::min(begin + size, map.first_row() + map.local_rows());
        throw InputError("preconditioner " + std::string(size == 1 ? "jacobi" : "block-jacobi") +
                         ": the diagonal block of rows " + std::to_string(begin + 1) + " to " +
                         std::to_string(end) +
                         " is singular; try another block size or no preconditioner");
    }
    Buffer inverses = allocate(count * size * size, sizeof(T), "inverses of diagonal blocks");
    lu_inverse(ctx, batch, ints(pivots),
               MatrixBatch<T>::packed(inverses.as<T>(), count, size, size, ctx.place()));
    return inverses;
}

}  // namespace

template <class T>
std::unique_ptr<Operator<T>> block_jacobi(Context& ctx, SparseMatrix<T>& a, int size,
                                          std::int64_t least) {
    const RowMap& map = a.row_map();
    const std::int64_t count = (map.local_rows() + size - 1) / size;
    Buffer inverses;
    ctx.comm().agree([&] {
        Buffer blocks = a.diagonal_blocks(ctx, size);
        const std::size_t bytes = blocks.bytes();
        if (ctx.place() == Place::host || map.local_rows() >= least) {
            inverses = inverses_of(ctx, map, size, count, blocks.template as<T>());
            return;
        }
        Context host(Comm(), Device::host(ctx.threads()));
        const Buffer copy = host.allocate(MemoryKind::host, bytes, "diagonal blocks");
        if (bytes > 0) {
            device::copy(copy.as<void>(), blocks.template as<void>(), bytes, ctx.stream());
            ctx.synchronize();
        }
        const Buffer result = inverses_of(host, map, size, count, copy.as<T>());
        if (bytes > 0) {
            device::copy(blocks.template as<void>(), result.template as<void>(), bytes,
                         ctx.stream());
            ctx.synchronize();
        }
        inverses = std::move(blocks);
    });
    return std::make_unique<SparseMatrix<T>>(
        SparseMatrix<T>::from_diagonal_blocks(ctx, map, size, std::move(inverses)));
}

// NOLINTBEGIN(bugprone-macro-parentheses): a type
#define QUIVER_INSTANTIATE(T)                                                           \
    template std::unique_ptr<Operator<T>> block_jacobi(Context&, SparseMatrix<T>&, int, \
                                                       std::int64_t);
// NOLINTEND(bugprone-macro-parentheses)
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
