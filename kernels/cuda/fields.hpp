// SPDX-License-Identifier: BSD-3-Clause
// QUIVER_FIELDS: structures whose fields are listed once. The list declares the fields, and a
// visitor iterates over them with their names, to write and read plans and to name instances of
// device templates.
#pragma once

/// Declares the fields of the structure that contains this macro. The list has at most 20 elements
/// (type, name) or (type, name, default). Except in device code, the macro also declares
///   name                       the structure's own name
///   for_each_field(self, f)    calls f(name, field) in the order of the list
#define QUIVER_FIELDS(NAME, ...) \
    QUIVER_FOR_EACH(QUIVER_DECLARE_FIELD, __VA_ARGS__) QUIVER_VISITOR(NAME, __VA_ARGS__)
#ifdef __CUDACC_RTC__
// Device code needs no names; a kernel takes a millisecond less to compile without them.
#define QUIVER_VISITOR(NAME, ...)
#else
#define QUIVER_VISITOR(NAME, ...)                             \
    static constexpr const char* name = #NAME;                \
    template <class Self, class F>                            \
    static constexpr void for_each_field(Self& self, F&& f) { \
        QUIVER_FOR_EACH(QUIVER_VISIT_FIELD, __VA_ARGS__)      \
    }
#endif
#define QUIVER_DECLARE_FIELD(TYPE, NAME, ...) TYPE NAME{__VA_ARGS__};
#define QUIVER_VISIT_FIELD(TYPE, NAME, ...) f(#NAME, self.NAME);

// Applies MACRO to each list in turn. There is one macro per length, because a macro is not
// expanded within itself, and workarounds cost the compiler milliseconds per kernel.
#define QUIVER_FOR_EACH(MACRO, ...) QUIVER_FOR_1(MACRO, __VA_ARGS__)
#define QUIVER_FOR_1(MACRO, FIRST, ...) MACRO FIRST __VA_OPT__(QUIVER_FOR_2(MACRO, __VA_ARGS__))
#define QUIVER_FOR_2(MACRO, FIRST, ...) MACRO FIRST __VA_OPT__(QUIVER_FOR_3(MACRO, __VA_ARGS__))
#define QUIVER_FOR_3(MACRO, FIRST, ...) MACRO FIRST __VA_OPT__(QUIVER_FOR_4(MACRO, __VA_ARGS__))
#define QUIVER_FOR_4(MACRO, FIRST, ...) MACRO FIRST __VA_OPT__(QUIVER_FOR_5(MACRO, __VA_ARGS__))
#define QUIVER_FOR_5(MACRO, FIRST, ...) MACRO FIRST __VA_OPT__(QUIVER_FOR_6(MACRO, __VA_ARGS__))
#define QUIVER_FOR_6(MACRO, FIRST, ...) MACRO FIRST __VA_OPT__(QUIVER_FOR_7(MACRO, __VA_ARGS__))
#define QUIVER_FOR_7(MACRO, FIRST, ...) MACRO FIRST __VA_OPT__(QUIVER_FOR_8(MACRO, __VA_ARGS__))
#define QUIVER_FOR_8(MACRO, FIRST, ...) MACRO FIRST __VA_OPT__(QUIVER_FOR_9(MACRO, __VA_ARGS__))
#define QUIVER_FOR_9(MACRO, FIRST, ...) MACRO FIRST __VA_OPT__(QUIVER_FOR_10(MACRO, __VA_ARGS__))
#define QUIVER_FOR_10(MACRO, FIRST, ...) MACRO FIRST __VA_OPT__(QUIVER_FOR_11(MACRO, __VA_ARGS__))
#define QUIVER_FOR_11(MACRO, FIRST, ...) MACRO FIRST __VA_OPT__(QUIVER_FOR_12(MACRO, __VA_ARGS__))
#define QUIVER_FOR_12(MACRO, FIRST, ...) MACRO FIRST __VA_OPT__(QUIVER_FOR_13(MACRO, __VA_ARGS__))
#define QUIVER_FOR_13(MACRO, FIRST, ...) MACRO FIRST __VA_OPT__(QUIVER_FOR_14(MACRO, __VA_ARGS__))
#define QUIVER_FOR_14(MACRO, FIRST, ...) MACRO FIRST __VA_OPT__(QUIVER_FOR_15(MACRO, __VA_ARGS__))
#define QUIVER_FOR_15(MACRO, FIRST, ...) MACRO FIRST __VA_OPT__(QUIVER_FOR_16(MACRO, __VA_ARGS__))
#define QUIVER_FOR_16(MACRO, FIRST, ...) MACRO FIRST __VA_OPT__(QUIVER_FOR_17(MACRO, __VA_ARGS__))
#define QUIVER_FOR_17(MACRO, FIRST, ...) MACRO FIRST __VA_OPT__(QUIVER_FOR_18(MACRO, __VA_ARGS__))
#define QUIVER_FOR_18(MACRO, FIRST, ...) MACRO FIRST __VA_OPT__(QUIVER_FOR_19(MACRO, __VA_ARGS__))
#define QUIVER_FOR_19(MACRO, FIRST, ...) MACRO FIRST __VA_OPT__(QUIVER_FOR_20(MACRO, __VA_ARGS__))
#define QUIVER_FOR_20(MACRO, FIRST) MACRO FIRST
