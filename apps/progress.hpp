// SPDX-License-Identifier: BSD-3-Clause
// What a user sees while a solver works: notices, and one progress line on a terminal.
#pragma once

#include <chrono>

#include "blockvec/comm.hpp"
#include "blockvec/event.hpp"

namespace quiver::apps {

/// A sink for a Context's events that writes to stderr on rank 0: notices always, fallbacks when
/// verbose, iterations as one line that overwrites itself where stderr is a terminal.
class Progress {
  public:
    Progress(const Comm& comm, bool verbose);
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;
    ~Progress() { clear(); }

    void show(const Event& event);
    /// Takes the progress line off the terminal.
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
