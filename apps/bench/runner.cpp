// SPDX-License-Identifier: BSD-3-Clause
#include "apps/bench/runner.hpp"

#include <algorithm>
#include <cmath>
#include <exception>
#include <new>

#include "apps/bench/timer.hpp"

namespace quiver::apps::bench {
namespace {

constexpr int fewest_samples = 3;
/// Calls that take less are timed together, so that no clock's steps are seen.
constexpr double least_sample_seconds = 2e-4;
constexpr int most_calls_per_sample = 1000;

Result failure(const Case& c, const char* provider, const char* what) {
    Result result;
    result.which = c;
    result.provider = provider;
    result.outcome = Outcome::failed;
    result.message = what;
    return result;
}

}  // namespace

template <class T>
Result measure(Context& ctx, const Case& c, Workload<T>& workload, Provider<T>& provider,
               const MeasureOptions& options, const Budget& budget) {
    Result result;
    result.which = c;
    result.provider = provider.name();
    result.sets = workload.sets();
    std::int64_t calls = 0;
    const auto call = [&] {
        provider.run(ctx, c.kernel, workload.operands(calls % workload.sets()));
        ++calls;
    };
    try {
        workload.reset();
        Timer timer(ctx);
        timer.time(1, call);  // compiles kernels, fills pools
        const double once = timer.time(1, call);
        result.calls_per_sample = static_cast<int>(
            std::clamp(std::ceil(least_sample_seconds / once), 1.0, double{most_calls_per_sample}));
        timer.time(result.calls_per_sample, call);
        std::vector<double> samples;
        for (int i = 0; i < options.repeat; ++i) {
            if (i >= fewest_samples && budget.exhausted()) {
                break;
            }
            samples.push_back(timer.time(result.calls_per_sample, call) / result.calls_per_sample);
        }
        result.samples = static_cast<int>(samples.size());
        result.seconds = summarise(std::move(samples));
        const std::int64_t last = calls - 1;
        result.error = workload.error(last % workload.sets(), last / workload.sets() + 1);
        result.outcome = result.error <= 1 ? Outcome::passed : Outcome::incorrect;
    } catch (const std::bad_alloc&) {
        return failure(c, provider.name(), "out of host memory");
    } catch (const std::exception& error) {
        return failure(c, provider.name(), error.what());
    }
    return result;
}

template <class T>
std::vector<Result> run_case(Context& ctx, const Case& c, Providers<T>& providers,
                             const MeasureOptions& options, const Budget& budget) {
    std::vector<Result> results;
    const char* at_work = "operands";
    try {
        Workload<T> workload(ctx, c, options.least_bytes);
        for (const auto& provider : providers) {
            at_work = provider->name();
            if (provider->can_run(ctx, c)) {
                results.push_back(measure(ctx, c, workload, *provider, options, budget));
            }
        }
    } catch (const std::bad_alloc&) {
        results.push_back(failure(c, at_work, "out of host memory"));
    } catch (const std::exception& error) {
        results.push_back(failure(c, at_work, error.what()));
    }
    return results;
}

bool Session::any(Outcome outcome) const {
    return std::any_of(results.begin(), results.end(),
                       [&](const Result& result) { return result.outcome == outcome; });
}

Session run_all(const std::vector<Case>& cases, const Budget& budget,
                const std::function<std::vector<Result>(const Case&)>& run,
                const std::function<void(const Result&)>& show) {
    Session session;
    for (const Case& c : cases) {
        if (&c != &cases.front() && budget.exhausted()) {
            session.not_run.push_back(c);
            continue;
        }
        for (Result& result : run(c)) {
            show(result);
            session.results.push_back(std::move(result));
        }
    }
    return session;
}

template Result measure(Context&, const Case&, Workload<float>&, Provider<float>&,
                        const MeasureOptions&, const Budget&);
template Result measure(Context&, const Case&, Workload<double>&, Provider<double>&,
                        const MeasureOptions&, const Budget&);
template Result measure(Context&, const Case&, Workload<std::complex<float>>&,
                        Provider<std::complex<float>>&, const MeasureOptions&, const Budget&);
template Result measure(Context&, const Case&, Workload<std::complex<double>>&,
                        Provider<std::complex<double>>&, const MeasureOptions&, const Budget&);
template std::vector<Result> run_case(Context&, const Case&, Providers<float>&,
                                      const MeasureOptions&, const Budget&);
template std::vector<Result> run_case(Context&, const Case&, Providers<double>&,
                                      const MeasureOptions&, const Budget&);
template std::vector<Result> run_case(Context&, const Case&, Providers<std::complex<float>>&,
                                      const MeasureOptions&, const Budget&);
template std::vector<Result> run_case(Context&, const Case&, Providers<std::complex<double>>&,
                                      const MeasureOptions&, const Budget&);

}  // namespace quiver::apps::bench
