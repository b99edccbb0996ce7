// SPDX-License-Identifier: BSD-3-Clause
// What a generator is made of. Private to apps/matrices/: one file a family of matrices fills in
// Generators, generators.cpp lists them.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "apps/matrices/generators.hpp"
#include "blockvec/error.hpp"
#include "kernels/sparse/assemble.hpp"

namespace quiver::apps {

/// The values of all keys of one specification.
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

/// A matrix as a function of the row.
struct GeneratedMatrix {
    std::int64_t rows = 0;
    Symmetry symmetry = Symmetry::symmetric;
    std::function<void(std::int64_t row, RowEntries<double>& entries)> make_row;
    /// Null where no formula is known; else the k smallest or largest eigenvalues, ascending.
    std::function<std::vector<double>(int k, bool smallest)> eigenvalues;
};

struct Generator {
    GeneratorInfo info;
    GeneratedMatrix (*make)(const Parameters& parameters);
};

std::vector<Generator> laplace_generators();
std::vector<Generator> spin_sz_generators();

}  // namespace quiver::apps
