// SPDX-License-Identifier: BSD-3-Clause
// The Context, the random numbers and the number of cases of a test.
#pragma once

#include <cstdint>
#include <random>

#include "blockvec/context.hpp"

namespace quiver::test {

/// Place::device if QUIVER_TEST_PLACE=device, else Place::host.
Place test_place();

/// A Context over all ranks of MPI_COMM_WORLD in the place under test. On a GPU it has a stream of
/// its own, not the default stream.
Context make_context();

/// A generator, the same on all ranks. Its seed is QUIVER_TEST_SEED or follows from the test's
/// name; a failed test prints it.
std::mt19937_64 make_generator();

/// The step of loops over many cases: 1 for one process on the host, or with QUIVER_TEST_ALL_CASES.
/// It is 5 for several ranks, for a device and with QUIVER_VECTORS, because these runs repeat the
/// cases of the first.
int case_step();

/// True where case_step() is not 1, except on a device. For cases in which several ranks, or a
/// narrower instruction set, have nothing new, but a device has.
bool is_host_repetition();

}  // namespace quiver::test
