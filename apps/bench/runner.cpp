// SPDX-License-Identifier: BSD-3-Clause
#include "apps/bench/runner.hpp"

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <new>
#include <optional>

#include "apps/bench/timer.hpp"
#include "blockvec/error.hpp"
#include "kernels/prepare.hpp"
#include "kernels/tuning.hpp"

namespace quiver::apps::bench {
namespace {

constexpr int fewest_samples = 3;
/// A sample has several calls if one takes less than this, because of the clock's resolution.
constexpr double least_sample_seconds = 2e-4;
constexpr double most_calls_per_sample = 1000;

/// Measures one contender on one case.
class Attempt {
  public:
    Attempt(Context& ctx, const Case& c, Workload& workload, const Contender& contender)
        : ctx_(ctx), workload_(workload), contender_(contender), timer_(ctx) {
        result_.which = c;
        result_.library = contender.library;
        result_.sets = workload.sets();
    }

    int samples() const { return static_cast<int>(seconds_.size()); }
    /// True for a setting of a figure that does not exist for this case.
    bool is_left_out() const { return unsupported_ && is_figure_variant(contender_.library); }

    /// The first call compiles kernels and fills pools. For a slow contender it is the only call.
    void warm_up(const MeasureOptions& options, double most_seconds) {
        guarded([&] {
            workload_.reset();
            calls_ = 0;
            const double first = time(1);
            if (first > most_seconds) {
                result_.timed_once = true;
                seconds_.push_back(first);
                check();
                done_ = true;
                return;
            }
            wait_for_kernels(ctx_);
            const double once = time(1);
            const auto calls_in = [&](double seconds) {
                return std::clamp(std::ceil(seconds / once), 1.0, most_calls_per_sample);
            };
            const double wanted = std::max(
                calls_in(least_sample_seconds),
                std::min<double>(options.least_calls, calls_in(options.most_sample_seconds)));
            result_.calls_per_sample =
                static_cast<int>(std::min(wanted, static_cast<double>(workload_.most_calls())));
            time(result_.calls_per_sample);
        });
    }

    void sample(const MeasureOptions& options) {
        guarded([&] {
            if (samples() + 1 >= fewest_samples && spent_ > options.most_seconds) {
                return;
            }
            const int calls = result_.calls_per_sample;
            seconds_.push_back(time(calls) / calls);
        });
    }

    void measure_energy(const EnergyMeter& meter) {
        guarded([&] {
            std::int64_t call = 0;
            result_.joules = meter.joules_a_call([&] {
                contender_.run(call % workload_.sets());
                ++call;
            });
        });
    }

    /// Resets the outputs to NaN, takes the last sample, and checks its results.
    void finish() {
        guarded([&] {
            workload_.reset();
            ctx_.synchronize();
            calls_ = 0;
            seconds_.push_back(time(result_.calls_per_sample) / result_.calls_per_sample);
            check();
        });
    }

    Result result() {
        if (result_.message.empty()) {
            result_.samples = samples();
            result_.seconds = summarise(seconds_);
        }
        return result_;
    }

  private:
    double time(int calls) {
        workload_.restore();
        const double seconds = timer_.time(calls, [&] {
            contender_.run(calls_ % workload_.sets());
            ++calls_;
        });
        spent_ += seconds;
        return seconds;
    }

    void check() {
        ctx_.synchronize();
        if (!contender_.checked) {
            result_.outcome = Outcome::passed;
            return;
        }
        const std::int64_t last = calls_ - 1;
        result_.error = workload_.error(last % workload_.sets(), last / workload_.sets() + 1);
        result_.outcome = result_.error <= 1 ? Outcome::passed : Outcome::incorrect;
    }

    template <class F>
    void guarded(F&& f) {
        if (done_) {
            return;
        }
        try {
            f();
        } catch (const std::bad_alloc&) {
            fail("out of host memory");
        } catch (const UnsupportedError& error) {
            unsupported_ = true;
            fail(error.what());
        } catch (const std::exception& error) {
            fail(error.what());
        }
    }

    void fail(const char* what) {
        result_.outcome = Outcome::failed;
        result_.message = what;
        done_ = true;
    }

    Context& ctx_;
    Workload& workload_;
    const Contender& contender_;
    Timer timer_;
    Result result_;
    std::vector<double> seconds_;
    double spent_ = 0;
    std::int64_t calls_ = 0;
    bool done_ = false;
    bool unsupported_ = false;
};

/// Installs the plans of a variant for the lifetime of this object.
class OtherPlans {
  public:
    OtherPlans(Context& ctx, const PlanChoice& choice) : ctx_(ctx) { choose_plans(ctx, choice); }
    OtherPlans(const OtherPlans&) = delete;
    OtherPlans& operator=(const OtherPlans&) = delete;
    ~OtherPlans() { choose_plans(ctx_, {}); }

  private:
    Context& ctx_;
};

Result failure(const Case& c, const char* what) {
    Result result;
    result.which = c;
    result.library = quiver_name;
    result.message = what;
    return result;
}

}  // namespace

std::vector<Result> measure(Context& ctx, const Case& c, Workload& workload,
                            const std::vector<Contender>& contenders, const MeasureOptions& options,
                            const Budget& budget) {
    // Constructed in place, because a timer holds events and cannot be moved.
    std::vector<std::optional<Attempt>> attempts(contenders.size());
    for (std::size_t i = 0; i < contenders.size(); ++i) {
        attempts[i].emplace(ctx, c, workload, contenders[i]);
        attempts[i]->warm_up(options, is_this_library(contenders[i].library)
                                          ? std::numeric_limits<double>::infinity()
                                          : options.slow_seconds);
    }
    for (int round = 0; round + 1 < options.repeat; ++round) {
        if (round + 1 >= fewest_samples && budget.exhausted()) {
            break;
        }
        for (auto& attempt : attempts) {
            attempt->sample(options);
        }
    }
    std::vector<Result> results;
    for (auto& attempt : attempts) {
        if (options.energy != nullptr) {
            attempt->measure_energy(*options.energy);
        }
        attempt->finish();
        if (!attempt->is_left_out()) {
            results.push_back(attempt->result());
        }
    }
    const Result& ours = results.front();
    for (Result& result : results) {
        if (&result != &ours && ours.measured() && result.measured()) {
            result.ratio = result.seconds.median / ours.seconds.median;
        }
    }
    return results;
}

std::vector<Result> run_case(Context& ctx, const Case& c, Rivals& rivals,
                             const MeasureOptions& options, const Budget& budget) {
    try {
        const double least_bytes = std::min(options.least_bytes, affordable_bytes(ctx));
        const auto workload = c.kernel->prepare(ctx, c, least_bytes);
        const double bytes =
            c.kernel->row_bytes(c) * static_cast<double>(c.rows * workload->sets());
        std::vector<Contender> contenders{
            {quiver_name, [&](std::int64_t set) { workload->run(set); }}};
        const auto add_variant = [&](const std::string& name, const PlanChoice& choice,
                                     bool checked = true) {
            contenders.push_back({name,
                                  [&ctx, &workload, choice](std::int64_t set) {
                                      const OtherPlans plans(ctx, choice);
                                      workload->run(set);
                                  },
                                  checked});
        };
        if (options.model && c.kernel->has_plans()) {
            add_variant(model_name, {.tuned = false});
        }
        if (options.atomics && c.kernel->has_atomics()) {
            add_variant(atomics_name, {.reduction = Reduction::atomics});
        }
        for (const Variant& variant : options.variants) {
            add_variant(variant.library, variant.choice, variant.checked);
        }
        for (const auto& rival : rivals) {
            if (workload->has(*rival)) {
                contenders.push_back(
                    {rival->name(), [&](std::int64_t set) { workload->run(*rival, set); }});
            }
        }
        std::vector<Result> results = measure(ctx, c, *workload, contenders, options, budget);
        for (Result& result : results) {
            result.in_cache = least_bytes < options.least_bytes &&
                              bytes * cold_caches < least_cold_caches * options.least_bytes;
        }
        return results;
    } catch (const std::bad_alloc&) {
        return {failure(c, "operands: out of host memory")};
    } catch (const std::exception& error) {
        return {failure(c, error.what())};
    }
}

bool Session::any(Outcome outcome) const {
    return std::any_of(results.begin(), results.end(),
                       [&](const Result& result) { return result.outcome == outcome; });
}

bool Session::has(const Case& c, const std::vector<std::string>& rivals) const {
    return std::any_of(results.begin(), results.end(), [&](const Result& result) {
        if (!(result.which == c) || !result.ours() || !result.measured()) {
            return false;
        }
        const auto& met = runs.at(static_cast<std::size_t>(result.run)).rivals;
        return std::all_of(rivals.begin(), rivals.end(), [&](const std::string& rival) {
            return std::find(met.begin(), met.end(), rival) != met.end();
        });
    });
}

void Session::add(std::vector<Result> fresh) {
    std::erase_if(results, [&](const Result& old) {
        return std::any_of(fresh.begin(), fresh.end(),
                           [&](const Result& result) { return result.which == old.which; });
    });
    for (Result& result : fresh) {
        result.run = static_cast<int>(runs.size()) - 1;
        results.push_back(std::move(result));
    }
}

void run_all(const std::vector<Case>& cases, const Budget& budget,
             const std::function<std::vector<Result>(const Case&)>& run,
             const std::function<void(const std::vector<Result>&)>& show, Session& session) {
    for (const Case& c : cases) {
        if (&c != &cases.front() && budget.exhausted()) {
            session.not_run.push_back(c);
            continue;
        }
        const std::vector<Result> results = run(c);
        session.add(results);
        show(results);
    }
}

}  // namespace quiver::apps::bench
