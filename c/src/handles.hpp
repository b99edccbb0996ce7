// SPDX-License-Identifier: BSD-3-Clause
// Shared by all functions of quiver.h: the handles, the conversion of exceptions to statuses, and
// the checks and conversions of arguments.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <type_traits>

#include "blockvec/error.hpp"
#include "blockvec/scalar.hpp"
#include "blockvec/view.hpp"
#include "c/quiver.h"
#include "c/shared/any_operator.hpp"

struct quiver_context {
    std::shared_ptr<quiver::doors::SharedContext> shared;
};

struct quiver_operator {
    quiver::doors::AnyOperator any;
};

namespace quiver::c {

/// Keeps the message for quiver_last_message() of this thread; without memory for it, the message
/// is empty.
void set_message(const char* message) noexcept;

/// The status of a library error: QUIVER_ERROR_OTHER is -1, as ErrorKind::other is 1, and so on.
constexpr quiver_status status_of(ErrorKind kind) {
    return -static_cast<quiver_status>(kind);
}
static_assert(status_of(ErrorKind::other) == QUIVER_ERROR_OTHER);
static_assert(status_of(ErrorKind::shape) == QUIVER_ERROR_SHAPE);
static_assert(status_of(ErrorKind::input) == QUIVER_ERROR_INPUT);
static_assert(status_of(ErrorKind::unsupported) == QUIVER_ERROR_UNSUPPORTED);
static_assert(status_of(ErrorKind::numerical) == QUIVER_ERROR_NUMERICAL);
static_assert(status_of(ErrorKind::memory) == QUIVER_ERROR_MEMORY);
static_assert(status_of(ErrorKind::device) == QUIVER_ERROR_DEVICE);
static_assert(status_of(ErrorKind::comm) == QUIVER_ERROR_COMM);

/// The body of every function of quiver.h that returns a status. Runs `work`, which may throw and
/// which returns nothing or a status. The caller in C gets a status; the message of an exception is
/// kept for quiver_last_message().
template <class F>
quiver_status enter(F&& work) noexcept {
    set_message("");
    try {
        if constexpr (std::is_void_v<decltype(work())>) {
            work();
            return QUIVER_OK;
        } else {
            return work();
        }
    } catch (const Error& error) {
        set_message(error.what());
        return status_of(error.kind());
    } catch (const std::bad_alloc&) {
        set_message("out of host memory");
        return QUIVER_ERROR_MEMORY;
    } catch (const std::exception& error) {
        set_message(error.what());
    } catch (...) {
        set_message("an exception of unknown type");
    }
    return QUIVER_ERROR_OTHER;
}

/// The object that a pointer argument points to; throws InputError for null.
template <class T>
T& require(T* pointer, const char* name) {
    if (pointer == nullptr) {
        throw InputError(std::string(name) + " is a null pointer");
    }
    return *pointer;
}

/// As enter(work), but locks the context and calls work(Context&).
template <class F>
quiver_status enter(quiver_context* context, F&& work) noexcept {
    return enter([&] {
        doors::SharedContext& shared = *require(context, "context").shared;
        const std::lock_guard lock(shared.mutex);
        return work(shared.context);
    });
}

/// The operator of a handle; throws InputError if it belongs to another context.
inline const doors::AnyOperator& require_operator(const quiver_context* context,
                                                  const quiver_operator* op, const char* name) {
    const doors::AnyOperator& any = require(op, name).any;
    if (any.home != context->shared) {
        throw InputError(std::string(name) + " belongs to another context");
    }
    return any;
}

/// As require_operator(), but null is allowed. Throws ShapeError unless the scalar type is that of
/// `like`.
inline const doors::AnyOperator* optional_operator(const quiver_context* context,
                                                   const quiver_operator* op, const char* name,
                                                   const doors::AnyOperator& like) {
    if (op == nullptr) {
        return nullptr;
    }
    const doors::AnyOperator& any = require_operator(context, op, name);
    if (any.dtype != like.dtype) {
        throw ShapeError(std::string(name) + " has another scalar type than A");
    }
    return &any;
}

/// Copies the caller's options. Fields that the caller's version of the header lacks are 0, and so
/// are all fields for null. Throws InputError if struct_size is smaller than its own field or
/// larger than the struct of this version.
template <class Options>
Options read_options(const Options* given, const char* name) {
    Options options{};
    if (given != nullptr) {
        if (given->struct_size < sizeof(std::size_t) || given->struct_size > sizeof(Options)) {
            throw InputError(std::string(name) + ".struct_size is " +
                             std::to_string(given->struct_size) + ", but this library knows " +
                             std::to_string(sizeof(Options)) + " bytes; call " + name + "_init()");
        }
        std::memcpy(&options, given, given->struct_size);
    }
    return options;
}

/// Writes the fields of `info` that the caller's version of the header has.
template <class Info>
void write_info(Info info, Info* to, const char* name) {
    const std::size_t size = require(to, name).struct_size;
    (void)read_options(to, name);  // checks the size
    info.struct_size = size;
    std::memcpy(to, &info, size);
}

/// Converts an integer to one of `count` enumerators, which are numbered from 0. Throws InputError
/// for any other integer.
template <class Enum>
Enum enumerator(std::int32_t value, int count, const char* name) {
    if (value < 0 || value >= count) {
        throw InputError(std::string(name) + " = " + std::to_string(value) +
                         " is not one of 0 to " + std::to_string(count - 1));
    }
    return static_cast<Enum>(value);
}

static_assert(static_cast<int>(Dtype::s) == QUIVER_S && static_cast<int>(Dtype::d) == QUIVER_D &&
              static_cast<int>(Dtype::c) == QUIVER_C && static_cast<int>(Dtype::z) == QUIVER_Z);
inline Dtype dtype_of(quiver_type type) {
    return enumerator<Dtype>(type, 4, "type");
}

static_assert(static_cast<int>(Place::host) == QUIVER_HOST &&
              static_cast<int>(Place::device) == QUIVER_DEVICE);
inline Place place_of(quiver_place place) {
    return enumerator<Place>(place, 2, "place");
}

/// A view of the caller's block. Throws ShapeError for a scalar type other than T or impossible
/// sizes, InputError for null pointers.
template <class T>
BlockView<T> view_of(const quiver_block* block, const char* name) {
    const quiver_block& b = require(block, name);
    if (dtype_of(b.type) != dtype_v<T>) {
        throw ShapeError(std::string(name) + " has the scalar type " + letter(dtype_of(b.type)) +
                         ", other arguments have " + letter(dtype_v<T>));
    }
    const std::int64_t ld = b.ld == 0 ? b.cols : b.ld;
    if (b.rows < 0 || b.cols < 0 || ld < b.cols) {
        throw ShapeError(std::string(name) + " has " + std::to_string(b.rows) + " rows, " +
                         std::to_string(b.cols) + " columns and ld " + std::to_string(b.ld));
    }
    if (b.data == nullptr && b.rows > 0 && b.cols > 0) {
        throw InputError(std::string(name) + ".data is a null pointer");
    }
    return {static_cast<T*>(b.data), b.rows, b.cols, ld, place_of(b.place)};
}

/// An empty view for null.
template <class T>
BlockView<const T> optional_view(const quiver_block* block, const char* name) {
    return block == nullptr ? BlockView<const T>{} : BlockView<const T>(view_of<T>(block, name));
}

/// The block of a view.
template <class T>
quiver_block block_of(BlockView<T> view) {
    using Scalar = std::remove_const_t<T>;
    return {const_cast<Scalar*>(view.data),
            view.rows,
            view.ld,
            view.cols,
            static_cast<quiver_type>(dtype_v<T>),
            static_cast<quiver_place>(view.place)};
}

}  // namespace quiver::c
