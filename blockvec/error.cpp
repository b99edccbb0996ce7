// SPDX-License-Identifier: BSD-3-Clause
#include "blockvec/error.hpp"

namespace quiver {
namespace {

template <class E>
[[noreturn]] void throw_marked(E error) {
    error.set_collective();
    throw error;
}

}  // namespace

void throw_collective(ErrorKind kind, const std::string& message) {
    switch (kind) {
        case ErrorKind::shape:
            throw_marked(ShapeError(message));
        case ErrorKind::input:
            throw_marked(InputError(message));
        case ErrorKind::unsupported:
            throw_marked(UnsupportedError(message));
        case ErrorKind::numerical:
            throw_marked(NumericalError(message));
        case ErrorKind::memory:
            throw_marked(MemoryError(message));
        case ErrorKind::device:
            throw_marked(DeviceError(message));
        case ErrorKind::comm:
            throw_marked(CommError(message));
        default:
            throw_marked(Error(ErrorKind::other, message));
    }
}

}  // namespace quiver
