// SPDX-License-Identifier: BSD-3-Clause
// The exception tree. Misuse and failures throw; numerical outcomes are fields of results.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace quiver {

/// What went wrong, as a number that one all-reduce can carry.
enum class ErrorKind : int {
    none = 0,
    other,
    shape,
    input,
    unsupported,
    numerical,
    memory,
    device,
    comm,
};

/// Base of everything this library throws. The message names the operation and the numbers.
class Error : public std::runtime_error {
  public:
    Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
    ErrorKind kind() const { return kind_; }
    /// True when every rank of the communicator throws this same error (so that no rank waits for
    /// another one and the program may end in order); false for an error that one rank has seen.
    bool collective() const { return collective_; }
    void set_collective() { collective_ = true; }

  private:
    ErrorKind kind_;
    bool collective_ = false;
};

/// Shapes, places or aliasing of arguments disagree.
class ShapeError : public Error {
  public:
    explicit ShapeError(const std::string& message) : Error(ErrorKind::shape, message) {}
};

/// A file, an option or a user's data is wrong; the message starts with file and line where known.
class InputError : public Error {
  public:
    explicit InputError(const std::string& message) : Error(ErrorKind::input, message) {}
    InputError(const std::string& file, std::int64_t line, const std::string& message)
        : Error(ErrorKind::input, file + ":" + std::to_string(line) + ": " + message) {}
};

/// The build or the machine lacks what was asked for; the message names the cure.
class UnsupportedError : public Error {
  public:
    explicit UnsupportedError(const std::string& message)
        : Error(ErrorKind::unsupported, message) {}
};

/// Impossible numbers: NaN or infinity from an operator, an indefinite inner product.
class NumericalError : public Error {
  public:
    explicit NumericalError(const std::string& message) : Error(ErrorKind::numerical, message) {}
};

/// Memory does not suffice; the message says how many bytes of what.
class MemoryError : public Error {
  public:
    explicit MemoryError(const std::string& message) : Error(ErrorKind::memory, message) {}
};

/// A call of the CUDA runtime, of NVRTC or of a CUDA library failed; the message has its code's
/// name.
class DeviceError : public Error {
  public:
    explicit DeviceError(const std::string& message) : Error(ErrorKind::device, message) {}
};

/// A call of MPI or NCCL failed.
class CommError : public Error {
  public:
    explicit CommError(const std::string& message) : Error(ErrorKind::comm, message) {}
};

/// Throws the class that belongs to `kind`, marked collective.
[[noreturn]] void throw_collective(ErrorKind kind, const std::string& message);

}  // namespace quiver
