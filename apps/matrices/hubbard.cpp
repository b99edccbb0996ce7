// SPDX-License-Identifier: BSD-3-Clause
// hubbard: L sites on a line or ring, n fermions of spin up and n of spin down,
//   H = t sum_{i,s} (c+_{i,s} c_{i+1,s} + h.c.) + U sum_i n_{i,up} n_{i,down} + sum_i e_i n_i,
// e_i uniform in [-W/2, W/2). A state is a pair of L-bit words with n ones each, up and down; its
// row is rank_of(up) C(L, n) + rank_of(down). A hop between neighbours passes no other fermion. A
// hop over the bond that closes the ring passes the n - 1 others: sign (-1)^(n - 1). A ring of two
// sites has two bonds between them, so its hopping is 2 t; for n = 1 its eigenvalues are
// (U -+ sqrt(U^2 + 64 t^2)) / 2, 0 and U.
#include <bit>

#include "apps/matrices/generator_table.hpp"
#include "kernels/hamiltonian/words.hpp"
#include "kernels/random.hpp"

namespace quiver::apps {
namespace {

struct Chain {
    int sites, fermions;
    bool periodic;
    double t, u, disorder;
    std::uint64_t seed;
};

/// Adds the hops of one spin; `row_of` converts the rank of the new word to a row.
template <class RowOf>
void add_hops(const Chain& chain, std::uint64_t word, RowEntries<double>& entries,
              const RowOf& row_of) {
    const int bonds = chain.periodic ? chain.sites : chain.sites - 1;
    for (int site = 0; site < bonds; ++site) {
        const int next = site + 1 == chain.sites ? 0 : site + 1;
        const std::uint64_t pair = std::uint64_t{1} << site | std::uint64_t{1} << next;
        if (std::popcount(word & pair) == 1) {
            const bool passes_odd = next == 0 && chain.fermions % 2 == 0;
            entries.add(row_of(rank_of(word ^ pair)), passes_odd ? -chain.t : chain.t);
        }
    }
}

void hubbard_row(const Chain& chain, std::int64_t row, RowEntries<double>& entries) {
    const std::int64_t words = choose(chain.sites, chain.fermions);
    const std::int64_t up_rank = row / words;
    const std::int64_t down_rank = row % words;
    const std::uint64_t up = word_of(up_rank, chain.sites, chain.fermions);
    const std::uint64_t down = word_of(down_rank, chain.sites, chain.fermions);
    double energy = chain.u * std::popcount(up & down);
    if (chain.disorder != 0) {
        for (int site = 0; site < chain.sites; ++site) {
            const auto here = static_cast<double>((up >> site & 1) + (down >> site & 1));
            energy += here * chain.disorder * (uniform(chain.seed, site, 0) - 0.5);
        }
    }
    if (energy != 0) {
        entries.add(row, energy);
    }
    add_hops(chain, up, entries, [&](std::int64_t rank) { return rank * words + down_rank; });
    add_hops(chain, down, entries, [&](std::int64_t rank) { return up_rank * words + rank; });
}

GeneratedMatrix hubbard(const Parameters& parameters) {
    const std::int64_t sites = parameters.whole("L");
    const std::int64_t fermions = parameters.whole("n");
    if (sites > most_bits) {
        parameters.refuse("L=" + std::to_string(sites) + ": 2 .. " + std::to_string(most_bits) +
                          " sites are wanted");
    }
    if (fermions > sites) {
        parameters.refuse("n=" + std::to_string(fermions) + ": at most one of each spin fits on " +
                          "each of the " + std::to_string(sites) + " sites");
    }
    const Chain chain{static_cast<int>(sites),
                      static_cast<int>(fermions),
                      parameters.whole("boundary") == periodic,
                      parameters.real("t"),
                      parameters.real("U"),
                      parameters.real("W"),
                      static_cast<std::uint64_t>(parameters.whole("seed"))};
    GeneratedMatrix matrix;
    const std::int64_t words = choose(chain.sites, chain.fermions);
    if (__builtin_mul_overflow(words, words, &matrix.rows)) {
        parameters.refuse("the number of states does not fit 64 bits");
    }
    matrix.symmetry = Symmetry::symmetric;
    matrix.make_row = [chain](std::int64_t row, RowEntries<double>& entries) {
        hubbard_row(chain, row, entries);
    };
    return matrix;
}

}  // namespace

std::vector<Generator> hubbard_generators() {
    return {{{"hubbard",
              "Hubbard chain of L sites, n fermions of each spin (rows: (L over n)^2)",
              {{"L", "10", "number of sites", KeyKind::whole, 2},
               {"n", "5", "fermions of each spin, at most L"},
               {"t", "1", "hopping", KeyKind::real},
               {"U", "4", "energy of a doubly occupied site", KeyKind::real},
               {"boundary", "open", "ends of the chain", KeyKind::choice, 0, boundaries},
               {"W", "0", "width of the random site energies", KeyKind::real},
               seed_key}},
             hubbard}};
}

}  // namespace quiver::apps
