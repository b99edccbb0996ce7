// SPDX-License-Identifier: BSD-3-Clause
// What the library tells its caller while it works: typed events to a sink. The library prints
// nothing itself.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <variant>

namespace quiver {

/// A solver finished an iteration.
struct IterationEvent {
    const char* solver = "";
    std::int64_t iteration = 0;
    int converged = 0;
    int wanted = 0;
    /// Largest residual norm, relative to the norm estimate of A, among the next wanted pairs.
    double residual = 0;
    double seconds = 0;
    /// What the solver is doing: "search", "verify".
    const char* stage = "";
};

/// A solver restarted its basis.
struct RestartEvent {
    const char* solver = "";
    std::int64_t iteration = 0;
    int basis = 0;
    int kept = 0;
    int locked = 0;
};

/// Something asked for was replaced by something weaker or slower; the text says what and why.
struct FallbackEvent {
    std::string what;
};

/// A call waited for a kernel that was in no pack and not in the cache of compiled kernels.
struct KernelWaitEvent {
    std::string kernel;
    double seconds = 0;
};

/// Something a user wants to know: a tolerance raised, a device chosen.
struct NoticeEvent {
    std::string text;
};

/// A silent fault was found on some rank, and what was done about it.
struct FaultEvent {
    /// "product", "operand", "matrix entries", ...
    const char* where = "";
    /// "found", "mended", "redone", "not mended".
    const char* what = "";
    /// The product of the operator at which that was, from 1.
    std::int64_t product = 0;
    int rank = 0;
};

using Event = std::variant<IterationEvent, RestartEvent, FallbackEvent, NoticeEvent, FaultEvent,
                           KernelWaitEvent>;
using EventSink = std::function<void(const Event&)>;

}  // namespace quiver
