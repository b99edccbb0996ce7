// SPDX-License-Identifier: BSD-3-Clause
// quiver_mpi.h: communicators of MPI in C. quiver.h itself needs no mpi.h.
#ifndef QUIVER_MPI_H
#define QUIVER_MPI_H

#include <mpi.h>

#include "quiver.h"

/// Gives the context the ranks of `comm`, which is duplicated. MPI must be initialised.
static inline void quiver_context_options_set_comm(quiver_context_options* options, MPI_Comm comm) {
    options->use_comm = 1;
    options->comm = (int32_t)MPI_Comm_c2f(comm);
}

#endif
