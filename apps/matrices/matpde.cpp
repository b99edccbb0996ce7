// SPDX-License-Identifier: BSD-3-Clause
// matpde: convection and diffusion on the unit square,
//   -(p u_x)_x - (q u_y)_y + r u_x + (r u)_x + s u,
//   p = exp(-x y), q = exp(x y), r = beta (x + y), s = 1 / (1 + x + y),
// with u = 0 at the edges, by central differences with h = 1/(n + 1), multiplied by h^2. The matrix
// is real and not symmetric. Grid point (i, j) lies at x = (i + 1) h, y = (j + 1) h. Its row is
// i + n j or, in Morton order, the number whose bit 2 b is bit b of i and whose bit 2 b + 1 is bit
// b of j; n must then be a power of two.
// Source: MATPDE of the NEP collection (Bai, Day, Demmel, Dongarra, 1996).
#include <bit>
#include <cmath>
#include <utility>

#include "apps/matrices/generator_table.hpp"

namespace quiver::apps {
namespace {

struct Square {
    std::int64_t n;
    bool morton;
    double beta;
};

/// The number whose bit b is bit 2 b of the word.
std::uint64_t even_bits(std::uint64_t word) {
    std::uint64_t result = 0;
    for (int bit = 0; bit < 32; ++bit) {
        result |= (word >> (2 * bit) & 1) << bit;
    }
    return result;
}

/// The inverse of even_bits.
std::uint64_t spread_bits(std::uint64_t word) {
    std::uint64_t result = 0;
    for (int bit = 0; bit < 32; ++bit) {
        result |= (word >> bit & 1) << (2 * bit);
    }
    return result;
}

std::pair<std::int64_t, std::int64_t> point_of(const Square& square, std::int64_t row) {
    if (square.morton) {
        const auto word = static_cast<std::uint64_t>(row);
        return {static_cast<std::int64_t>(even_bits(word)),
                static_cast<std::int64_t>(even_bits(word >> 1))};
    }
    return {row % square.n, row / square.n};
}

std::int64_t row_of(const Square& square, std::int64_t i, std::int64_t j) {
    if (square.morton) {
        return static_cast<std::int64_t>(spread_bits(static_cast<std::uint64_t>(i)) |
                                         spread_bits(static_cast<std::uint64_t>(j)) << 1);
    }
    return i + square.n * j;
}

void matpde_row(const Square& square, std::int64_t row, RowEntries<double>& entries) {
    const auto [i, j] = point_of(square, row);
    const double h = 1 / (static_cast<double>(square.n) + 1);
    const double x = static_cast<double>(i + 1) * h;
    const double y = static_cast<double>(j + 1) * h;
    const double p_west = std::exp(-(x - h / 2) * y);
    const double p_east = std::exp(-(x + h / 2) * y);
    const double q_south = std::exp(x * (y - h / 2));
    const double q_north = std::exp(x * (y + h / 2));
    const double r = square.beta * (x + y);
    const double r_step = square.beta * h;
    if (j > 0) {
        entries.add(row_of(square, i, j - 1), -q_south);
    }
    if (i > 0) {
        entries.add(row_of(square, i - 1, j), -p_west - h / 2 * (2 * r - r_step));
    }
    entries.add(row, p_west + p_east + q_south + q_north + h * h / (1 + x + y));
    if (i + 1 < square.n) {
        entries.add(row_of(square, i + 1, j), -p_east + h / 2 * (2 * r + r_step));
    }
    if (j + 1 < square.n) {
        entries.add(row_of(square, i, j + 1), -q_north);
    }
}

GeneratedMatrix matpde(const Parameters& parameters) {
    const Square square{parameters.whole("n"), parameters.whole("order") == 1,
                        parameters.real("beta")};
    GeneratedMatrix matrix;
    if (__builtin_mul_overflow(square.n, square.n, &matrix.rows)) {
        parameters.refuse("the number of grid points does not fit 64 bits");
    }
    if (square.morton && !std::has_single_bit(static_cast<std::uint64_t>(square.n))) {
        parameters.refuse("n=" + std::to_string(square.n) + ": Morton order needs a power of two");
    }
    matrix.symmetry = Symmetry::general;
    matrix.make_row = [square](std::int64_t row, RowEntries<double>& entries) {
        matpde_row(square, row, entries);
    };
    return matrix;
}

}  // namespace

std::vector<Generator> matpde_generators() {
    return {{{"matpde",
              "convection and diffusion on a square, not symmetric (rows: n^2)",
              {{"n", "64", "grid points along each axis"},
               {"order", "lexicographic", "order of the rows; morton needs a power of two",
                KeyKind::choice, 0, "lexicographic|morton"},
               {"beta", "20", "strength of the convection", KeyKind::real}}},
             matpde}};
}

}  // namespace quiver::apps
