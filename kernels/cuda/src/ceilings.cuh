// SPDX-License-Identifier: BSD-3-Clause
// Micro-benchmark kernels: streams of 16-byte words, and multiply-adds in registers.
#pragma once

#include "scalar.cuh"

namespace quiver {

template <bool STREAMING>
double2 load_words(const double2* from) {
    if constexpr (STREAMING) {
        return __ldcs(from);
    } else {
        return __ldg(from);
    }
}

/// Blocks process tiles of UNROLL blockDim.x words in turn; a thread issues all loads of a tile
/// before it uses the first. Each warp adds its sum to its own element of `sums`.
template <int UNROLL, bool STREAMING>
__global__ void __launch_bounds__(256)
    read_stream(const double* x, double* sums, std::int64_t tiles) {
    const double2* const words = reinterpret_cast<const double2*>(x);
    double sum = 0;
    for (std::int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const double2* const from = words + tile * UNROLL * blockDim.x + threadIdx.x;
        double2 value[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) {
            value[u] = load_words<STREAMING>(from + u * blockDim.x);
        }
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) {
            sum += value[u].x + value[u].y;
        }
    }
#pragma unroll
    for (int mask = 16; mask > 0; mask /= 2) {
        sum += shuffle_xor(sum, mask);
    }
    if (threadIdx.x % 32 == 0) {
        sums[(static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / 32] += sum;
    }
}

/// y = factor x; x may be y, so the loads must be plain ones.
template <int UNROLL, bool STREAMING>
__global__ void __launch_bounds__(256)
    copy_stream(double factor, const double* x, double* y, std::int64_t tiles) {
    const double2* const words = reinterpret_cast<const double2*>(x);
    double2* const target = reinterpret_cast<double2*>(y);
    for (std::int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const std::int64_t first = tile * UNROLL * blockDim.x + threadIdx.x;
        double2 value[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) {
            value[u] =
                STREAMING ? __ldcs(words + first + u * blockDim.x) : words[first + u * blockDim.x];
        }
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) {
            const double2 product = make_double2(factor * value[u].x, factor * value[u].y);
            if constexpr (STREAMING) {
                __stcs(target + first + u * blockDim.x, product);
            } else {
                target[first + u * blockDim.x] = product;
            }
        }
    }
}

/// `steps` times 16 independent multiply-adds per thread; results get the mean of the chains.
template <class R>
__global__ void __launch_bounds__(256)
    multiply_adds(std::int64_t steps, R factor, R addend, double* results) {
    constexpr int chains = 16;
    constexpr int rounds = 8;
    R value[chains];
#pragma unroll
    for (int chain = 0; chain < chains; ++chain) {
        value[chain] = R(threadIdx.x + chain + 3);
    }
    const auto step = [&] {
#pragma unroll
        for (int chain = 0; chain < chains; ++chain) {
            value[chain] = multiply_add(value[chain], factor, addend);
        }
    };
    std::int64_t done = 0;
    for (; done + rounds <= steps; done += rounds) {
#pragma unroll
        for (int round = 0; round < rounds; ++round) {
            step();
        }
    }
    for (; done < steps; ++done) {
        step();
    }
    double mean = 0;
#pragma unroll
    for (int chain = 0; chain < chains; ++chain) {
        mean += static_cast<double>(value[chain]) / chains;
    }
    results[static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x] = mean;
}

/// d += a b by a warp, M x 8 x K. Fragments per thread: d has M / 4, a has M K / 32, b has K / 4
/// elements (PTX ISA, warp-level matrix instructions, .f64).
template <int M, int K>
void multiply_matrices(double (&d)[M / 4], const double (&a)[M * K / 32],
                       const double (&b)[K / 4]) {
    if constexpr (M == 8) {
        asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1},{%2},{%3},{%0,%1};"
                     : "+d"(d[0]), "+d"(d[1])
                     : "d"(a[0]), "d"(b[0]));
    } else if constexpr (K == 4) {
        asm volatile(
            "mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 "
            "{%0,%1,%2,%3},{%4,%5},{%6},{%0,%1,%2,%3};"
            : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
            : "d"(a[0]), "d"(a[1]), "d"(b[0]));
    } else if constexpr (K == 8) {
        asm volatile(
            "mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 "
            "{%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
            : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
            : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
    } else {
        asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 "
            "{%0,%1,%2,%3},{%4,%5,%6,%7,%8,%9,%10,%11},{%12,%13,%14,%15},{%0,%1,%2,%3};"
            : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
            : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(a[4]), "d"(a[5]), "d"(a[6]),
              "d"(a[7]), "d"(b[0]), "d"(b[1]), "d"(b[2]), "d"(b[3]));
    }
}

/// `steps` times 8 independent products per warp of matrices with all elements equal to a, and
/// equal to b; results get the mean of a thread's elements.
template <int M, int K>
__global__ void __launch_bounds__(256)
    matrix_products(std::int64_t steps, double a, double b, double* results) {
    constexpr int chains = 8;
    double d[chains][M / 4] = {};
    double fragment_a[M * K / 32];
    double fragment_b[K / 4];
    for (double& element : fragment_a) {
        element = a;
    }
    for (double& element : fragment_b) {
        element = b;
    }
#pragma unroll 1
    for (std::int64_t step = 0; step < steps; ++step) {
#pragma unroll
        for (int chain = 0; chain < chains; ++chain) {
            multiply_matrices<M, K>(d[chain], fragment_a, fragment_b);
        }
    }
    double mean = 0;
#pragma unroll
    for (int chain = 0; chain < chains; ++chain) {
        for (const double element : d[chain]) {
            mean += element / (chains * M / 4);
        }
    }
    results[static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x] = mean;
}

}  // namespace quiver
