// SPDX-License-Identifier: BSD-3-Clause
// The common part of the drivers that use PETSc.
#pragma once

#include <stdexcept>
#include <string>

#include <petscsys.h>

namespace quiver::rivals {

/// Throws std::runtime_error for an error code of PETSc or SLEPc.
inline void check(PetscErrorCode code) {
    if (code != 0) {
        throw std::runtime_error("PETSc: error " + std::to_string(code));
    }
}

}  // namespace quiver::rivals
