// SPDX-License-Identifier: BSD-3-Clause
// Parts that the subcommands with solvers share: a stopwatch, steps that may fail independently,
// and the description of ranks and device.
#pragma once

#include <chrono>
#include <optional>

#include "apps/execution.hpp"
#include "apps/report.hpp"
#include "blockvec/context.hpp"
#include "blockvec/error.hpp"

namespace quiver::apps {

class Stopwatch {
  public:
    /// Seconds since the last call; for the first call, since the construction.
    double lap() {
        const auto now = std::chrono::steady_clock::now();
        const std::chrono::duration<double> passed = now - begin_;
        begin_ = now;
        return passed.count();
    }

  private:
    std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

/// Runs steps so that a failed step does not prevent the later ones.
class Attempts {
  public:
    /// Runs a step and stores its error if the error is collective and the first one. Throws an
    /// error of a single rank at once.
    template <class Step>
    void add(Step&& step) {
        try {
            step();
        } catch (const Error& error) {
            if (!error.collective()) {
                throw;
            }
            first_ = first_ ? first_ : error;
        }
    }
    /// Throws the first stored error, on all ranks.
    void finish() const {
        if (first_) {
            throw Error(*first_);
        }
    }

  private:
    std::optional<Error> first_;
};

/// Ranks, threads and device of a run.
EigsReport::Where where_it_ran(const Context& ctx, const Execution& execution);

}  // namespace quiver::apps
