// SPDX-License-Identifier: BSD-3-Clause
// The error for an operator that should be positive definite but is not.
#pragma once

#include <cstdint>
#include <string>

#include "blockvec/error.hpp"

namespace quiver {

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

/// Throws the error; all ranks must call it.
[[noreturn]] inline void throw_indefinite(IndefiniteError::Operand operand,
                                          const std::string& message) {
    IndefiniteError error(operand, message);
    error.set_collective();
    throw error;
}

}  // namespace quiver
