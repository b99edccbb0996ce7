// SPDX-License-Identifier: BSD-3-Clause
// Reports an eigensolver's progress between iterations, and asks the callback whether to continue.
#pragma once

#include <chrono>
#include <cstdint>

#include "blockvec/context.hpp"
#include "solvers/eigen/eigen_options.hpp"
#include "solvers/eigen/solver_state.hpp"

namespace quiver {

/// Sends IterationEvents to the Context's sink and to EigenOptions::keep_going, polls the
/// checkpoint clock, and measures the elapsed time.
class IterationMonitor {
  public:
    IterationMonitor(Context& ctx, const EigenOptions& options, const char* solver,
                     CheckpointClock* clock = nullptr)
        : ctx_(ctx), options_(options), solver_(solver), clock_(clock) {}

    /// Reports the end of an iteration. Returns false once the callback of any rank has asked to
    /// stop, or EigenOptions::max_seconds have passed on any rank. If a callback throws, all ranks
    /// throw: the rank of the callback throws its exception, the other ranks throw an Error.
    /// Collective; one all-reduce of one number if there is a callback, a clock or max_seconds.
    bool report(std::int64_t iteration, int converged, double residual, const char* stage);
    /// The same inside a long step, but only if report() asks the ranks, and the last report is
    /// more than half a second old: the events of short solves then do not depend on time.
    /// Collective, one all-reduce; all ranks return the same value.
    bool report_within(std::int64_t iteration, int converged, double residual, const char* stage);
    bool interrupted() const { return interrupted_; }
    /// True if max_seconds have interrupted the solve.
    bool late() const { return late_; }
    /// True if the solver must save its state now: the clock of some rank has asked for it since
    /// the last call, or the solver ends early (true only once). The same on all ranks.
    bool take_save_request(bool ends_early);
    /// Seconds since construction.
    double seconds() const;

  private:
    /// True if report() asks the ranks.
    bool asks() const {
        return options_.keep_going || clock_ != nullptr || options_.max_seconds > 0;
    }

    Context& ctx_;
    const EigenOptions& options_;
    const char* solver_;
    CheckpointClock* clock_;
    bool interrupted_ = false;
    bool late_ = false;
    bool save_wanted_ = false;
    bool end_saved_ = false;
    double reported_ = 0;
    std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace quiver
