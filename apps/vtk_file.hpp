// SPDX-License-Identifier: BSD-3-Clause
// Shapes of a mesh as a file of VTK, which ParaView and VisIt read.
#pragma once

#include <string>
#include <vector>

#include "apps/matrices/generators.hpp"

namespace quiver::apps {

/// A vector at each node of a mesh.
struct NodeVectors {
    std::string name;
    /// x, y, z of each node.
    std::vector<float> values;
};

/// Writes the mesh and the vectors at its nodes as an unstructured grid in the legacy format of
/// VTK, version 3.0, binary. Nodes without hexahedra become vertices. Not collective. Throws the
/// errors of write_file().
void write_vtk(const std::string& path, const std::string& title, const Mesh& mesh,
               const std::vector<NodeVectors>& vectors);

}  // namespace quiver::apps
