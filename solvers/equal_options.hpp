// SPDX-License-Identifier: BSD-3-Clause
// Options on which all ranks must agree. Private to solvers/.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "blockvec/comm.hpp"

namespace quiver {

/// Collects the options of this rank by name and compares them over the ranks with one all-reduce.
/// Every rank adds the same options in the same order.
///
/// If options differed, the ranks would call reductions of different lengths, which MPI reports as
/// truncated messages or not at all.
class EqualOptions {
  public:
    /// The message of an error begins with `solver`.
    explicit EqualOptions(std::string solver) : solver_(std::move(solver)) {}

    void add(const char* name, std::int64_t value);
    void add(const char* name, int value) { add(name, std::int64_t{value}); }
    void add(const char* name, std::uint64_t value);
    void add(const char* name, double value);
    void add(const char* name, bool value);
    /// A value of an enumeration; the message shows text(value).
    void add_choice(const char* name, int value, std::function<std::string(int)> text);
    /// A list of numbers, compared by its length and a hash of its bits.
    void add_list(const char* name, const void* data, std::size_t count, std::size_t bytes_each);

    /// Throws InputError on all ranks if an option differs; the message has its name and its
    /// smallest and largest value. Collective, one all-reduce; a no-op on one rank.
    void require(const Comm& comm) const;

  private:
    /// `key`: an integer that grows with the value.
    struct Option {
        const char* name;
        std::int64_t key;
        std::function<std::string(std::int64_t)> text;
    };
    std::string solver_;
    std::vector<Option> options_;
};

}  // namespace quiver
