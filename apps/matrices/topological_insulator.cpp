// SPDX-License-Identifier: BSD-3-Clause
// topi: a three-dimensional topological insulator on nx x ny x nz sites with four orbitals,
//   H = -t sum_{n,j} [ psi+_{n+e_j} (G1 - i G_{j+1})/2 psi_n + h.c. ]
//       + sum_n psi+_n (V_n + 2 G1) psi_n,
// G1 = tz x 1, G2, G3, G4 = tx x (sx, sy, sz), where tx, tz and sx, sy, sz are Pauli matrices; V_n
// is uniform in [-W/2, W/2). Row 4 (x + nx (y + ny z)) + 2 tau + sigma. If all axes are periodic
// and W is 0, the eigenvalues for every size are
//   E = +- sqrt((2 - t sum_j cos k_j)^2 + t^2 sum_j sin^2 k_j), each twice.
// With two sites along a periodic axis, both bonds between them are summed (the parts with G2, G3,
// G4 cancel). A single site is its own neighbour on both sides.
// Source: Kreutzer et al., ISC 2018; Pieper et al., J. Comput. Phys. 325 (2016).
#include <array>
#include <complex>

#include "apps/matrices/generator_table.hpp"
#include "kernels/random.hpp"

namespace quiver::apps {
namespace {

using Z = std::complex<double>;

struct Crystal {
    std::array<std::int64_t, 3> n{};
    std::array<bool, 3> wraps{};
    double t = 0, disorder = 0;
    std::uint64_t seed = 0;
};

/// Row `orbital` of G_{2+axis}: its only entry is in column `column`.
struct Coupling {
    int column;
    Z value;
};
Coupling coupling(int axis, int orbital) {
    const int sigma = orbital % 2;
    const double sign = sigma == 0 ? 1 : -1;
    switch (axis) {
        case 0:
            return {3 - orbital, Z(1, 0)};
        case 1:
            return {3 - orbital, Z(0, -sign)};
        default:
            return {(orbital + 2) % 4, Z(sign, 0)};
    }
}

void topi_row(const Crystal& crystal, std::int64_t row, RowEntries<Z>& entries) {
    const std::int64_t site = row / 4;
    const auto orbital = static_cast<int>(row % 4);
    const double g1 = orbital < 2 ? 1 : -1;
    const double random = crystal.disorder * (uniform(crystal.seed, site, 0) - 0.5);
    entries.add(row, Z(2 * g1 + random, 0));
    std::int64_t stride = 1;
    for (int axis = 0; axis < 3; ++axis) {
        const std::int64_t points = crystal.n[static_cast<std::size_t>(axis)];
        const std::int64_t at = site / stride % points;
        const Coupling g = coupling(axis, orbital);
        for (const int side : {-1, 1}) {
            std::int64_t to = at + side;
            if (to < 0 || to >= points) {
                if (!crystal.wraps[static_cast<std::size_t>(axis)]) {
                    continue;
                }
                to = to < 0 ? points - 1 : 0;
            }
            const std::int64_t first = 4 * (site + (to - at) * stride);
            entries.add(first + orbital, Z(-crystal.t / 2 * g1, 0));
            // side -1: -t/2 (-i G) psi_{n-e}; side 1: its adjoint, -t/2 (i G) psi_{n+e}.
            entries.add(first + g.column, Z(0, -side * crystal.t / 2) * g.value);
        }
        stride *= points;
    }
}

GeneratedMatrix topi(const Parameters& parameters) {
    Crystal crystal;
    GeneratedMatrix matrix;
    matrix.rows = 4;
    constexpr std::array names{"nx", "ny", "nz"};
    constexpr std::array boundary_names{"bx", "by", "bz"};
    for (std::size_t d = 0; d < 3; ++d) {
        crystal.n[d] = parameters.whole(names[d]);
        crystal.wraps[d] = parameters.whole(boundary_names[d]) == periodic;
        if (__builtin_mul_overflow(matrix.rows, crystal.n[d], &matrix.rows)) {
            parameters.refuse("the number of rows does not fit 64 bits");
        }
    }
    crystal.t = parameters.real("t");
    crystal.disorder = parameters.real("W");
    crystal.seed = static_cast<std::uint64_t>(parameters.whole("seed"));
    matrix.symmetry = Symmetry::hermitian;
    matrix.make_complex_row = [crystal](std::int64_t row, RowEntries<Z>& entries) {
        topi_row(crystal, row, entries);
    };
    return matrix;
}

}  // namespace

std::vector<Generator> topi_generators() {
    return {{{"topi",
              "topological insulator, complex Hermitian (rows: 4 nx ny nz)",
              {{"nx", "20", "sites in x"},
               {"ny", "nx", "sites in y"},
               {"nz", "nx", "sites in z"},
               {"t", "1", "hopping", KeyKind::real},
               {"bx", "periodic", "boundary in x", KeyKind::choice, 0, boundaries},
               {"by", "periodic", "boundary in y", KeyKind::choice, 0, boundaries},
               {"bz", "open", "boundary in z", KeyKind::choice, 0, boundaries},
               {"W", "0", "width of the random site energies", KeyKind::real},
               seed_key},
              true},
             topi}};
}

}  // namespace quiver::apps
