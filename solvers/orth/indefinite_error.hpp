// SPDX-License-Identifier: BSD-3-Clause
// The error for an operator that should be positive definite but is not.
#pragma once

#include <cstdint>
#include <string>

#include "blockvec/error.hpp"

namespace quiver {

/// The end of a message: A v and B v vanish to rounding for some v.
inline constexpr const char* singular_pencil =
    "A and B have a common null vector v, so that every number is an eigenvalue; add a positive "
    "number to a diagonal entry of B at which v is not 0 (one entry for each such v), so that v "
    "has the eigenvalue 0";
/// The end of a message: x^H B x vanishes to rounding for some x.
inline constexpr const char* singular_mass_cure = "; shift-invert takes a singular B";

/// B of an inner product, or a preconditioner, is found not to be Hermitian positive definite.
/// Usually detected by all-reduced values, so that all ranks throw it.
class IndefiniteError : public NumericalError {
  public:
    enum class Operand : std::uint8_t { mass, preconditioner };
    IndefiniteError(Operand operand, const std::string& message)
        : NumericalError(message), operand_(operand) {}
    Operand operand() const { return operand_; }

  private:
    Operand operand_;
};

/// B is singular to rounding, but may be semidefinite. The message ends with a cure.
class SingularMassError : public IndefiniteError {
  public:
    explicit SingularMassError(const std::string& message)
        : IndefiniteError(Operand::mass, message) {}
};

/// Wanted eigenvalues are infinite, or more are wanted than are finite: B is singular to rounding.
class InfiniteEigenvalueError : public SingularMassError {
  public:
    using SingularMassError::SingularMassError;
};

/// Throws an Error made from the arguments; all ranks must call it.
template <class Error = IndefiniteError, class... Arguments>
[[noreturn]] void throw_indefinite(const Arguments&... arguments) {
    Error error(arguments...);
    error.set_collective();
    throw error;
}

}  // namespace quiver
