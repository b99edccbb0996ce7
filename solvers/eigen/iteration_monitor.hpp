// SPDX-License-Identifier: BSD-3-Clause
// What all eigensolvers do between iterations: tell, and ask whether to go on.
#pragma once

#include <chrono>
#include <cstdint>

#include "blockvec/context.hpp"
#include "solvers/eigen/eigen_options.hpp"
#include "solvers/eigen/solver_state.hpp"

namespace quiver {

/// Sends IterationEvents to the Context's sink and to EigenOptions::keep_going, asks the clock of
/// checkpoints, and keeps the time.
class IterationMonitor {
  public:
    IterationMonitor(Context& ctx, const EigenOptions& options, const char* solver,
                     CheckpointClock* clock = nullptr)
        : ctx_(ctx), options_(options), solver_(solver), clock_(clock) {}

    /// The end of an iteration; false once some rank's callback has asked for the end. A callback
    /// that throws ends all ranks: this one with what it threw, the others with an Error.
    /// Collective; one all-reduce of a word where there is a callback or a clock.
    bool report(std::int64_t iteration, int converged, double residual, const char* stage);
    /// The same within a step that takes long: only where the last report is seconds old, so that
    /// short solves do not depend on time. Collective, the same on all ranks.
    bool report_within(std::int64_t iteration, int converged, double residual, const char* stage);
    bool interrupted() const { return interrupted_; }
    /// Whether the solver is to save its state now: the clock of some rank has asked for it since
    /// the last time or, once, the solver ends early. The same on all ranks.
    bool take_save_request(bool ends_early);
    /// Since birth.
    double seconds() const;

  private:
    Context& ctx_;
    const EigenOptions& options_;
    const char* solver_;
    CheckpointClock* clock_;
    bool interrupted_ = false;
    bool save_wanted_ = false;
    bool end_saved_ = false;
    double reported_ = 0;
    std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace quiver
