// SPDX-License-Identifier: BSD-3-Clause
// The steps of a run that the subcommands with solvers share.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "apps/execution.hpp"
#include "apps/interrupt.hpp"
#include "apps/outputs.hpp"
#include "apps/progress.hpp"
#include "apps/report.hpp"
#include "blockvec/context.hpp"
#include "blockvec/error.hpp"
#include "blockvec/event.hpp"

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

/// The Context of a run with its progress on stderr, its phases, requests to stop, and its results.
class SolverRun {
  public:
    /// Makes the Context. The first phase begins. Collective; throws on all ranks.
    SolverRun(const Comm& comm, const Execution& execution, bool verbose = false);
    SolverRun(const SolverRun&) = delete;
    SolverRun& operator=(const SolverRun&) = delete;

    Context& ctx() { return *context_; }
    /// The keep_going of a solver: false after SIGINT or SIGTERM. From this call until
    /// restore_signals(), the first signal stops only the solver, so that results are still
    /// reported.
    std::function<bool(const IterationEvent&)> keep_going();
    /// From this call on, SIGINT and SIGTERM end the process as usual.
    void restore_signals() { interrupt_.reset(); }
    /// Waits for the device. The next phase begins now; the time since the last one is not
    /// reported.
    void begin_phase();
    /// Waits for the device; appends the seconds since the last phase ended to facts().seconds.
    void end_phase(const char* name);
    /// Ranks, threads and device, and the seconds of the phases that have ended.
    const RunFacts& facts() const { return facts_; }

    /// Runs `step`, which writes an output, if the output is given. A collective error is kept for
    /// finish(), so that the other results are still delivered; other errors are thrown at once.
    template <class Step>
    void write(const Output& output, Step&& step) {
        if (output.given) {
            attempt(step);
        }
    }
    /// Prints the table, on stderr if one of the outputs is standard output, and writes the JSON if
    /// it is given. Errors are kept as in write(). Collective.
    void report(const std::string& table, const Output& json,
                const std::function<std::string()>& make_json, const Output& other = {});
    /// Throws the first error that was kept, on all ranks.
    void finish() const;

  private:
    void attempt(const std::function<void()>& step);

    const Comm& comm_;
    Progress progress_;
    std::optional<Context> context_;
    std::optional<Interrupt> interrupt_;
    RunFacts facts_;
    std::optional<Error> first_error_;
    Stopwatch watch_;
};

}  // namespace quiver::apps
