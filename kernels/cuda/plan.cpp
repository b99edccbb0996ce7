// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/cuda/plan.hpp"

#include <algorithm>
#include <limits>
#include <span>

#include "kernels/cuda/plan_arithmetic.hpp"
#include "kernels/cuda/tiling.hpp"

namespace quiver::cuda {

int compiled_width(int width) {
    const int step = width <= 16 ? 1 : width <= 64 ? 8 : width <= 256 ? 32 : 128;
    return ceil_div(width, step) * step;
}

int widest_tsmttsm_panel(Dtype scalar, int n) {
    constexpr int sums = 12288;
    const int weight = scalar == Dtype::z ? 4 : scalar == Dtype::c ? 2 : 1;
    const int columns = ceil_div(compiled_width(std::max(1, n)), 4) * 4;
    int widest = std::clamp(sums / (weight * columns), widest_panel, 512);
    while (compiled_width(widest) > std::max(widest, widest_panel)) {
        --widest;
    }
    return widest;
}

bool PlanSpace::has_tile(int tile_m, int tile_n) const {
    const auto has = [](const std::vector<int>& tiles, int tile) {
        return tiles.empty() || std::find(tiles.begin(), tiles.end(), tile) != tiles.end();
    };
    return has(tiles_m, tile_m) && has(tiles_n, tile_n);
}

ProductShape::ProductShape(Dtype scalar_, int m_, int n_, bool same_)
    : scalar(scalar_),
      m(std::max(m_, n_) <= widest_panel ? m_ : compiled_width(m_)),
      n(std::max(m_, n_) <= widest_panel ? n_ : compiled_width(n_)),
      exact(m == m_ && n == n_),
      same(same_) {}

namespace {

/// The number of columns of Y that the streamed kernel of n columns computes: n rounded up to whole
/// tiles; above 16 columns, which only complex double blocks have, to pairs of tiles.
int streamed_width(Dtype scalar, int n) {
    const int step = scalar == Dtype::d || n > 16 ? 8 : scalar == Dtype::z || n > 4 ? 4 : 1;
    return round_up(n, step);
}
/// The columns of X are rounded up to a multiple of this, which is a multiple of the columns of a
/// slab in every measured plan.
constexpr int streamed_step = 64;

/// The columns of A of a streamed tsmttsm are rounded up to a multiple of this: those of eight
/// warps on the tensor cores, and of one warp with vectors of 16 bytes (single precision) or two.
constexpr int streamed_sums_step = 128;
/// The columns of B that the streamed kernel of n columns computes.
int streamed_sums_width(Dtype scalar, int n) {
    const int step = scalar == Dtype::d ? 8 : scalar == Dtype::z || (n > 4 && n <= 8) ? 4 : 2;
    return round_up(n, step);
}

}  // namespace

bool prefers_streams(Dtype scalar, int m, int n) {
    constexpr int narrow = 16;
    constexpr int twice = 2 * widest_panel;
    if (n <= narrow) {
        return m > (has_tensor_kernels(scalar) ? widest_panel : widest_shared_panel);
    }
    return scalar == Dtype::z && m > widest_panel && m <= twice && n > widest_panel && n <= twice;
}

ProductShape ProductShape::streams(Dtype scalar, int m, int n) {
    ProductShape shape(scalar, 1, 1);
    shape.m = round_up(m, streamed_step);
    shape.n = streamed_width(scalar, n);
    shape.exact = false;
    shape.streamed = true;
    return shape;
}

std::vector<ProductShape> ProductShape::streamed_products(Dtype scalar) {
    std::vector<ProductShape> shapes;
    const auto add = [&](int m, int n) {
        if (streamed_width(scalar, n) == n) {
            shapes.push_back(streams(scalar, m, n));
        }
    };
    const int narrowest = has_tensor_kernels(scalar) ? widest_panel : widest_shared_panel;
    for (int m = narrowest + streamed_step; m <= 512; m += streamed_step) {
        for (int n = 1; n <= 16; ++n) {
            add(m, n);
        }
    }
    if (scalar == Dtype::z) {
        for (int n = widest_streamed_panel / 2 + 1; n <= widest_streamed_panel; ++n) {
            add(2 * widest_panel, n);
        }
    }
    return shapes;
}

bool prefers_streamed_sums(Dtype scalar, int m, int n) {
    constexpr int narrow = 16;
    // Streams compute 256 columns for an A of fewer: up to this width, the others waste less.
    constexpr int least = 192;
    // The other kernels compute up to 224 columns, or 225 to 256, without much padding.
    constexpr int padded = 224;
    constexpr int exact = 256;
    if (n > narrow) {
        return false;
    }
    switch (scalar) {
        case Dtype::d:
            return m > widest_shared_panel && n > 8;
        case Dtype::c:
            return m > exact || (m > least && (n <= 12 || (n <= 14 && m <= padded)));
        default:
            return m > least;
    }
}

int streamed_sums_panel(Dtype scalar, int m, bool aligned) {
    const int before = 16 / (scalar == Dtype::s || scalar == Dtype::c ? 4 : 8);
    return aligned && m <= widest_streamed_sums ? widest_streamed_sums
                                                : widest_streamed_sums - before;
}

namespace {

/// Numbers of columns, from first to last.
struct ColumnRange {
    int first, last;
    bool contain(int columns) const { return first <= columns && columns <= last; }
};
constexpr int any_number = std::numeric_limits<int>::max();

/// Products that cuBLAS computes faster, as a range of m and a range of n.
struct CublasRange {
    ColumnRange m, n;
};
bool contain(std::span<const CublasRange> shapes, int m, int n) {
    return std::any_of(shapes.begin(), shapes.end(), [&](const CublasRange& each) {
        return each.m.contain(m) && each.n.contain(n);
    });
}

constexpr CublasRange tsmttsm_ranges_s[] = {{{257, any_number}, {41, 64}},
                                            {{97, any_number}, {49, 64}},
                                            {{41, 64}, {65, any_number}},
                                            {{97, any_number}, {65, any_number}},
                                            {{65, 96}, {97, any_number}}};
constexpr CublasRange tsmttsm_ranges_d[] = {{{257, any_number}, {25, 64}},
                                            {{17, 32}, {65, any_number}},
                                            {{33, 64}, {128, any_number}},
                                            {{81, any_number}, {65, any_number}}};
constexpr CublasRange tsmttsm_ranges_c[] = {{{193, any_number}, {17, 64}},
                                            {{65, any_number}, {49, 64}},
                                            {{17, 64}, {65, any_number}},
                                            {{81, any_number}, {65, any_number}},
                                            {{61, 64}, {56, 64}}};
constexpr CublasRange tsmttsm_ranges_z[] = {{{65, any_number}, {17, any_number}},
                                            {{17, 64}, {65, any_number}},
                                            {{60, 64}, {56, 64}},
                                            {{257, any_number}, {9, 16}}};

constexpr CublasRange tsmm_ranges_s[] = {{{129, any_number}, {17, 64}},
                                         {{17, 40}, {65, any_number}},
                                         {{81, any_number}, {65, any_number}},
                                         {{41, 80}, {129, any_number}}};
constexpr CublasRange tsmm_ranges_d[] = {{{97, any_number}, {17, any_number}},
                                         {{57, 96}, {65, any_number}},
                                         {{17, 56}, {129, any_number}}};
constexpr CublasRange tsmm_ranges_c[] = {{{129, any_number}, {17, any_number}},
                                         {{65, 128}, {17, 32}},
                                         {{65, 128}, {49, any_number}},
                                         {{25, 64}, {65, any_number}}};
constexpr CublasRange tsmm_ranges_z[] = {{{129, any_number}, {17, any_number}},
                                         {{97, 128}, {17, 64}},
                                         {{49, 64}, {65, any_number}},
                                         {{65, 128}, {129, any_number}}};

std::span<const CublasRange> cublas_ranges(Dtype scalar, bool sums) {
    switch (scalar) {
        case Dtype::s:
            return sums ? std::span<const CublasRange>(tsmttsm_ranges_s) : tsmm_ranges_s;
        case Dtype::d:
            return sums ? std::span<const CublasRange>(tsmttsm_ranges_d) : tsmm_ranges_d;
        case Dtype::c:
            return sums ? std::span<const CublasRange>(tsmttsm_ranges_c) : tsmm_ranges_c;
        default:
            return sums ? std::span<const CublasRange>(tsmttsm_ranges_z) : tsmm_ranges_z;
    }
}

}  // namespace

bool prefers_cublas_tsmttsm(Dtype scalar, int m, int n) {
    return contain(cublas_ranges(scalar, true), m, n);
}

bool prefers_cublas_tsmm(Dtype scalar, int m, int n) {
    return contain(cublas_ranges(scalar, false), m, n);
}

ProductShape ProductShape::streams_of_sums(Dtype scalar, int m, int n) {
    ProductShape shape(scalar, 1, 1);
    shape.m = round_up(m, streamed_sums_step);
    shape.n = streamed_sums_width(scalar, n);
    shape.exact = false;
    shape.streamed = true;
    return shape;
}

namespace {

/// The layout in the name of a streamed kernel that copies 16 bytes at a time, or the most general
/// one.
Layout streamed_layout(bool by_16_bytes, int scalar_bytes) {
    return by_16_bytes ? Layout{false, 16, true} : Layout::any(scalar_bytes);
}
/// The most elements by which a row may start behind a multiple of 16 bytes.
int most_behind(const Layout& rows, int scalar_bytes) {
    return rows.unit == 16 ? 0 : 16 / scalar_bytes - 1;
}

}  // namespace

Served Served::streams(Dtype scalar, int m, int n, const Layout& x, const Layout& y) {
    const int bytes = ProductShape(scalar, 1, 1).scalar_bytes();
    return {ProductShape::streams(scalar, m + most_behind(x, bytes), n),
            streamed_layout(x.unit >= std::min(bytes, 16), bytes),
            streamed_layout(has_tensor_kernels(scalar) && y.unit == 16, bytes)};
}

Served Served::streams_of_sums(Dtype scalar, int m, int n, const Layout& a) {
    const int bytes = ProductShape(scalar, 1, 1).scalar_bytes();
    return {ProductShape::streams_of_sums(scalar, m + most_behind(a, bytes), n),
            streamed_layout(a.unit >= std::min(bytes, 16), bytes), Layout::any(bytes)};
}

std::vector<ProductShape> ProductShape::streamed_sums(Dtype scalar) {
    std::vector<ProductShape> shapes;
    for (int m = widest_shared_panel + streamed_sums_step; m <= widest_streamed_sums;
         m += streamed_sums_step) {
        for (int n = 1; n <= 16; ++n) {
            // The rule may hold for some of the widths that this shape serves only.
            bool serves = false;
            for (int part = m - streamed_sums_step + 1; part <= m; ++part) {
                serves = serves || prefers_streamed_sums(scalar, part, n);
            }
            if (serves && (shapes.empty() || shapes.back().m != m ||
                           shapes.back().n != streamed_sums_width(scalar, n))) {
                shapes.push_back(streams_of_sums(scalar, m, n));
            }
        }
    }
    return shapes;
}

ProductShape ProductShape::pair(Dtype scalar, int m, int n) {
    ProductShape shape(scalar, m, n);
    shape.second = shape.n;
    shape.m += shape.n;
    return shape;
}

int ProductShape::scalar_bytes() const {
    return visit_dtype(scalar, []<class T>() { return static_cast<int>(sizeof(T)); });
}

namespace {

struct Widths {
    int m, n;
};

/// The shared shapes, C m x n: blocks with each other, a basis with a block, a block with a basis.
/// A kernel for n = 1 would save nothing, because the one for n = 4 takes the same time.
constexpr Widths product_shapes[] = {
    {1, 1},    {4, 4},   {8, 8},   {16, 16}, {24, 24}, {32, 32}, {48, 48}, {64, 64}, {16, 4},
    {32, 4},   {64, 4},  {128, 4}, {16, 8},  {32, 8},  {64, 8},  {32, 16}, {48, 16}, {64, 16},
    {128, 16}, {64, 32}, {4, 16},  {4, 32},  {4, 64},  {16, 32}, {16, 64}, {32, 64}};
/// The shared shapes of Y = X C + Y D.
constexpr Widths pair_shapes[] = {{4, 4}, {8, 8}, {16, 16}, {24, 24}, {32, 32}, {48, 48}, {16, 32}};

/// The covering shape with the fewest wasted multiply-adds; beyond all shapes, the next compiled
/// widths.
Widths covering(std::span<const Widths> shapes, int m, int n) {
    const Widths* best = nullptr;
    for (const Widths& shape : shapes) {
        if (shape.m >= m && shape.n >= n &&
            (best == nullptr || shape.m * shape.n < best->m * best->n)) {
            best = &shape;
        }
    }
    return best != nullptr ? *best : Widths{compiled_width(m), compiled_width(n)};
}

}  // namespace

ProductShape ProductShape::shared() const {
    const Widths widths =
        second > 0 ? covering(pair_shapes, m - second, n) : covering(product_shapes, m, n);
    ProductShape shape = *this;
    shape.n = widths.n;
    shape.second = second > 0 ? widths.n : 0;
    shape.m = widths.m + shape.second;
    // Not exact even for equal widths, so that one kernel serves both cases.
    shape.exact = false;
    return shape;
}

std::vector<ProductShape> ProductShape::shared_products(Dtype scalar) {
    std::vector<ProductShape> shapes;
    for (const auto& [m, n] : product_shapes) {
        shapes.push_back(ProductShape(scalar, m, n).shared());
    }
    return shapes;
}

bool ProductShape::frequent() const {
    return m == n && second == 0 && !adds &&
           std::find(std::begin(frequent_widths), std::end(frequent_widths), n) !=
               std::end(frequent_widths);
}

std::vector<ProductShape> ProductShape::shared_pairs(Dtype scalar) {
    std::vector<ProductShape> shapes;
    for (const auto& [m, n] : pair_shapes) {
        shapes.push_back(ProductShape::pair(scalar, m, n).shared());
    }
    return shapes;
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
