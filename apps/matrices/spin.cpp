// SPDX-License-Identifier: BSD-3-Clause
// Rings of L spins 1/2, s the Pauli matrices:
//   H = sum_l Jx sx_l sx_{l+1} + Jy sy_l sy_{l+1} + Jz sz_l sz_{l+1} + Bx sx_l + Bz sz_l.
// spin: the basis states are all L-bit words, in which a one is spin up; the row is the word. The
// diagonal entry is Jz (equal - unequal neighbour pairs) + Bz (ones - zeros). In the column of the
// word with one bit flipped the entry is Bx. With both bits of a neighbour pair flipped it is
// Jx - Jy for an equal pair, Jx + Jy for an unequal pair.
// spinSZ: Jx = Jy, no field, only the words with L/2 ones, ascending (total z-spin 0).
// A ring of two spins has two bonds between them, so every coupling counts twice.
#include <bit>

#include "apps/matrices/generator_table.hpp"
#include "kernels/hamiltonian/words.hpp"

namespace quiver::apps {
namespace {

void spin_sz_row(int spins, double jz, double jxy, std::int64_t row, RowEntries<double>& entries) {
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
            // Moving a one from `bit` to the next higher bit adds C(bit, ones_below) to the rank.
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
    if (length % 2 != 0 || length > most_bits) {
        parameters.refuse("L=" + std::to_string(length) + ": an even number of 2 .. " +
                          std::to_string(most_bits) + " spins is wanted");
    }
    const auto spins = static_cast<int>(length);
    GeneratedMatrix matrix;
    matrix.rows = choose(spins, spins / 2);
    matrix.symmetry = Symmetry::symmetric;
    matrix.make_row = [spins, jz = parameters.real("Jz"), jxy = parameters.real("Jxy")](
                          std::int64_t row, RowEntries<double>& entries) {
        spin_sz_row(spins, jz, jxy, row, entries);
    };
    return matrix;
}

struct Couplings {
    double jx, jy, jz, bx, bz;
};

void spin_row(int spins, const Couplings& c, std::int64_t row, RowEntries<double>& entries) {
    const auto word = static_cast<std::uint64_t>(row);
    int equal = 0;
    const auto add = [&](std::uint64_t column, double value) {
        if (value != 0) {
            entries.add(static_cast<std::int64_t>(column), value);
        }
    };
    for (int bit = 0; bit < spins; ++bit) {
        const int next = bit + 1 == spins ? 0 : bit + 1;
        const std::uint64_t pair = std::uint64_t{1} << bit | std::uint64_t{1} << next;
        const bool is_equal = (word & pair) == 0 || (word & pair) == pair;
        equal += is_equal ? 1 : 0;
        add(word ^ pair, is_equal ? c.jx - c.jy : c.jx + c.jy);
        add(word ^ std::uint64_t{1} << bit, c.bx);
    }
    add(word, c.jz * (2 * equal - spins) + c.bz * (2 * std::popcount(word) - spins));
}

GeneratedMatrix spin(const Parameters& parameters) {
    const std::int64_t length = parameters.whole("L");
    if (length > most_bits) {
        parameters.refuse("L=" + std::to_string(length) + ": 2 .. " + std::to_string(most_bits) +
                          " spins are wanted");
    }
    const auto spins = static_cast<int>(length);
    const Couplings couplings{parameters.real("Jx"), parameters.real("Jy"), parameters.real("Jz"),
                              parameters.real("Bx"), parameters.real("Bz")};
    GeneratedMatrix matrix;
    matrix.rows = std::int64_t{1} << spins;
    matrix.symmetry = Symmetry::symmetric;
    matrix.make_row = [spins, couplings](std::int64_t row, RowEntries<double>& entries) {
        spin_row(spins, couplings, row, entries);
    };
    return matrix;
}

}  // namespace

std::vector<Generator> spin_generators() {
    return {{{"spinSZ",
              "Heisenberg XXZ ring of L spins 1/2, total z-spin 0 (rows: L over L/2)",
              {{"L", "16", "number of spins, even", KeyKind::whole, 2},
               {"Jz", "1", "coupling of the z-components", KeyKind::real},
               {"Jxy", "1", "coupling of the x- and y-components", KeyKind::real}}},
             spin_sz},
            {{"spin",
              "XYZ ring of L spins 1/2 in a field, all spin states (rows: 2^L)",
              {{"L", "14", "number of spins", KeyKind::whole, 2},
               {"Jx", "1", "coupling of the x-components", KeyKind::real},
               {"Jy", "1", "coupling of the y-components", KeyKind::real},
               {"Jz", "1", "coupling of the z-components", KeyKind::real},
               {"Bx", "1", "field in x", KeyKind::real},
               {"Bz", "1", "field in z", KeyKind::real}}},
             spin}};
}

}  // namespace quiver::apps
