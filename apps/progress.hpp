// SPDX-License-Identifier: BSD-3-Clause
// Shows notices while a solver runs, and one progress line on a terminal.
#pragma once

#include <chrono>

#include "blockvec/comm.hpp"
#include "blockvec/event.hpp"

namespace quiver::apps {

/// A sink for a Context's events that writes to stderr on rank 0: notices always; if `verbose`,
/// also fallbacks, waits for compiled kernels, and faults. If stderr is a terminal, iterations
/// appear as one line that is overwritten.
class Progress {
  public:
    Progress(const Comm& comm, bool verbose);
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;
    ~Progress() { clear(); }

    void show(const Event& event);
    /// Removes the progress line from the terminal.
    void clear();

  private:
    void show_iteration(const IterationEvent& event);
    void say(const char* kind, const std::string& text);

    bool speaks_ = false;
    bool terminal_ = false;
    bool verbose_ = false;
    bool line_shown_ = false;
    std::chrono::steady_clock::time_point next_{};
};

}  // namespace quiver::apps
