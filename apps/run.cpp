// SPDX-License-Identifier: BSD-3-Clause
#include "apps/run.hpp"

namespace quiver::apps {

SolverRun::SolverRun(const Comm& comm, const Execution& execution, bool verbose)
    : comm_(comm), progress_(comm, verbose) {
    comm.agree([&] { context_.emplace(comm, execution.device); });
    ctx().set_event_sink([this](const Event& event) { progress_.show(event); });
    RunFacts::Where& where = facts_.where;
    where.ranks = comm.size();
    where.threads = ctx().threads();
    where.note = execution.note;
    where.mixed = execution.mixed;
    if (ctx().place() == Place::device) {
        where.device = "cuda";
        where.device_name = device::properties(ctx().device().id).name;
    }
}

std::function<bool(const IterationEvent&)> SolverRun::keep_going() {
    interrupt_.emplace();
    return [this](const IterationEvent&) { return !interrupt_->requested(); };
}

void SolverRun::begin_phase() {
    ctx().synchronize();
    watch_.lap();
}

void SolverRun::end_phase(const char* name) {
    ctx().synchronize();
    facts_.seconds.emplace_back(name, watch_.lap());
}

void SolverRun::report(const std::string& table, const Output& json,
                       const std::function<std::string()>& make_json, const Output& other) {
    progress_.clear();
    attempt([&] { print(comm_, table, table_stream({json.path, other.path})); });
    write(json, [&] { write_on_rank_0(comm_, json.path, make_json); });
}

void SolverRun::finish() const {
    if (first_error_) {
        throw Error(*first_error_);
    }
}

void SolverRun::attempt(const std::function<void()>& step) {
    try {
        step();
    } catch (const Error& error) {
        if (!error.collective()) {
            throw;
        }
        first_error_ = first_error_ ? first_error_ : error;
    }
}

}  // namespace quiver::apps
