// SPDX-License-Identifier: BSD-3-Clause
#include "apps/progress.hpp"

#include <cstdio>
#include <variant>

#include <fmt/format.h>
#include <unistd.h>

namespace quiver::apps {

Progress::Progress(const Comm& comm, bool verbose)
    : speaks_(comm.rank() == 0), terminal_(isatty(STDERR_FILENO) != 0), verbose_(verbose) {}

void Progress::show(const Event& event) {
    if (!speaks_) {
        return;
    }
    if (const auto* notice = std::get_if<NoticeEvent>(&event)) {
        say("note", notice->text);
    } else if (const auto* fallback = std::get_if<FallbackEvent>(&event)) {
        if (verbose_) {
            say("fallback", fallback->what);
        }
    } else if (const auto* wait = std::get_if<KernelWaitEvent>(&event)) {
        if (verbose_) {
            say("compiled", fmt::format("{} ({:.2f} s)", wait->kernel, wait->seconds));
        }
    } else if (const auto* fault = std::get_if<FaultEvent>(&event)) {
        if (verbose_) {
            say("fault", fmt::format("in {} at product {} on rank {}: {}", fault->where,
                                     fault->product, fault->rank, fault->what));
        }
    } else if (const auto* iteration = std::get_if<IterationEvent>(&event)) {
        if (terminal_) {
            show_iteration(*iteration);
        }
    }
}

void Progress::show_iteration(const IterationEvent& event) {
    const auto now = std::chrono::steady_clock::now();
    if (now < next_) {
        return;
    }
    // The line appears after one second and then changes at most five times per second.
    const bool first = next_ == std::chrono::steady_clock::time_point{};
    next_ = now + std::chrono::milliseconds(first ? 1000 : 200);
    if (first) {
        return;
    }
    const std::string all = event.wanted > 0 ? fmt::format(" of {}", event.wanted) : "";
    const std::string state =
        event.converged < 0
            ? fmt::format("shift {:.1e}", event.residual)
            : fmt::format("{}{} converged, residual {:.1e}", event.converged, all, event.residual);
    fmt::print(stderr, "\r\033[K{} {}: iteration {}, {}, {:.1f} s", event.solver, event.stage,
               event.iteration, state, event.seconds);
    std::fflush(stderr);
    line_shown_ = true;
}

void Progress::say(const char* kind, const std::string& text) {
    clear();
    fmt::print(stderr, "quiver: {}: {}\n", kind, text);
}

void Progress::clear() {
    if (line_shown_) {
        fmt::print(stderr, "\r\033[K");
        std::fflush(stderr);
        line_shown_ = false;
    }
}

}  // namespace quiver::apps
