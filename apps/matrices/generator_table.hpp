// SPDX-License-Identifier: BSD-3-Clause
// The parts of a generator. Each family of matrices has a file that defines its generators, and
// generators.cpp lists them all. Private to apps/matrices/.
#pragma once

#include <complex>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "apps/matrices/generators.hpp"
#include "blockvec/error.hpp"
#include "kernels/sparse/assemble.hpp"

namespace quiver::apps {

/// The choices of a `boundary` key, and the index of `periodic` among them.
inline constexpr const char* boundaries = "open|periodic";
inline constexpr std::int64_t periodic = 1;
inline constexpr GeneratorKey seed_key{"seed", "1", "seed of the random numbers", KeyKind::whole,
                                       0};

/// The values of all keys of one specification. whole() also returns choices, as the index of the
/// word from 0.
class Parameters {
  public:
    explicit Parameters(std::string spec) : spec_(std::move(spec)) {}
    void set(const std::string& key, std::int64_t value) { whole_[key] = value; }
    void set(const std::string& key, double value) { real_[key] = value; }
    std::int64_t whole(const std::string& key) const { return whole_.at(key); }
    double real(const std::string& key) const { return real_.at(key); }
    /// Throws InputError "SPEC: text".
    [[noreturn]] void refuse(const std::string& text) const {
        throw InputError(spec_ + ": " + text);
    }

  private:
    std::string spec_;
    std::map<std::string, std::int64_t> whole_;
    std::map<std::string, double> real_;
};

/// A matrix as a function that makes its rows; exactly one of make_row and make_complex_row is set.
struct GeneratedMatrix {
    std::int64_t rows = 0;
    Symmetry symmetry = Symmetry::symmetric;
    std::function<void(std::int64_t row, RowEntries<double>& entries)> make_row;
    std::function<void(std::int64_t row, RowEntries<std::complex<double>>& entries)>
        make_complex_row;
    /// The k smallest or largest eigenvalues, ascending; null if no formula is known.
    std::function<std::vector<double>(int k, bool smallest)> eigenvalues;
    /// The mesh of an elastic body; null for other matrices.
    std::function<Mesh()> mesh;
};

struct Generator {
    GeneratorInfo info;
    GeneratedMatrix (*make)(const Parameters& parameters);
};

/// The matrix that a specification names. Throws InputError.
GeneratedMatrix make_matrix(const std::string& spec);

std::vector<Generator> laplace_generators();
std::vector<Generator> spin_generators();
std::vector<Generator> lattice_generators();
std::vector<Generator> hubbard_generators();
std::vector<Generator> topi_generators();
std::vector<Generator> matpde_generators();
std::vector<Generator> irregular_generators();
std::vector<Generator> neighbour_generators();
std::vector<Generator> hexahedra_generators();

}  // namespace quiver::apps
