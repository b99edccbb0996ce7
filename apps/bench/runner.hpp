// SPDX-License-Identifier: BSD-3-Clause
// Runs cases one after the other until the budget is spent.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "apps/bench/case.hpp"
#include "apps/bench/ceilings.hpp"
#include "apps/bench/energy.hpp"
#include "apps/bench/kernel.hpp"

namespace quiver::apps::bench {

/// Seconds that may be spent, from birth on.
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

struct MeasureOptions {
    /// Samples of a case; fewer, but at least 3, once the budget is spent.
    int repeat = 20;
    /// Operand sets together are at least this large where that is affordable; less than half of it
    /// counts as in a cache.
    double least_bytes = 0;
    /// Calls timed together, back to back, at least; fewer where they would take over
    /// most_sample_seconds.
    int least_calls = 1;
    double most_sample_seconds = 0.1;
    /// A rival whose first call takes longer is timed once.
    double slow_seconds = 1;
    /// No more samples, beyond 3, of one who has taken longer.
    double most_seconds = 2;
    /// Also this library by the plans of its model alone, and with sums by atomics, where a kernel
    /// has them.
    bool model = false;
    bool atomics = false;
    /// Settings of sparse products to time as well, see PlanChoice::sparse.
    std::vector<std::string> tilings = {};
    /// Measures the joules of a call where it is not null.
    const EnergyMeter* energy = nullptr;
};

/// One who does the work of a case.
struct Contender {
    std::string library;
    std::function<void(std::int64_t set)> run;
};

/// Warm-up, samples of all contenders in turn, check of what the last timed calls of each wrote.
/// One result a contender; the first is ours. Never throws: what a contender throws is told in its
/// result.
std::vector<Result> measure(Context& ctx, const Case& c, Workload& workload,
                            const std::vector<Contender>& contenders, const MeasureOptions& options,
                            const Budget& budget);

/// Makes the operands of a case and measures this library, its variants that are asked for and all
/// rivals that have it.
std::vector<Result> run_case(Context& ctx, const Case& c, Rivals& rivals,
                             const MeasureOptions& options, const Budget& budget);

/// One start of the command: a session that is resumed has several.
struct Run {
    std::string date;
    Ceilings ceilings;
    /// And variants of this library.
    std::vector<std::string> rivals;
    double seconds = 0;
    /// As it was asked for, without the names of files.
    std::string command = {};
};

struct Session {
    /// The last one is the present one; at least one.
    std::vector<Run> runs;
    std::vector<Result> results;
    /// Cases that the budget left no time for.
    std::vector<Case> not_run;

    bool any(Outcome outcome) const;
    /// Whether a case has been measured in a run that met all of these rivals.
    bool has(const Case& c, const std::vector<std::string>& rivals) const;
    /// Results of one case in the present run, in the place of older ones.
    void add(std::vector<Result> fresh);
};

/// Adds to the session: the first case in any case, then each while the budget lasts; `show` gets
/// the rows of every case at once.
void run_all(const std::vector<Case>& cases, const Budget& budget,
             const std::function<std::vector<Result>(const Case&)>& run,
             const std::function<void(const std::vector<Result>&)>& show, Session& session);

}  // namespace quiver::apps::bench
