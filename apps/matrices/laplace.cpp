// SPDX-License-Identifier: BSD-3-Clause
// laplace1d, laplace2d, laplace3d: the negative Laplace operator by central differences on a grid
// with zero boundary values, without the factor 1/h^2: the diagonal is 2 times the number of
// dimensions, and each neighbour has -1. Grid point (x, y, z) has row x + nx (y + ny z).
// Eigenvalues: sum over the dimensions of 4 sin^2(pi i_d / (2 (n_d + 1))), i_d = 1 .. n_d.
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "apps/matrices/generator_table.hpp"

namespace quiver::apps {
namespace {

using Grid = std::array<std::int64_t, 3>;

void laplace_row(const Grid& n, int dimensions, std::int64_t row, RowEntries<double>& entries) {
    // In ascending order of the columns, so that the row need not be sorted.
    const Grid at{row % n[0], row / n[0] % n[1], row / n[0] / n[1]};
    const Grid stride{1, n[0], n[0] * n[1]};
    for (std::size_t d = n.size(); d-- > 0;) {
        if (at[d] > 0) {
            entries.add(row - stride[d], -1.0);
        }
    }
    entries.add(row, 2.0 * dimensions);
    for (std::size_t d = 0; d < n.size(); ++d) {
        if (at[d] + 1 < n[d]) {
            entries.add(row + stride[d], -1.0);
        }
    }
}

/// The first k eigenvalues of one dimension, counted from the wanted end.
std::vector<double> eigenvalues_1d(std::int64_t n, int k, bool smallest) {
    std::vector<double> result;
    for (std::int64_t i = 1; i <= std::min<std::int64_t>(n, k); ++i) {
        const auto index = static_cast<double>(smallest ? i : n + 1 - i);
        const double sine = std::sin(std::numbers::pi * index / (2 * (static_cast<double>(n) + 1)));
        result.push_back(4 * sine * sine);
    }
    return result;
}

std::vector<double> eigenvalues(const Grid& n, int dimensions, int k, bool smallest) {
    const auto first = [&](double left, double right) {
        return smallest ? left < right : left > right;
    };
    std::vector<double> sums{0.0};
    const auto wanted = static_cast<std::size_t>(k);
    for (std::size_t d = 0; d < static_cast<std::size_t>(dimensions); ++d) {
        const std::vector<double> more = eigenvalues_1d(n[d], k, smallest);
        std::vector<double> candidates;
        // Both lists are sorted, so sum (i, j) is at best the (i + 1) (j + 1)-th of all sums.
        for (std::size_t i = 0; i < sums.size(); ++i) {
            for (std::size_t j = 0; j < more.size() && (i + 1) * (j + 1) <= wanted; ++j) {
                candidates.push_back(sums[i] + more[j]);
            }
        }
        std::sort(candidates.begin(), candidates.end(), first);
        candidates.resize(std::min(candidates.size(), wanted));
        sums = std::move(candidates);
    }
    std::sort(sums.begin(), sums.end());
    return sums;
}

GeneratedMatrix laplace(const Parameters& parameters, int dimensions) {
    constexpr std::array names{"nx", "ny", "nz"};
    Grid n{1, 1, 1};
    GeneratedMatrix matrix;
    matrix.rows = 1;
    for (std::size_t d = 0; d < static_cast<std::size_t>(dimensions); ++d) {
        n[d] = parameters.whole(names[d]);
        if (__builtin_mul_overflow(matrix.rows, n[d], &matrix.rows)) {
            parameters.refuse("the number of grid points does not fit 64 bits");
        }
    }
    matrix.symmetry = Symmetry::symmetric;
    matrix.make_row = [n, dimensions](std::int64_t row, RowEntries<double>& entries) {
        laplace_row(n, dimensions, row, entries);
    };
    matrix.eigenvalues = [n, dimensions](int k, bool smallest) {
        return eigenvalues(n, dimensions, k, smallest);
    };
    return matrix;
}

}  // namespace

std::vector<Generator> laplace_generators() {
    const GeneratorKey nx{"nx", "40", "grid points in x"};
    const GeneratorKey ny{"ny", "nx", "grid points in y"};
    const GeneratorKey nz{"nz", "nx", "grid points in z"};
    return {{{"laplace1d", "3-point Laplace operator on a line, zero at its ends", {nx}},
             [](const Parameters& parameters) { return laplace(parameters, 1); }},
            {{"laplace2d", "5-point Laplace operator on a rectangle, zero at its edges", {nx, ny}},
             [](const Parameters& parameters) { return laplace(parameters, 2); }},
            {{"laplace3d", "7-point Laplace operator on a box, zero at its faces", {nx, ny, nz}},
             [](const Parameters& parameters) { return laplace(parameters, 3); }}};
}

}  // namespace quiver::apps
