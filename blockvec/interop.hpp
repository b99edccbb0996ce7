// SPDX-License-Identifier: BSD-3-Clause
// Views of a caller's pointers. blockvec/eigen_interop.hpp makes views of Eigen matrices.
#pragma once

#include <cstdint>

#include "blockvec/view.hpp"

namespace quiver {

/// A view of a caller's memory: `host_view(p, rows, cols)`; ld = 0 means ld = cols.
template <class T>
BlockView<T> host_view(T* data, std::int64_t rows, int cols, std::int64_t ld = 0) {
    return {data, rows, cols, ld == 0 ? cols : ld, Place::host};
}
template <class T>
BlockView<T> device_view(T* data, std::int64_t rows, int cols, std::int64_t ld = 0) {
    return {data, rows, cols, ld == 0 ? cols : ld, Place::device};
}

}  // namespace quiver
