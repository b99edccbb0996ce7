// SPDX-License-Identifier: BSD-3-Clause
// spinSZ: the Heisenberg XXZ ring of L spins 1/2 with total z-spin 0,
//   H = sum_l Jz sz_l sz_{l+1} + Jxy (sx_l sx_{l+1} + sy_l sy_{l+1}),  s the Pauli matrices,
// in the basis of L-bit words with L/2 ones, ascending. Diagonal: Jz (equal - unequal neighbour
// pairs); 2 Jxy to the word with the bits of an unequal pair exchanged. A row's word is found by
// the combinatorial number system, so that no table of all words is needed.
#include <array>
#include <bit>

#include "apps/matrices/generator_table.hpp"

namespace quiver::apps {
namespace {

constexpr int most_spins = 62;
using Binomials = std::array<std::array<std::int64_t, most_spins + 1>, most_spins + 1>;

constexpr Binomials make_binomials() {
    Binomials c{};
    for (std::size_t n = 0; n <= most_spins; ++n) {
        c[n][0] = 1;
        for (std::size_t k = 1; k <= n; ++k) {
            c[n][k] = c[n - 1][k - 1] + c[n - 1][k];
        }
    }
    return c;
}

/// Words of n bits with k ones.
std::int64_t choose(int n, int k) {
    static constexpr Binomials c = make_binomials();
    return c[static_cast<std::size_t>(n)][static_cast<std::size_t>(k)];
}

/// Number `rank` among the words with `ones` ones, ascending from 0.
std::uint64_t word_of(std::int64_t rank, int spins, int ones) {
    std::uint64_t word = 0;
    for (int bit = spins - 1; bit >= 0 && ones > 0; --bit) {
        if (rank >= choose(bit, ones)) {
            rank -= choose(bit, ones);
            --ones;
            word |= std::uint64_t{1} << bit;
        }
    }
    return word;
}

std::int64_t rank_of(std::uint64_t word) {
    std::int64_t rank = 0;
    for (int ones = 1; word != 0; ++ones) {
        rank += choose(std::countr_zero(word), ones);
        word &= word - 1;
    }
    return rank;
}

void spin_row(int spins, double jz, double jxy, std::int64_t row, RowEntries<double>& entries) {
    const std::uint64_t word = word_of(row, spins, spins / 2);
    int equal = 0;
    int ones_below = 0;
    for (int bit = 0; bit < spins; ++bit) {
        const int next = bit + 1 == spins ? 0 : bit + 1;
        const bool one = (word >> bit & 1) != 0;
        const bool next_one = (word >> next & 1) != 0;
        if (one == next_one) {
            ++equal;
        } else if (next != 0) {
            // A one that moves from `bit` to the next one up adds C(bit, ones_below) to the rank.
            const std::int64_t step = choose(bit, ones_below);
            entries.add(one ? row + step : row - step, 2 * jxy);
        } else {
            entries.add(rank_of(word ^ (std::uint64_t{1} << bit | 1)), 2 * jxy);
        }
        ones_below += one ? 1 : 0;
    }
    if (2 * equal != spins) {
        entries.add(row, jz * (2 * equal - spins));
    }
}

GeneratedMatrix spin_sz(const Parameters& parameters) {
    const std::int64_t length = parameters.whole("L");
    if (length % 2 != 0 || length > most_spins) {
        parameters.refuse("L=" + std::to_string(length) + ": an even number of 2 .. " +
                          std::to_string(most_spins) + " spins is wanted");
    }
    const auto spins = static_cast<int>(length);
    GeneratedMatrix matrix;
    matrix.rows = choose(spins, spins / 2);
    matrix.symmetry = Symmetry::symmetric;
    matrix.make_row = [spins, jz = parameters.real("Jz"), jxy = parameters.real("Jxy")](
                          std::int64_t row, RowEntries<double>& entries) {
        spin_row(spins, jz, jxy, row, entries);
    };
    return matrix;
}

}  // namespace

std::vector<Generator> spin_sz_generators() {
    return {{{"spinSZ",
              "Heisenberg XXZ ring of L spins 1/2, total z-spin 0 (rows: L over L/2)",
              {{"L", "16", "number of spins, even", true, 2},
               {"Jz", "1", "coupling of the z-components", false},
               {"Jxy", "1", "coupling of the x- and y-components", false}}},
             spin_sz}};
}

}  // namespace quiver::apps
