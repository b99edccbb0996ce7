// SPDX-License-Identifier: BSD-3-Clause
// Typed events that the library sends to the caller's sink while it works. The library itself
// prints nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <variant>

namespace quiver {

/// A solver finished an iteration. Eigensolvers count pairs; `wanted` is 0 with a window, whose
/// number of pairs is not known. Linear solvers count columns of B: `converged` are those that have
/// stopped or whose residual is well below the tolerance. In k-means `converged` is -1.
struct IterationEvent {
    const char* solver = "";
    std::int64_t iteration = 0;
    int converged = 0;
    int wanted = 0;
    /// Largest residual norm among the next wanted pairs, relative to the norm estimate of A; in
    /// linear solves among the columns, relative to ||b||; in k-means the root of the sum of the
    /// squared shifts of the centres, relative to the standard deviation of a column.
    double residual = 0;
    double seconds = 0;
    /// The current stage of the solver: "density" (of states, with a window), "search", "verify";
    /// "solve" in linear solves, "lloyd" in k-means.
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

/// The library replaced a method by a weaker or slower one, or changed a parameter such as a shift;
/// the text says how and why.
struct FallbackEvent {
    std::string what;
};

/// A call waited for the compilation of a kernel that was in no pack and not in the kernel cache.
struct KernelWaitEvent {
    std::string kernel;
    double seconds = 0;
};

/// A note for the user, for instance the predicted size of a factorisation.
struct NoticeEvent {
    std::string text;
};

/// A silent fault was found on some rank.
struct FaultEvent {
    /// The corrupted data: "product", "operand", "matrix entries", ...
    const char* where = "";
    /// The outcome: "found" (repair is not enabled), "mended" (repaired), "redone" (computed
    /// again), "not mended" (repair failed).
    const char* what = "";
    /// The number of the operator product at which the fault was found, from 1.
    std::int64_t product = 0;
    int rank = 0;
};

using Event = std::variant<IterationEvent, RestartEvent, FallbackEvent, NoticeEvent, FaultEvent,
                           KernelWaitEvent>;
using EventSink = std::function<void(const Event&)>;

}  // namespace quiver
