// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/iteration_monitor.hpp"

#include <exception>
#include <string>

#include "blockvec/error.hpp"

namespace quiver {

bool IterationMonitor::report(std::int64_t iteration, int converged, double residual,
                              const char* stage) {
    const IterationEvent event{solver_,  iteration, converged, options_.k,
                               residual, seconds(), stage};
    ctx_.emit(event);
    if (!options_.keep_going) {
        return true;
    }
    constexpr std::int64_t go_on = 0;
    constexpr std::int64_t stop = 1;
    constexpr std::int64_t threw = 2;
    std::int64_t answer = go_on;
    std::exception_ptr thrown;
    try {
        answer = options_.keep_going(event) ? go_on : stop;
    } catch (...) {
        thrown = std::current_exception();
        answer = threw;
    }
    answer = ctx_.comm().max(answer);
    if (thrown) {
        std::rethrow_exception(thrown);
    }
    if (answer == threw) {
        Error error(ErrorKind::other,
                    std::string(solver_) + ": the callback of an iteration failed on another rank");
        error.set_collective();
        throw error;
    }
    interrupted_ = interrupted_ || answer == stop;
    return !interrupted_;
}

double IterationMonitor::seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
}

}  // namespace quiver
