// SPDX-License-Identifier: BSD-3-Clause
// Matrices by name: gen:NAME,key=value,...
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "blockvec/comm.hpp"
#include "kernels/sparse/sparse_matrix.hpp"

namespace quiver::apps {

/// One key of a generator.
struct GeneratorKey {
    const char* name;
    /// A number as text, or the name of an earlier key whose value is taken.
    const char* default_value;
    const char* meaning;
    /// A whole number, else any finite one.
    bool whole = true;
    /// The least value of a whole number.
    std::int64_t least = 1;
};

/// What a generator is, for lists and messages.
struct GeneratorInfo {
    const char* name;
    const char* description;
    std::vector<GeneratorKey> keys;
};

/// All generators, by name.
std::vector<GeneratorInfo> generators();

/// Whether the text starts with "gen:".
bool is_generator(const std::string& spec);

/// This rank's rows of the matrix that `spec` names, dealt by rows; each rank makes only its own,
/// with this number of threads; the same matrix for any number of either. Collective. Throws
/// InputError on all ranks: unknown generator or key (the close ones are named), a bad value, a
/// size that overflows.
template <class T>
CsrRows<T> generate(const Comm& comm, const std::string& spec, int threads);

/// The k smallest or largest eigenvalues, ascending (all, when there are fewer), where a formula
/// for them is known. Throws InputError as generate() does. No communication.
std::optional<std::vector<double>> exact_eigenvalues(const std::string& spec, int k, bool smallest);

}  // namespace quiver::apps
