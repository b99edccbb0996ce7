// SPDX-License-Identifier: BSD-3-Clause
// The exception tree. Misuse and failures throw; numerical outcomes are fields of result objects.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace quiver {

/// The class of an error, as an integer that ranks can exchange.
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

/// Base class of all exceptions of this library. The message names the operation and the numbers.
class Error : public std::runtime_error {
  public:
    Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
    ErrorKind kind() const { return kind_; }
    /// True if every rank of the communicator throws this same error, so that no rank waits for
    /// another and the program may call MPI_Finalize. False if the other ranks do not know of the
    /// error.
    bool collective() const { return collective_; }
    void set_collective() { collective_ = true; }

  private:
    ErrorKind kind_;
    bool collective_ = false;
};

/// The shapes, places or aliasing of the arguments disagree.
class ShapeError : public Error {
  public:
    explicit ShapeError(const std::string& message) : Error(ErrorKind::shape, message) {}
};

/// A file, an option or the user's data is invalid; the message starts with file and line if known.
class InputError : public Error {
  public:
    explicit InputError(const std::string& message) : Error(ErrorKind::input, message) {}
    InputError(const std::string& file, std::int64_t line, const std::string& message)
        : Error(ErrorKind::input, file + ":" + std::to_string(line) + ": " + message) {}
};

/// The build or the machine lacks a requested feature; the message names the cure.
class UnsupportedError : public Error {
  public:
    explicit UnsupportedError(const std::string& message)
        : Error(ErrorKind::unsupported, message) {}
};

/// A numerically impossible input: NaN or infinity from an operator, an indefinite inner product.
class NumericalError : public Error {
  public:
    explicit NumericalError(const std::string& message) : Error(ErrorKind::numerical, message) {}
};

/// Not enough memory; the message names the bytes and the purpose.
class MemoryError : public Error {
  public:
    explicit MemoryError(const std::string& message) : Error(ErrorKind::memory, message) {}
};

/// A call of the CUDA runtime, of NVRTC or of a CUDA library failed; the message contains the name
/// of the error code.
class DeviceError : public Error {
  public:
    explicit DeviceError(const std::string& message) : Error(ErrorKind::device, message) {}
};

/// A call of MPI or NCCL failed.
class CommError : public Error {
  public:
    explicit CommError(const std::string& message) : Error(ErrorKind::comm, message) {}
};

/// Throws the exception class that belongs to `kind`, marked collective.
[[noreturn]] void throw_collective(ErrorKind kind, const std::string& message);

}  // namespace quiver
