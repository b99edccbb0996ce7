// SPDX-License-Identifier: BSD-3-Clause
#include <string>

#include "blockvec/scalar_list.hpp"
#include "kernels/cuda/cuda_kernels.hpp"
#include "kernels/cuda/hamiltonian_launch.hpp"
#include "kernels/cuda/specialiser.hpp"
#include "kernels/cuda/tiling.hpp"

namespace quiver::cuda {
namespace {

constexpr const char* hamiltonian_source = "hamiltonian.cuh";

}  // namespace

template <class T>
void request_hamiltonian(Context& ctx, int width, bool symmetric) {
    ctx.service<Specialiser>().request(hamiltonian_source,
                                       hamiltonian_expression<T>(width, symmetric));
}

template <class T>
void hamiltonian(Context& ctx, const HamiltonianArgs<T>& args) {
    if (args.rows == 0) {
        return;
    }
    const int lanes = hamiltonian_lanes(args.width);
    const int rows_per_block = block_threads / lanes * hamiltonian_rows(lanes);
    launch(
        ctx,
        ctx.service<Specialiser>().get(
            ctx, hamiltonian_source, hamiltonian_expression<T>(args.width, args.space.symmetric())),
        {.blocks = blocks_for(ctx, args.rows, rows_per_block, 32), .threads = block_threads}, args);
}

#define QUIVER_INSTANTIATE(T)                                  \
    template void request_hamiltonian<T>(Context&, int, bool); \
    template void hamiltonian(Context&, const HamiltonianArgs<T>&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver::cuda
