// SPDX-License-Identifier: BSD-3-Clause
// Includes the plain arguments of all leaves: pointers, sizes, strides and scalars, shared by the
// reference, host and CUDA forms of an operation. The public functions check the arguments; the
// leaves do not.
#pragma once

#include "kernels/operations/axpby.hpp"
#include "kernels/operations/batched.hpp"
#include "kernels/operations/checksum.hpp"
#include "kernels/operations/copy.hpp"
#include "kernels/operations/dots.hpp"
#include "kernels/operations/fill.hpp"
#include "kernels/operations/fill_random.hpp"
#include "kernels/operations/gather_columns.hpp"
#include "kernels/operations/gram_factor.hpp"
#include "kernels/operations/gram_twofold.hpp"
#include "kernels/operations/hamiltonian.hpp"
#include "kernels/operations/kmeans_step.hpp"
#include "kernels/operations/mtsm.hpp"
#include "kernels/operations/shifted_gram.hpp"
#include "kernels/operations/spmmv.hpp"
#include "kernels/operations/tsmm.hpp"
#include "kernels/operations/tsmm_gram.hpp"
#include "kernels/operations/tsmttsm.hpp"
