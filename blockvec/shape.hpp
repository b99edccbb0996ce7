// SPDX-License-Identifier: BSD-3-Clause
// Argument checks of the public operations: shapes, places and aliasing. Always on, O(1).
#pragma once

#include <cstdint>
#include <string>

#include "blockvec/error.hpp"
#include "blockvec/view.hpp"

namespace quiver {

/// Describes a view as "rows x cols, ld L, PLACE".
template <class T>
std::string describe(const BlockView<T>& view) {
    return std::to_string(view.rows) + " x " + std::to_string(view.cols) + ", ld " +
           std::to_string(view.ld) + ", " + to_string(view.place);
}

/// Throws ShapeError "operation: requirement (details)" unless `holds`. `details` is called only on
/// failure.
template <class Details>
void require_shape(bool holds, const char* operation, const char* requirement, Details&& details) {
    if (!holds) {
        throw ShapeError(std::string(operation) + ": " + requirement + " (" + details() + ")");
    }
}

/// Throws ShapeError unless the view is valid: rows, cols >= 0, ld >= cols, data not null unless
/// the view is empty, and an extent in bytes that fits 64 bits.
template <class T>
void require_valid(const BlockView<T>& view, const char* operation, const char* name) {
    std::int64_t bytes = 0;
    const bool walkable =
        view.rows >= 0 && view.cols >= 0 && view.ld >= view.cols &&
        (view.data != nullptr || view.empty()) &&
        !__builtin_mul_overflow(view.rows, view.ld, &bytes) &&
        !__builtin_mul_overflow(bytes, static_cast<std::int64_t>(sizeof(T)), &bytes);
    require_shape(walkable, operation, "an argument is not a valid view", [&] {
        return std::string(name) + ": " + describe(view) +
               (view.data == nullptr ? ", no memory" : "");
    });
}

/// True if the views share a byte. The answer is exact if their row strides have the same number of
/// bytes, as for column ranges of one block. For other strides it is true as soon as the extents in
/// memory intersect.
template <class T, class U>
bool overlap(const BlockView<T>& a, const BlockView<U>& b) {
    if (a.empty() || b.empty() || a.place != b.place) {
        return false;
    }
    const auto begin_a = reinterpret_cast<std::uintptr_t>(a.data);
    const auto begin_b = reinterpret_cast<std::uintptr_t>(b.data);
    const auto extent = [](const auto& v) {
        return static_cast<std::uintptr_t>((v.rows - 1) * v.ld + v.cols) * sizeof(*v.data);
    };
    if (begin_a + extent(a) <= begin_b || begin_b + extent(b) <= begin_a) {
        return false;
    }
    const auto pitch_a = static_cast<std::uintptr_t>(a.ld) * sizeof(*a.data);
    const auto pitch_b = static_cast<std::uintptr_t>(b.ld) * sizeof(*b.data);
    if (pitch_a != pitch_b) {
        return true;
    }
    // Same pitch: compare the byte ranges of the columns modulo the pitch.
    const std::uintptr_t shift = begin_b >= begin_a
                                     ? (begin_b - begin_a) % pitch_a
                                     : (pitch_a - (begin_a - begin_b) % pitch_a) % pitch_a;
    const std::uintptr_t width_a = static_cast<std::uintptr_t>(a.cols) * sizeof(*a.data);
    const std::uintptr_t width_b = static_cast<std::uintptr_t>(b.cols) * sizeof(*b.data);
    return shift < width_a || shift + width_b > pitch_a;
}

/// True if both views start at the same address of the same place with the same stride.
template <class T, class U>
bool same_block(const BlockView<T>& a, const BlockView<U>& b) {
    return static_cast<const void*>(a.data) == static_cast<const void*>(b.data) && a.ld == b.ld &&
           a.place == b.place;
}

}  // namespace quiver
