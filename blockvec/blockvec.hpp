// SPDX-License-Identifier: BSD-3-Clause
// The whole floor blockvec/ in one include: scalars, errors, Comm, Context, memory, views and
// blocks. Only blockvec/eigen_interop.hpp, which needs Eigen, is left to a separate include.
#pragma once

#include "blockvec/block_vector.hpp"
#include "blockvec/comm.hpp"
#include "blockvec/context.hpp"
#include "blockvec/device.hpp"
#include "blockvec/error.hpp"
#include "blockvec/event.hpp"
#include "blockvec/host_copy.hpp"
#include "blockvec/interop.hpp"
#include "blockvec/ledger.hpp"
#include "blockvec/matrix_view.hpp"
#include "blockvec/memory.hpp"
#include "blockvec/mpi.hpp"
#include "blockvec/overhead.hpp"
#include "blockvec/processor.hpp"
#include "blockvec/row_map.hpp"
#include "blockvec/scalar.hpp"
#include "blockvec/scalar_list.hpp"
#include "blockvec/small_matrix.hpp"
#include "blockvec/view.hpp"
