// SPDX-License-Identifier: BSD-3-Clause
// Kinds of matrices for which products of sparse matrices differ in speed.
// elements: the pattern of trilinear finite elements on a box with u unknowns a node. The matrix is
//   the Kronecker product of the 27-point operator (26 on the diagonal, -1 for each of the 26
//   neighbours) with the u x u matrix that has 1 on the diagonal and 1/4 elsewhere. It is positive
//   definite; row u (x + nx (y + ny z)) + a is unknown a of node (x, y, z).
// irregular: n rows with random columns and values uniform in [-1, 1), not symmetric. The kinds
//   copy the numbers of entries and the distances to the diagonal of known families. Columns that a
//   row draws twice, or outside of the matrix, are dropped.
//   web         row lengths from a power law with exponent 2.3, at most 20,000 and n / 4; 30% of
//               the columns are drawn in proportion to r^-0.8, where r = 1 .. n is the rank of the
//               column in a scattered order, the others anywhere
//   social      rows three times as long; all columns drawn in proportion to r^-0.5
//   road        2.4 entries a row on average, 60% within 4 of the diagonal, the others within 2,000
//   neighbours  points of a square grid, each with 8 + Poisson(5) points of a 7 x 7 square
//               around it
//   random      15 entries a row on average, anywhere
//   band        20 to 60 entries a row within 2,000 of the diagonal
//   dense-rows  5 diagonals, and 8 rows with every second column
//   empty-rows  3 of 4 rows are empty; the others have 12 entries within 1,000 of the diagonal
#include <algorithm>
#include <cmath>
#include <functional>

#include "apps/matrices/generator_table.hpp"
#include "kernels/random.hpp"

namespace quiver::apps {
namespace {

struct ElementBox {
    std::int64_t nx, ny, nz, unknowns;
};

void elements_row(const ElementBox& box, std::int64_t row, RowEntries<double>& entries) {
    const std::int64_t node = row / box.unknowns;
    const std::int64_t x = node % box.nx;
    const std::int64_t y = node / box.nx % box.ny;
    const std::int64_t z = node / (box.nx * box.ny);
    for (std::int64_t k = std::max<std::int64_t>(z - 1, 0); k <= std::min(z + 1, box.nz - 1); ++k) {
        for (std::int64_t j = std::max<std::int64_t>(y - 1, 0); j <= std::min(y + 1, box.ny - 1);
             ++j) {
            for (std::int64_t i = std::max<std::int64_t>(x - 1, 0);
                 i <= std::min(x + 1, box.nx - 1); ++i) {
                const std::int64_t other = i + box.nx * (j + box.ny * k);
                for (std::int64_t a = 0; a < box.unknowns; ++a) {
                    const std::int64_t column = other * box.unknowns + a;
                    const double stencil = other == node ? 26 : -1;
                    entries.add(column, column % box.unknowns == row % box.unknowns ? stencil
                                                                                    : stencil / 4);
                }
            }
        }
    }
}

GeneratedMatrix elements(const Parameters& parameters) {
    const ElementBox box{parameters.whole("nx"), parameters.whole("ny"), parameters.whole("nz"),
                         parameters.whole("unknowns")};
    GeneratedMatrix matrix;
    if (__builtin_mul_overflow(box.nx, box.ny, &matrix.rows) ||
        __builtin_mul_overflow(matrix.rows, box.nz, &matrix.rows) ||
        __builtin_mul_overflow(matrix.rows, box.unknowns, &matrix.rows)) {
        parameters.refuse("the number of rows does not fit 64 bits");
    }
    matrix.make_row = [box](std::int64_t row, RowEntries<double>& entries) {
        elements_row(box, row, entries);
    };
    return matrix;
}

/// The random numbers of one row, in order.
class RowRandom {
  public:
    RowRandom(std::uint64_t seed, std::int64_t row) : seed_(seed), row_(row) {}
    /// Uniform in [0, 1).
    double next() { return uniform(seed_, row_, count_++); }
    /// Uniform in first .. last.
    std::int64_t between(std::int64_t first, std::int64_t last) {
        return first + static_cast<std::int64_t>(next() * static_cast<double>(last - first + 1));
    }
    /// Poisson distributed.
    std::int64_t poisson(double mean) {
        const double limit = std::exp(-mean);
        std::int64_t count = 0;
        for (double product = next(); product > limit; product *= next()) {
            ++count;
        }
        return count;
    }

  private:
    std::uint64_t seed_;
    std::int64_t row_;
    int count_ = 0;
};

/// The columns of one row; duplicates and columns outside of the matrix are dropped later.
using Columns = std::vector<std::int64_t>;
using ColumnsOfRow = void (*)(std::int64_t n, std::int64_t row, RowRandom& random,
                              Columns& columns);

void add_near(std::int64_t row, std::int64_t count, std::int64_t distance, RowRandom& random,
              Columns& columns) {
    for (; count > 0; --count) {
        columns.push_back(row + random.between(-distance, distance));
    }
}

/// A row length with density proportional to length^-2.3 from 2 on.
std::int64_t power_law_length(std::int64_t n, RowRandom& random) {
    const double length = 1.95 * std::pow(random.next() + 1e-12, -1 / 1.3);
    return std::min(static_cast<std::int64_t>(std::min(length, 20000.0)),
                    std::max<std::int64_t>(n / 4, 1));
}

/// A column whose rank r, counted from the most frequent one, has density r^(1 / power - 1).
/// Columns of neighbouring ranks are scattered over the matrix.
std::int64_t frequent_column(std::int64_t n, double power, RowRandom& random) {
    const double rank = static_cast<double>(n) * std::pow(random.next(), power);
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(rank) * 2654435761u %
                                     static_cast<std::uint64_t>(n));
}

void web_row(std::int64_t n, std::int64_t, RowRandom& random, Columns& columns) {
    for (std::int64_t count = power_law_length(n, random); count > 0; --count) {
        columns.push_back(random.next() < 0.3 ? frequent_column(n, 5, random)
                                              : random.between(0, n - 1));
    }
}

void social_row(std::int64_t n, std::int64_t, RowRandom& random, Columns& columns) {
    for (std::int64_t count = 3 * power_law_length(n, random); count > 0; --count) {
        columns.push_back(frequent_column(n, 2, random));
    }
}

void road_row(std::int64_t, std::int64_t row, RowRandom& random, Columns& columns) {
    for (std::int64_t count = std::min<std::int64_t>(1 + random.poisson(1.4), 8); count > 0;
         --count) {
        add_near(row, 1, random.next() < 0.6 ? 4 : 2000, random, columns);
    }
}

void neighbours_row(std::int64_t n, std::int64_t row, RowRandom& random, Columns& columns) {
    const auto width = static_cast<std::int64_t>(std::sqrt(static_cast<double>(n)));
    for (std::int64_t count = 8 + random.poisson(5); count > 0; --count) {
        columns.push_back(row + random.between(-3, 3) + width * random.between(-3, 3));
    }
}

void random_row(std::int64_t n, std::int64_t, RowRandom& random, Columns& columns) {
    for (std::int64_t count = random.poisson(15); count > 0; --count) {
        columns.push_back(random.between(0, n - 1));
    }
}

void band_row(std::int64_t, std::int64_t row, RowRandom& random, Columns& columns) {
    add_near(row, random.between(20, 60), 2000, random, columns);
}

void dense_rows_row(std::int64_t n, std::int64_t row, RowRandom&, Columns& columns) {
    const std::int64_t apart = std::max<std::int64_t>(n / 8, 1);
    if (row % apart == apart / 2) {
        for (std::int64_t column = 0; column < n; column += 2) {
            columns.push_back(column);
        }
    } else {
        for (std::int64_t column = row - 2; column <= row + 2; ++column) {
            columns.push_back(column);
        }
    }
}

void empty_rows_row(std::int64_t, std::int64_t row, RowRandom& random, Columns& columns) {
    if (random.next() < 0.25) {
        add_near(row, 12, 1000, random, columns);
    }
}

struct IrregularKind {
    const char* name;
    ColumnsOfRow columns;
};

constexpr IrregularKind irregular_kinds[] = {{"web", web_row},
                                             {"social", social_row},
                                             {"road", road_row},
                                             {"neighbours", neighbours_row},
                                             {"random", random_row},
                                             {"band", band_row},
                                             {"dense-rows", dense_rows_row},
                                             {"empty-rows", empty_rows_row}};
constexpr const char* irregular_names =
    "web|social|road|neighbours|random|band|dense-rows|empty-rows";

GeneratedMatrix irregular(const Parameters& parameters) {
    GeneratedMatrix matrix;
    matrix.rows = parameters.whole("n");
    matrix.symmetry = Symmetry::general;
    matrix.make_row = [n = matrix.rows, seed = static_cast<std::uint64_t>(parameters.whole("seed")),
                       columns_of = irregular_kinds[parameters.whole("kind")].columns](
                          std::int64_t row, RowEntries<double>& entries) {
        RowRandom random(seed, row);
        Columns columns;
        columns_of(n, row, random, columns);
        std::erase_if(columns, [n](std::int64_t column) { return column < 0 || column >= n; });
        std::sort(columns.begin(), columns.end());
        columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
        for (const std::int64_t column : columns) {
            entries.add(column, 2 * random.next() - 1);
        }
    };
    return matrix;
}

}  // namespace

std::vector<Generator> irregular_generators() {
    return {
        {{"elements",
          "pattern of finite elements on a box, 27 nodes a row (rows: nx ny nz unknowns)",
          {{"nx", "20", "nodes in x"},
           {"ny", "nx", "nodes in y"},
           {"nz", "nx", "nodes in z"},
           {"unknowns", "3", "unknowns of a node"}}},
         elements},
        {{"irregular",
          "random rows of a kind, not symmetric (rows: n)",
          {{"n", "1000", "number of rows"},
           {"kind", "web", "the distribution of the entries", KeyKind::choice, 0, irregular_names},
           seed_key}},
         irregular}};
}

}  // namespace quiver::apps
