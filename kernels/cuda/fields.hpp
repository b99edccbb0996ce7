// SPDX-License-Identifier: BSD-3-Clause
// Structures whose fields are listed once: the list declares them, and a visitor finds their names,
// from which plans are written and read, and instances of device templates are named.
#pragma once

/// In a structure: the fields of LIST, a macro of FIELD(type, name) or FIELD(type, name, default)
/// for each field, and
///   name                       the structure's own name
///   for_each_field(self, f)    calls f(name, field) in the order of the list
#define QUIVER_FIELDS(NAME, LIST)                             \
    LIST(QUIVER_DECLARE_FIELD)                                \
    static constexpr const char* name = #NAME;                \
    template <class Self, class F>                            \
    static constexpr void for_each_field(Self& self, F&& f) { \
        LIST(QUIVER_VISIT_FIELD)                              \
    }
#define QUIVER_DECLARE_FIELD(TYPE, NAME, ...) TYPE NAME{__VA_ARGS__};
#define QUIVER_VISIT_FIELD(TYPE, NAME, ...) f(#NAME, self.NAME);
