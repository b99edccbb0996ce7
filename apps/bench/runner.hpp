// SPDX-License-Identifier: BSD-3-Clause
// Runs cases one after the other until the budget is spent.
#pragma once

#include <chrono>
#include <functional>
#include <vector>

#include "apps/bench/case.hpp"
#include "apps/bench/ceilings.hpp"
#include "apps/bench/provider.hpp"
#include "apps/bench/workload.hpp"

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
    /// Operand sets together are at least this large.
    double least_bytes = 0;
};

/// Warm-up, samples, check of what the timed calls wrote. Never throws: what a provider throws is
/// told in the result.
template <class T>
Result measure(Context& ctx, const Case& c, Workload<T>& workload, Provider<T>& provider,
               const MeasureOptions& options, const Budget& budget);

/// Makes the operands of a case and measures all providers that have it, one row each.
template <class T>
std::vector<Result> run_case(Context& ctx, const Case& c, Providers<T>& providers,
                             const MeasureOptions& options, const Budget& budget);

struct Session {
    std::vector<Result> results;
    /// Cases that the budget left no time for.
    std::vector<Case> not_run;

    bool any(Outcome outcome) const;
};

/// The first case in any case, then each while the budget lasts; `show` gets every row at once.
Session run_all(const std::vector<Case>& cases, const Budget& budget,
                const std::function<std::vector<Result>(const Case&)>& run,
                const std::function<void(const Result&)>& show);

}  // namespace quiver::apps::bench
