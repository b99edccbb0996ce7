// SPDX-License-Identifier: BSD-3-Clause
#include "apps/vtk_file.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>

#include <fmt/format.h>

#include "apps/report.hpp"

namespace quiver::apps {
namespace {

constexpr std::int32_t vtk_vertex = 1;
constexpr std::int32_t vtk_hexahedron = 12;
constexpr std::size_t hexahedron_nodes = 8;

/// Appends the four bytes of a number, the most significant one first.
template <class V>
void append_binary(std::string& text, V value) {
    static_assert(sizeof(V) == 4);
    const auto bits = std::bit_cast<std::uint32_t>(value);
    for (int shift = 24; shift >= 0; shift -= 8) {
        text += static_cast<char>(bits >> shift & 0xffu);
    }
}

}  // namespace

void write_vtk(const std::string& path, const std::string& title, const Mesh& mesh,
               const std::vector<NodeVectors>& vectors) {
    const std::size_t nodes = mesh.points.size() / 3;
    const bool cloud = mesh.hexahedra.empty();
    const std::size_t of_cell = cloud ? 1 : hexahedron_nodes;
    const std::size_t cells = cloud ? nodes : mesh.hexahedra.size() / hexahedron_nodes;
    // The format limits a title to 255 characters of one line.
    std::string text = fmt::format(
        "# vtk DataFile Version 3.0\n{:.255}\nBINARY\nDATASET UNSTRUCTURED_GRID\nPOINTS {} float\n",
        title, nodes);
    for (const double x : mesh.points) {
        append_binary(text, static_cast<float>(x));
    }
    text += fmt::format("\nCELLS {} {}\n", cells, cells * (of_cell + 1));
    for (std::size_t i = 0; i < cells * of_cell; ++i) {
        if (i % of_cell == 0) {
            append_binary(text, static_cast<std::int32_t>(of_cell));
        }
        append_binary(text, static_cast<std::int32_t>(cloud ? static_cast<std::int64_t>(i)
                                                            : mesh.hexahedra[i]));
    }
    text += fmt::format("\nCELL_TYPES {}\n", cells);
    for (std::size_t i = 0; i < cells; ++i) {
        append_binary(text, cloud ? vtk_vertex : vtk_hexahedron);
    }
    text += fmt::format("\nPOINT_DATA {}\n", nodes);
    for (const NodeVectors& each : vectors) {
        text += fmt::format("VECTORS {} float\n", each.name);
        for (const float x : each.values) {
            append_binary(text, x);
        }
        text += "\n";
    }
    write_file(path, text);
}

}  // namespace quiver::apps
