// SPDX-License-Identifier: BSD-3-Clause
// A request to end in order: SIGINT (Ctrl-C), or the SIGTERM that mpirun makes of it.
#pragma once

#include <csignal>

namespace quiver::apps {

/// While one lives, the first such signal is remembered; a second one ends the process as ever.
class Interrupt {
  public:
    Interrupt();
    Interrupt(const Interrupt&) = delete;
    Interrupt& operator=(const Interrupt&) = delete;
    ~Interrupt();

    /// This process has got one.
    bool requested() const;

  private:
    struct sigaction int_before_ {};
    struct sigaction term_before_ {};
};

}  // namespace quiver::apps
