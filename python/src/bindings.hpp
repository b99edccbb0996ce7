// SPDX-License-Identifier: BSD-3-Clause
// The parts of the module quiver._core.
#pragma once

#include <nanobind/nanobind.h>

namespace quiver::python {

void bind_eigen(nanobind::module_& module);
void bind_linear(nanobind::module_& module);
void bind_dense(nanobind::module_& module);
void bind_cluster(nanobind::module_& module);
void bind_hamiltonian(nanobind::module_& module);
void bind_svd(nanobind::module_& module);

}  // namespace quiver::python
