// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/linear/linear_workspace.hpp"

#include <algorithm>
#include <utility>

#include "blockvec/scalar_list.hpp"
#include "kernels/column_ops.hpp"

namespace quiver {

template <class T>
void LinearWorkspace<T>::reserve(Context& ctx, const RowMap& map, int blocks, int width,
                                 int basis_columns) {
    const auto wanted = static_cast<std::size_t>(blocks) + 1;
    const bool same_rows = map == map_ && place_ == ctx.place();
    if (same_rows && blocks_.size() >= wanted && width_ >= width &&
        basis_.width() >= basis_columns) {
        return;
    }
    const int new_width = same_rows ? std::max(width, width_) : width;
    const int new_basis = same_rows ? std::max(basis_columns, basis_.width()) : basis_columns;
    const std::size_t count = same_rows ? std::max(wanted, blocks_.size()) : wanted;
    *this = LinearWorkspace();
    ctx.comm().agree([&] {
        for (std::size_t i = 0; i < count; ++i) {
            blocks_.emplace_back(ctx, map, new_width);
        }
        basis_ = BlockVector<T>(ctx, map, new_basis);
    });
    map_ = map;
    place_ = ctx.place();
    width_ = new_width;
}

template <class T>
BlockView<T> LinearWorkspace<T>::packed(BlockVector<T>& memory, int columns) {
    const BlockView<T> all = memory.columns(0, columns);
    return {all.data, all.rows, columns, columns, all.place};
}

template <class T>
BlockView<T> LinearWorkspace<T>::block(int index, int width) {
    return packed(blocks_[static_cast<std::size_t>(index)], width);
}

template <class T>
void LinearWorkspace<T>::keep(Context& ctx, int index, int width, std::span<const int> columns) {
    BlockVector<T>& spare = blocks_.back();
    gather_columns(ctx, block(index, width), columns,
                   packed(spare, static_cast<int>(columns.size())));
    std::swap(blocks_[static_cast<std::size_t>(index)], spare);
}

template <class T>
void LinearWorkspace<T>::exchange(int a, int b) {
    std::swap(blocks_[static_cast<std::size_t>(a)], blocks_[static_cast<std::size_t>(b)]);
}

#define QUIVER_INSTANTIATE(T) template class LinearWorkspace<T>;
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
