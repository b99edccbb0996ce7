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

/// What values a key takes: a whole number, any finite number, or one of some words.
enum class KeyKind : std::uint8_t { whole, real, choice };

/// One key of a generator.
struct GeneratorKey {
    const char* name;
    /// The value as text, or the name of an earlier key whose value is taken.
    const char* default_value;
    const char* meaning;
    KeyKind kind = KeyKind::whole;
    /// The least value of a whole number.
    std::int64_t least = 1;
    /// The words of a choice, "a|b".
    const char* choices = nullptr;
};

/// What a generator is, for lists and messages.
struct GeneratorInfo {
    const char* name;
    const char* description;
    std::vector<GeneratorKey> keys;
    /// The matrix is complex, else real.
    bool complex = false;
};

/// All generators, by name.
std::vector<GeneratorInfo> generators();

/// Whether the text starts with "gen:".
bool is_generator(const std::string& spec);

/// Whether the matrix that `spec` names is complex. Throws InputError for an unknown generator. No
/// communication.
bool is_complex_generator(const std::string& spec);

/// For a name that is no file: "; for a generated matrix write gen:NAME,..." where the text before
/// its first comma is close to the name of a generator, else empty. No communication.
std::string generator_hint(const std::string& spec);

/// This rank's rows of the matrix that `spec` names, dealt by rows, in proportion to the weights if
/// there are any; each rank makes only its own,
/// with this number of threads; the same matrix for any number of either. Collective. Throws
/// InputError on all ranks: unknown generator or key (the close ones are named), a bad value, a
/// size that overflows, a complex matrix in real scalars; MemoryError, with the bytes it takes.
template <class T>
CsrRows<T> generate(const Comm& comm, const std::string& spec, int threads,
                    std::span<const double> weights = {});

/// The k smallest or largest eigenvalues, ascending (all, when there are fewer), where a formula
/// for them is known. Throws InputError as generate() does. No communication.
std::optional<std::vector<double>> exact_eigenvalues(const std::string& spec, int k, bool smallest);

}  // namespace quiver::apps
