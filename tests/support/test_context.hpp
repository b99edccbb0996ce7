// SPDX-License-Identifier: BSD-3-Clause
// The Context of a test: all ranks of MPI_COMM_WORLD, host memory or, with
// QUIVER_TEST_PLACE=device, a GPU and a separate stream.
#pragma once

#include <cstdint>
#include <random>

#include "blockvec/context.hpp"

namespace quiver::test {

/// Place::device if QUIVER_TEST_PLACE=device, else Place::host.
Place test_place();

/// A Context over all ranks in the place under test. GPU contexts never use the default stream.
Context make_context();

/// A generator whose seed is fixed by the test's name (or by QUIVER_TEST_SEED) and is recorded with
/// every failure; the same on all ranks.
std::mt19937_64 make_generator();

/// The step of loops over many cases: 1 for one process on the host or with QUIVER_TEST_ALL_CASES,
/// else 5. Several ranks each compute the whole reference, a device waits for copies, and a run
/// with QUIVER_VECTORS repeats another one, so they take every fifth case.
int case_step();

}  // namespace quiver::test
