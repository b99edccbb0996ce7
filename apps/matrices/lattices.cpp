// SPDX-License-Identifier: BSD-3-Clause
// Electrons on a lattice with one orbital per site and random site energies.
// anderson: periodic L x L x L lattice, row x + L (y + L z), -t to each of the six neighbours,
//   diagonal uniform in [-W/2, W/2). Source: Anderson, Phys. Rev. 109 (1958); the states in the
//   middle of the spectrum localise near W = 16.5 t. Without disorder
//   E(k) = -2 t sum_d cos(2 pi k_d / L), k_d = 0 .. L - 1.
// graphene: honeycomb lattice drawn as a brick wall, row l W + w, with first to third neighbours.
//   The diagonal is 3 t3 + a random number uniform in gamma [-1/2, 1/2). The offsets (l, w) of the
//   neighbours are, with s = 1 if l + w is odd, else -1:
//   (0, +-1), (s, 0)         with entry t1 = -1,
//   (0, +-2), (+-1, +-1)     with entry t2 = -0.1/2.78,
//   (-s, 0), (s, +-2)        with entry t3 = -0.095/2.78.
//   Periodic and without disorder, E(k) = d +- |f| with
//   d = 3 t3 + 2 t2 (cos 2 k_w + 2 cos k_l cos k_w),
//   f = t1 (2 cos k_w + e^{i k_l}) + t3 (e^{-i k_l} + 2 cos(2 k_w) e^{i k_l}).
// On small periodic lattices several bonds may join the same sites. Their sum is stored, so that
// the closed forms hold for every size. anderson without disorder: L = 2 has -2 t between
// neighbours, and L = 1 is the number -6 t. graphene: if W or L is 2, the bonds to both sides join
// the same sites.
#include <array>

#include "apps/matrices/generator_table.hpp"
#include "kernels/random.hpp"

namespace quiver::apps {
namespace {

void anderson_row(std::int64_t length, double t, double disorder, std::uint64_t seed,
                  std::int64_t row, RowEntries<double>& entries) {
    entries.add(row, disorder * (uniform(seed, row, 0) - 0.5));
    std::int64_t stride = 1;
    for (int d = 0; d < 3; ++d) {
        const std::int64_t at = row / stride % length;
        const std::int64_t origin = row - at * stride;
        entries.add(origin + (at == 0 ? length - 1 : at - 1) * stride, -t);
        entries.add(origin + (at + 1 == length ? 0 : at + 1) * stride, -t);
        stride *= length;
    }
}

GeneratedMatrix anderson(const Parameters& parameters) {
    const std::int64_t length = parameters.whole("L");
    GeneratedMatrix matrix;
    if (__builtin_mul_overflow(length, length, &matrix.rows) ||
        __builtin_mul_overflow(matrix.rows, length, &matrix.rows)) {
        parameters.refuse("the number of sites does not fit 64 bits");
    }
    matrix.symmetry = Symmetry::symmetric;
    matrix.make_row = [length, t = parameters.real("t"), disorder = parameters.real("W"),
                       seed = static_cast<std::uint64_t>(parameters.whole("seed"))](
                          std::int64_t row, RowEntries<double>& entries) {
        anderson_row(length, t, disorder, seed, row, entries);
    };
    return matrix;
}

struct Sheet {
    std::int64_t width, length;
    bool periodic;
    double gamma;
    std::uint64_t seed;
};

void graphene_row(const Sheet& sheet, std::int64_t row, RowEntries<double>& entries) {
    constexpr double t1 = -1;
    constexpr double t2 = -0.1 / 2.78;
    constexpr double t3 = -0.095 / 2.78;
    const std::int64_t l = row / sheet.width;
    const std::int64_t w = row % sheet.width;
    const auto add = [&](std::int64_t dl, std::int64_t dw, double value) {
        std::int64_t to_l = l + dl;
        std::int64_t to_w = w + dw;
        if (sheet.periodic) {
            to_l = (to_l + sheet.length) % sheet.length;
            to_w = (to_w + sheet.width) % sheet.width;
        }
        if (to_l >= 0 && to_l < sheet.length && to_w >= 0 && to_w < sheet.width) {
            entries.add(to_l * sheet.width + to_w, value);
        }
    };
    const std::int64_t s = (l + w) % 2 == 1 ? 1 : -1;
    add(0, 0, 3 * t3 + sheet.gamma * (uniform(sheet.seed, row, 0) - 0.5));
    for (const std::int64_t side : {-1, 1}) {
        add(0, side, t1);
        add(0, 2 * side, t2);
        add(-1, side, t2);
        add(1, side, t2);
        add(s, 2 * side, t3);
    }
    add(s, 0, t1);
    add(-s, 0, t3);
}

GeneratedMatrix graphene(const Parameters& parameters) {
    const Sheet sheet{parameters.whole("W"), parameters.whole("L"),
                      parameters.whole("boundary") == periodic, parameters.real("gamma"),
                      static_cast<std::uint64_t>(parameters.whole("seed"))};
    if (sheet.periodic && (sheet.width % 2 != 0 || sheet.length % 2 != 0)) {
        parameters.refuse("W=" + std::to_string(sheet.width) + ",L=" +
                          std::to_string(sheet.length) + ": a periodic sheet needs even numbers");
    }
    GeneratedMatrix matrix;
    if (__builtin_mul_overflow(sheet.width, sheet.length, &matrix.rows)) {
        parameters.refuse("the number of sites does not fit 64 bits");
    }
    matrix.symmetry = Symmetry::symmetric;
    matrix.make_row = [sheet](std::int64_t row, RowEntries<double>& entries) {
        graphene_row(sheet, row, entries);
    };
    return matrix;
}

}  // namespace

std::vector<Generator> lattice_generators() {
    return {{{"graphene",
              "graphene sheet, tight binding up to third neighbours (rows: W L)",
              {{"W", "128", "sites across"},
               {"L", "W", "sites along"},
               {"boundary", "open", "edges of the sheet; periodic needs even W and L",
                KeyKind::choice, 0, boundaries},
               {"gamma", "0", "width of the random site energies", KeyKind::real},
               seed_key}},
             graphene},
            {{"anderson",
              "Anderson model of localisation on a periodic cubic lattice (rows: L^3)",
              {{"L", "40", "sites along each axis"},
               {"t", "1", "hopping", KeyKind::real},
               {"W", "16.5", "width of the random site energies", KeyKind::real},
               seed_key}},
             anderson}};
}

}  // namespace quiver::apps
