// SPDX-License-Identifier: BSD-3-Clause
// Requests to stop: SIGINT (Ctrl-C), or the SIGTERM that mpirun sends to its processes on Ctrl-C.
#pragma once

#include <csignal>

namespace quiver::apps {

/// While an object of this class exists, the first SIGINT and the first SIGTERM only set a flag; a
/// second signal of the same kind ends the process as usual.
class Interrupt {
  public:
    Interrupt();
    Interrupt(const Interrupt&) = delete;
    Interrupt& operator=(const Interrupt&) = delete;
    ~Interrupt();

    /// Whether this process has received a signal.
    bool requested() const;

  private:
    struct sigaction int_before_ {};
    struct sigaction term_before_ {};
};

}  // namespace quiver::apps
