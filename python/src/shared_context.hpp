// SPDX-License-Identifier: BSD-3-Clause
// run(), by which calls from Python enter the library, and call_python(), by which the library
// calls Python.
#pragma once

#include <exception>
#include <mutex>
#include <utility>

#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>

#include "c/shared/any_operator.hpp"

namespace quiver::python {

namespace nb = nanobind;

using doors::SharedContext;

/// The exception of a Python callback that ran during the present call of this thread, or null. It
/// is kept here because the library may replace an exception that passes through it by one of its
/// own.
std::exception_ptr& callback_error();

/// Calls `function`, which runs Python code, with the GIL. Returns false if `function` raises an
/// exception. After an exception of an earlier callback in the present call of the library, returns
/// false without calling `function`.
template <class F>
bool call_python(F&& function) {
    if (callback_error()) {
        return false;
    }
    const nb::gil_scoped_acquire gil;
    try {
        function();
        return true;
    } catch (...) {
        callback_error() = std::current_exception();
        return false;
    }
}

/// Returns work(context). `work` runs without the GIL while this thread holds the Context. If a
/// Python callback raises an exception during `work`, run() throws that exception.
template <class F>
auto run(SharedContext& shared, F&& work) {
    struct Restore {
        std::exception_ptr outer = std::exchange(callback_error(), nullptr);
        ~Restore() { callback_error() = outer; }
    } restore;
    const auto rethrow = [] {
        if (callback_error()) {
            std::rethrow_exception(std::exchange(callback_error(), nullptr));
        }
    };
    const auto locked = [&] {
        // The GIL is released first: a thread that waits for the Context must not hold it.
        const nb::gil_scoped_release release;
        const std::lock_guard lock(shared.mutex);
        // A nested call must not send its events to the sink of the outer call.
        const doors::ScopedSink silent(shared, {});
        return work(shared.context);
    };
    try {
        if constexpr (std::is_void_v<decltype(work(shared.context))>) {
            locked();
            rethrow();
        } else {
            auto result = locked();
            rethrow();
            return result;
        }
    } catch (...) {
        rethrow();
        throw;
    }
}

}  // namespace quiver::python
