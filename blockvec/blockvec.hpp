// SPDX-License-Identifier: BSD-3-Clause
// Includes all public headers of blockvec/ except blockvec/eigen_interop.hpp, which needs Eigen.
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
