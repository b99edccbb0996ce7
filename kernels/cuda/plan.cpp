// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/cuda/plan.hpp"

#include <algorithm>
#include <iterator>

#include "kernels/cuda/tiling.hpp"

namespace quiver::cuda {

int compiled_width(int width) {
    const int step = width <= 16 ? 1 : width <= 64 ? 8 : width <= 256 ? 32 : 128;
    return ceil_div(width, step) * step;
}

int widest_tsmttsm_panel(Dtype scalar, int n) {
    constexpr int sums = 12288;
    const int weight = scalar == Dtype::z ? 4 : scalar == Dtype::c ? 2 : 1;
    const int columns = ceil_div(compiled_width(n), 4) * 4;
    int widest = std::clamp(sums / (weight * columns), widest_panel, 512);
    while (compiled_width(widest) > std::max(widest, widest_panel)) {
        --widest;
    }
    return widest;
}

ProductShape::ProductShape(Dtype scalar_, int m_, int n_, bool same_)
    : scalar(scalar_),
      m(std::max(m_, n_) <= widest_panel ? m_ : compiled_width(m_)),
      n(std::max(m_, n_) <= widest_panel ? n_ : compiled_width(n_)),
      exact(m == m_ && n == n_),
      same(same_) {}

ProductShape ProductShape::pair(Dtype scalar, int m, int n) {
    ProductShape shape(scalar, m, n);
    shape.second = shape.n;
    shape.m += shape.n;
    return shape;
}

int ProductShape::scalar_bytes() const {
    return visit_dtype(scalar, []<class T>() { return static_cast<int>(sizeof(T)); });
}

ProductShape ProductShape::rounded() const {
    constexpr int widths[] = {1, 4, 8, 16, 24, 32, 48, 64};
    const auto next = [&](int width) {
        return width <= widest_panel
                   ? *std::lower_bound(std::begin(widths), std::end(widths), width)
                   : compiled_width(width);
    };
    ProductShape shape = *this;
    shape.n = next(n);
    shape.m = next(m - second);
    if (second > 0) {
        shape.second = shape.n;
        shape.m += shape.n;
    }
    // Also where the widths are the same, so that one kernel serves both.
    shape.exact = false;
    return shape;
}

Layout Layout::of(const void* data, int columns, std::int64_t ld, int scalar_bytes) {
    const auto address = reinterpret_cast<std::uintptr_t>(data);
    const auto row =
        static_cast<std::uintptr_t>(columns) * static_cast<std::uintptr_t>(scalar_bytes);
    const auto stride = static_cast<std::uintptr_t>(ld) * static_cast<std::uintptr_t>(scalar_bytes);
    Layout layout;
    layout.contiguous = ld == columns;
    layout.aligned = address % 16 == 0;
    while ((address | row | stride) % static_cast<std::uintptr_t>(layout.unit) != 0) {
        layout.unit /= 2;
    }
    return layout;
}

}  // namespace quiver::cuda
