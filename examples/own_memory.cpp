// SPDX-License-Identifier: BSD-3-Clause
// Kernels on memory that the program owns: W <- W - Q (Q^T W) by tsmttsm and tsmm, on host arrays
// and, if there is a GPU, on device arrays and the program's own CUDA stream. The kernels copy none
// of these arrays, and on the GPU the host does not wait between them.
// Build: see README.md beside this file; target own_memory.
#include <cmath>
#include <cstdio>
#include <vector>

#include "blockvec/config.hpp"
#include "kernels/tsmm.hpp"
#include "kernels/tsmttsm.hpp"

#if QUIVER_HAVE_CUDA
#include <cuda_runtime.h>
#endif

using namespace quiver;

constexpr int rows = 1 << 16;
constexpr int size = 3 * rows + 2;  // Q: rows x 2, W: rows x 1, C: 2 x 1, one after the other

/// C = Q^T W, then W = W - Q C. The arrays are in the Context's place.
void project_out(Context& ctx, double* arrays) {
    const Place place = ctx.place();
    const BlockView<const double> q(arrays, rows, 2, 2, place);
    const BlockView<double> w(arrays + 2 * rows, rows, 1, 1, place);
    const BlockView<double> c(arrays + 3 * rows, 2, 1, 1, place);
    tsmttsm(ctx, 1.0, q, w, 0.0, c);
    tsmm(ctx, -1.0, q, c, 1.0, w);
}

/// Row i of W was 5 + 2 (-1)^i + r(i) with r = 1, 1, -1, -1, 1, ... Only r remains.
bool report(const char* place, const double* arrays) {
    const double *w = arrays + 2 * rows, *c = arrays + 3 * rows;
    double error = 0;
    for (int i = 0; i < rows; ++i) {
        error = std::fmax(error, std::abs(w[i] - (i % 4 < 2 ? 1 : -1)));
    }
    std::printf("%s: C = %g %g, W = %g %g %g %g ...\n", place, c[0], c[1], w[0], w[1], w[2], w[3]);
    return error < 1e-12;
}

bool run_on_gpu([[maybe_unused]] std::vector<double> arrays) {
    bool good = true;
#if QUIVER_HAVE_CUDA
    int gpus = 0;
    if (cudaGetDeviceCount(&gpus) != cudaSuccess || gpus == 0) {
        return good;
    }
    const std::size_t bytes = arrays.size() * sizeof(double);
    double* on_gpu = nullptr;
    cudaStream_t stream = nullptr;
    good = cudaMalloc(&on_gpu, bytes) == cudaSuccess && cudaStreamCreate(&stream) == cudaSuccess;
    cudaMemcpyAsync(on_gpu, arrays.data(), bytes, cudaMemcpyHostToDevice, stream);
    Context ctx(Comm(), Device::cuda(0, stream));
    project_out(ctx, on_gpu);
    cudaMemcpyAsync(arrays.data(), on_gpu, bytes, cudaMemcpyDeviceToHost, stream);
    good = good && cudaStreamSynchronize(stream) == cudaSuccess && report("GPU", arrays.data());
    cudaFree(on_gpu);  // the stream is not destroyed, because it must outlive ctx
#endif
    return good;
}

int main() {
    std::vector<double> arrays(size);
    for (int i = 0; i < rows; ++i) {
        const double sign = i % 2 == 0 ? 1 : -1;
        arrays[2 * i] = 1 / 256.0;  // there are 256^2 rows: both columns of Q have norm 1
        arrays[2 * i + 1] = sign / 256.0;
        arrays[2 * rows + i] = 5 + 2 * sign + (i % 4 < 2 ? 1 : -1);
    }
    const bool good_on_gpu = run_on_gpu(arrays);
    Context ctx;
    project_out(ctx, arrays.data());
    return report("host", arrays.data()) && good_on_gpu ? 0 : 1;
}
// It prints, the first line only if there is a GPU,
//> GPU: C = 1280 512, W = 1 1 -1 -1 ...
//> host: C = 1280 512, W = 1 1 -1 -1 ...
