// SPDX-License-Identifier: BSD-3-Clause
#include "apps/interrupt.hpp"

namespace quiver::apps {
namespace {

/// The flag that the signal handler sets. A handler may write only variables of such a type.
volatile std::sig_atomic_t signal_seen = 0;

void remember(int signal) {
    signal_seen = 1;
    std::signal(signal, SIG_DFL);
}

}  // namespace

Interrupt::Interrupt() {
    signal_seen = 0;
    struct sigaction action {};
    action.sa_handler = remember;
    action.sa_flags = SA_RESTART;
    sigaction(SIGINT, &action, &int_before_);
    sigaction(SIGTERM, &action, &term_before_);
}

Interrupt::~Interrupt() {
    sigaction(SIGINT, &int_before_, nullptr);
    sigaction(SIGTERM, &term_before_, nullptr);
}

bool Interrupt::requested() const {
    return signal_seen != 0;
}

}  // namespace quiver::apps
