// SPDX-License-Identifier: BSD-3-Clause
// Measures cases one after the other until the budget is spent.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "apps/bench/case.hpp"
#include "apps/bench/ceilings.hpp"
#include "apps/bench/energy.hpp"
#include "apps/bench/kernel.hpp"
#include "kernels/tuning.hpp"

namespace quiver::apps::bench {

/// A limit on the seconds since the construction.
class Budget {
  public:
    explicit Budget(double seconds) : seconds_(seconds) {}
    double spent() const {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
    }
    bool exhausted() const { return spent() >= seconds_; }

  private:
    std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
    double seconds_;
};

/// The same kernels with other choices of plans.
struct Variant {
    /// The name of its results, which begins with that of this library.
    std::string library;
    PlanChoice choice;
    /// False if the kernels do not compute the result.
    bool checked = true;
};

struct MeasureOptions {
    /// Samples of a case; fewer, but at least 3, once the budget is spent.
    int repeat = 20;
    /// All operand sets together have at least this many bytes if the memory allows it. Operands of
    /// less than half as many bytes count as in a cache.
    double least_bytes = 0;
    /// The least number of calls timed together; fewer if they would take longer than
    /// most_sample_seconds.
    int least_calls = 1;
    double most_sample_seconds = 0.1;
    /// A rival whose first call takes longer is timed once.
    double slow_seconds = 1;
    /// Once a contender has taken longer, it gets no further samples beyond its third.
    double most_seconds = 2;
    /// Also measure variants of this library, if the kernel has them: plans of the model alone, and
    /// a reduction by atomics.
    bool model = false;
    bool atomics = false;
    /// Further variants to time.
    std::vector<Variant> variants = {};
    /// Measures the joules of a call if not null.
    const EnergyMeter* energy = nullptr;
};

/// A library, or a variant of ours, that runs the operation of a case.
struct Contender {
    std::string library;
    std::function<void(std::int64_t set)> run;
    /// False if the results are not to be checked, because the contender does not compute them.
    bool checked = true;
};

/// Warms up, takes interleaved samples of all contenders, and checks the results of the last timed
/// calls of each contender. Returns one result for each contender; the first is ours. Never throws:
/// an exception of a contender becomes the message of its result. There is no result of a variant
/// of a figure that throws UnsupportedError.
std::vector<Result> measure(Context& ctx, const Case& c, Workload& workload,
                            const std::vector<Contender>& contenders, const MeasureOptions& options,
                            const Budget& budget);

/// Prepares the operands of a case and measures this library, the requested variants and all rivals
/// that have the operation. If the operands cannot be prepared, returns one failed result.
std::vector<Result> run_case(Context& ctx, const Case& c, Rivals& rivals,
                             const MeasureOptions& options, const Budget& budget);

/// One run of the command; a resumed session has several.
struct Run {
    std::string date;
    Ceilings ceilings;
    /// The names of the rivals and of the variants of this library that were measured.
    std::vector<std::string> rivals;
    double seconds = 0;
    /// The command line without file names.
    std::string command = {};
};

struct Session {
    /// At least one; the last is the current run.
    std::vector<Run> runs;
    std::vector<Result> results;
    /// Cases that were not run because the budget was spent.
    std::vector<Case> not_run;

    bool any(Outcome outcome) const;
    /// Whether a case has been measured in a run with all of these rivals.
    bool has(const Case& c, const std::vector<std::string>& rivals) const;
    /// Adds the results of one case in the current run, and removes all older results of that case.
    void add(std::vector<Result> fresh);
};

/// Runs the first case always, and the others until the budget is spent, and adds their results to
/// the session. Calls show() with the results of each case as soon as they are known.
void run_all(const std::vector<Case>& cases, const Budget& budget,
             const std::function<std::vector<Result>(const Case&)>& run,
             const std::function<void(const std::vector<Result>&)>& show, Session& session);

}  // namespace quiver::apps::bench
