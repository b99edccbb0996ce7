// SPDX-License-Identifier: BSD-3-Clause
// Linear elasticity on a box of equal trilinear hexahedra, with three unknowns a node. The
// integrals over an element are products of integrals over its edges, hence exact. Row 3 p + d is
// direction d of node p; nodes are numbered with z fastest and x slowest, so that the nodes of the
// clamped face x = 0, which have no unknowns, come first. Source: Hughes, The Finite Element
// Method, chapter 3.
#include <algorithm>
#include <array>
#include <utility>

#include "apps/matrices/generator_table.hpp"

namespace quiver::apps {
namespace {

constexpr int corners = 8;
constexpr std::int64_t stiffness_kind = 0;
constexpr std::int64_t lumped_kind = 2;
constexpr std::int64_t clamped_support = 1;

using Triple = std::array<std::int64_t, 3>;

/// Corner c of an element is at the upper end of axis d if this is 1.
constexpr std::int64_t upper(int corner, int d) {
    return corner >> (2 - d) & 1;
}

struct Box {
    Triple elements;
    std::array<double, 3> edge;
    bool clamped = false;
    bool lumped = false;
    /// The 3 x 3 blocks of the matrix of an element.
    double element[corners][corners][3][3];

    std::int64_t nodes(int d) const { return elements[static_cast<std::size_t>(d)] + 1; }
    std::int64_t fixed() const { return clamped ? nodes(1) * nodes(2) : 0; }
    std::int64_t number(const Triple& p) const {
        return (p[0] * nodes(1) + p[1]) * nodes(2) + p[2];
    }
    Triple place(std::int64_t node) const {
        return {node / nodes(2) / nodes(1), node / nodes(2) % nodes(1), node % nodes(2)};
    }

    /// The integral over an element of the product of the shape functions of corners a and b,
    /// differentiated in directions p and q; -1: not differentiated.
    double integral(int a, int b, int p, int q) const {
        double product = 1;
        for (int d = 0; d < 3; ++d) {
            const double h = edge[static_cast<std::size_t>(d)];
            const bool same = upper(a, d) == upper(b, d);
            if (d == p && d == q) {
                product *= (same ? 1 : -1) / h;
            } else if (d == p || d == q) {
                product *= upper(d == p ? a : b, d) == 1 ? 0.5 : -0.5;
            } else {
                product *= h / (same ? 3 : 6);
            }
        }
        return product;
    }
    void set_stiffness(double lame, double shear) {
        for (int a = 0; a < corners; ++a) {
            for (int b = 0; b < corners; ++b) {
                const double gradients =
                    integral(a, b, 0, 0) + integral(a, b, 1, 1) + integral(a, b, 2, 2);
                for (int p = 0; p < 3; ++p) {
                    for (int q = 0; q < 3; ++q) {
                        element[a][b][p][q] = lame * integral(a, b, p, q) +
                                              shear * integral(a, b, q, p) +
                                              (p == q ? shear * gradients : 0);
                    }
                }
            }
        }
    }
    void set_mass(double density) {
        const double corner = density * edge[0] * edge[1] * edge[2] / corners;
        for (int a = 0; a < corners; ++a) {
            for (int b = 0; b < corners; ++b) {
                for (int p = 0; p < 3; ++p) {
                    for (int q = 0; q < 3; ++q) {
                        const double consistent = density * integral(a, b, -1, -1);
                        element[a][b][p][q] = p != q   ? 0
                                              : lumped ? (a == b ? corner : 0)
                                                       : consistent;
                    }
                }
            }
        }
    }

    /// Adds the entries of row 3 (node - fixed()) + p for another node, summed over the elements
    /// that have both nodes in ascending order: the matrix is symmetric to the last bit.
    void add_block(const Triple& node, const Triple& other, int p, bool diagonal,
                   RowEntries<double>& entries) const {
        std::array<double, 3> sum{};
        for (int e = 0; e < corners; ++e) {
            int a = 0;
            int b = 0;
            bool inside = true;
            for (std::size_t d = 0; d < 3; ++d) {
                const std::int64_t first = node[d] - 1 + upper(e, static_cast<int>(d));
                const std::int64_t at = other[d] - first;
                inside = inside && first >= 0 && first < elements[d] && (at == 0 || at == 1);
                a = 2 * a + static_cast<int>(node[d] - first);
                b = 2 * b + static_cast<int>(at);
            }
            for (std::size_t q = 0; inside && q < 3; ++q) {
                sum[q] += element[a][b][p][q];
            }
        }
        for (int q = 0; q < 3; ++q) {
            if (!diagonal || p == q) {
                entries.add(3 * (number(other) - fixed()) + q, sum[static_cast<std::size_t>(q)]);
            }
        }
    }
    void make_row(std::int64_t row, bool diagonal, RowEntries<double>& entries) const {
        const Triple node = place(row / 3 + fixed());
        Triple low{};
        Triple high{};
        for (std::size_t d = 0; d < 3; ++d) {
            const std::int64_t reach = lumped ? 0 : 1;
            const std::int64_t least = d == 0 && clamped ? 1 : 0;
            low[d] = std::max(node[d] - reach, least);
            high[d] = std::min(node[d] + reach, elements[d]);
        }
        for (std::int64_t i = low[0]; i <= high[0]; ++i) {
            for (std::int64_t j = low[1]; j <= high[1]; ++j) {
                for (std::int64_t k = low[2]; k <= high[2]; ++k) {
                    add_block(node, {i, j, k}, static_cast<int>(row % 3), diagonal, entries);
                }
            }
        }
    }

    Mesh mesh() const {
        Mesh mesh;
        mesh.fixed = fixed();
        const std::int64_t all = nodes(0) * nodes(1) * nodes(2);
        for (std::int64_t node = 0; node < all; ++node) {
            const Triple at = place(node);
            for (std::size_t d = 0; d < 3; ++d) {
                mesh.points.push_back(static_cast<double>(at[d]) * edge[d]);
            }
            if (at[0] == elements[0] || at[1] == elements[1] || at[2] == elements[2]) {
                continue;
            }
            // The order of VTK: round the face z = 0, then round the face above it.
            for (const int corner : {0, 4, 6, 2, 1, 5, 7, 3}) {
                mesh.hexahedra.push_back(number({at[0] + upper(corner, 0), at[1] + upper(corner, 1),
                                                 at[2] + upper(corner, 2)}));
            }
        }
        return mesh;
    }
};

GeneratedMatrix hexahedra(const Parameters& parameters) {
    Box box{};
    const char* const counts[] = {"nx", "ny", "nz"};
    const char* const lengths[] = {"lx", "ly", "lz"};
    const auto positive = [&](const char* key) {
        const double value = parameters.real(key);
        if (!(value > 0)) {
            parameters.refuse(std::string(key) + " is not positive");
        }
        return value;
    };
    for (std::size_t d = 0; d < 3; ++d) {
        box.elements[d] = parameters.whole(counts[d]);
        box.edge[d] = positive(lengths[d]) / static_cast<double>(box.elements[d]);
    }
    box.clamped = parameters.whole("support") == clamped_support;
    const std::int64_t kind = parameters.whole("matrix");
    box.lumped = kind == lumped_kind;
    const double young = positive("E");
    const double density = positive("rho");
    const double nu = parameters.real("nu");
    if (!(nu > -1 && nu < 0.5)) {
        parameters.refuse("nu is not between -1 and 0.5");
    }
    if (kind == stiffness_kind) {
        box.set_stiffness(young * nu / ((1 + nu) * (1 - 2 * nu)), young / (2 * (1 + nu)));
    } else {
        box.set_mass(density);
    }
    GeneratedMatrix matrix;
    constexpr std::int64_t most_nodes = std::int64_t{1} << 20;  // along an axis
    matrix.rows = 3;
    for (std::size_t d = 0; d < 3; ++d) {
        if (box.elements[d] >= most_nodes ||
            __builtin_mul_overflow(matrix.rows, box.elements[d] + (d == 0 && box.clamped ? 0 : 1),
                                   &matrix.rows)) {
            parameters.refuse(
                "the number of rows does not fit 64 bits, or an axis has too many "
                "elements");
        }
    }
    matrix.make_row = [box, diagonal = kind != stiffness_kind](std::int64_t row,
                                                               RowEntries<double>& entries) {
        box.make_row(row, diagonal, entries);
    };
    matrix.mesh = [box] { return box.mesh(); };
    return matrix;
}

}  // namespace

std::vector<Generator> hexahedra_generators() {
    return {{{"hexahedra",
              "stiffness or mass matrix of an elastic box, trilinear elements (rows: 3 a node)",
              {{"nx", "20", "elements in x"},
               {"ny", "4", "elements in y"},
               {"nz", "ny", "elements in z"},
               {"lx", "nx", "length in x", KeyKind::real},
               {"ly", "ny", "length in y", KeyKind::real},
               {"lz", "nz", "length in z", KeyKind::real},
               {"E", "2.1e11", "Young's modulus", KeyKind::real},
               {"nu", "0.3", "Poisson's ratio", KeyKind::real},
               {"rho", "7850", "density", KeyKind::real},
               {"support", "free", "clamped: the face x = 0 does not move", KeyKind::choice, 0,
                "free|clamped"},
               {"matrix", "stiffness", "mass: consistent; lumped: diagonal", KeyKind::choice, 0,
                "stiffness|mass|lumped"}}},
             hexahedra}};
}

}  // namespace quiver::apps
