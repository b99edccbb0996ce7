// SPDX-License-Identifier: BSD-3-Clause
// Generated matrices, which a specification names: gen:NAME,key=value,...
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "blockvec/comm.hpp"
#include "kernels/sparse/sparse_matrix.hpp"

namespace quiver::apps {

/// The kind of a key's value: a whole number, any finite number, or one of several words.
enum class KeyKind : std::uint8_t { whole, real, choice };

/// One key of a generator.
struct GeneratorKey {
    const char* name;
    /// The default value as text, or the name of an earlier key whose value is the default.
    const char* default_value;
    const char* meaning;
    KeyKind kind = KeyKind::whole;
    /// The least value of a whole number.
    std::int64_t least = 1;
    /// The words of a choice, "a|b".
    const char* choices = nullptr;
};

/// The description of a generator, for lists and messages.
struct GeneratorInfo {
    const char* name;
    const char* description;
    std::vector<GeneratorKey> keys;
    /// Whether the matrix is complex.
    bool complex = false;
};

/// A mesh with three unknowns a node.
struct Mesh {
    /// x, y, z of each node. The first `fixed` nodes have no unknowns.
    std::vector<double> points;
    std::int64_t fixed = 0;
    /// The eight nodes of each element in the order of VTK; empty for a cloud of points.
    std::vector<std::int64_t> hexahedra;
};

/// The descriptions of all generators, family by family.
std::vector<GeneratorInfo> generators();

/// Whether the text starts with "gen:".
bool is_generator(const std::string& spec);

/// Whether the matrix that `spec` names is complex. Throws InputError for an unknown generator. No
/// communication.
bool is_complex_generator(const std::string& spec);

/// A hint for a name that is not a file: "; for a generated matrix write gen:NAME,..." if the text
/// before the first comma is the name of a generator or close to one, else empty. No communication.
std::string generator_hint(const std::string& spec);

/// This rank's rows of the matrix that `spec` names. Rows are distributed equally, or in proportion
/// to the weights if there are any. Each rank generates only its own rows, with this number of
/// threads. The matrix does not depend on the numbers of ranks and threads. Collective. Throws on
/// all ranks: InputError for an unknown generator or key (the message names close ones), a bad
/// value, a size that overflows, or a complex matrix in real scalars; MemoryError with the needed
/// megabytes.
template <class T>
CsrRows<T> generate(const Comm& comm, const std::string& spec, int threads,
                    std::span<const double> weights = {});

/// The k smallest or largest eigenvalues, ascending (all, if there are fewer); no value if no
/// formula is known. Throws InputError as generate() does. No communication.
std::optional<std::vector<double>> exact_eigenvalues(const std::string& spec, int k, bool smallest);

/// The mesh of a generated elastic body; no value for other matrices and files. Throws InputError
/// as generate() does. No communication.
std::optional<Mesh> generated_mesh(const std::string& spec);

}  // namespace quiver::apps
