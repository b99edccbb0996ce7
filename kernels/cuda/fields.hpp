// SPDX-License-Identifier: BSD-3-Clause
// Structures whose fields are listed once: the list declares them, and a visitor finds their names,
// from which plans are written and read, and instances of device templates are named.
#pragma once

/// In a structure: its fields, (type, name) or (type, name, default) each, at most 32, and
///   name                       the structure's own name
///   for_each_field(self, f)    calls f(name, field) in the order of the list
#define QUIVER_FIELDS(NAME, ...)                              \
    QUIVER_FOR_EACH(QUIVER_DECLARE_FIELD, __VA_ARGS__)        \
    static constexpr const char* name = #NAME;                \
    template <class Self, class F>                            \
    static constexpr void for_each_field(Self& self, F&& f) { \
        QUIVER_FOR_EACH(QUIVER_VISIT_FIELD, __VA_ARGS__)      \
    }
#define QUIVER_DECLARE_FIELD(TYPE, NAME, ...) TYPE NAME{__VA_ARGS__};
#define QUIVER_VISIT_FIELD(TYPE, NAME, ...) f(#NAME, self.NAME);

// MACRO of each list in turn. A macro is not expanded within itself; scans of what is left do it.
#define QUIVER_FOR_EACH(MACRO, ...) QUIVER_SCAN_32(QUIVER_FOR_ONE(MACRO, __VA_ARGS__))
#define QUIVER_FOR_ONE(MACRO, FIRST, ...) \
    MACRO FIRST __VA_OPT__(QUIVER_FOR_NEXT QUIVER_PARENTHESES(MACRO, __VA_ARGS__))
#define QUIVER_FOR_NEXT() QUIVER_FOR_ONE
#define QUIVER_PARENTHESES ()
#define QUIVER_SCAN_32(...) QUIVER_SCAN_8(QUIVER_SCAN_8(QUIVER_SCAN_8(QUIVER_SCAN_8(__VA_ARGS__))))
#define QUIVER_SCAN_8(...) QUIVER_SCAN_2(QUIVER_SCAN_2(QUIVER_SCAN_2(QUIVER_SCAN_2(__VA_ARGS__))))
#define QUIVER_SCAN_2(...) QUIVER_SCAN_1(QUIVER_SCAN_1(__VA_ARGS__))
#define QUIVER_SCAN_1(...) __VA_ARGS__
