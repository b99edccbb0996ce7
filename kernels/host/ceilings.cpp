// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/host/ceilings.hpp"

#include <iterator>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "kernels/host/simd.hpp"

namespace quiver::host {
namespace {

/// A cache line.
constexpr std::int64_t lanes = 8;
/// How far ahead the forms that prefetch do so, in elements; 0: not at all.
constexpr int prefetch_ahead[] = {0, 64, 128, 256, 512};

/// Sums in four vectors: one would wait for its own additions.
struct ReadKernel {
    const double* x;
    double* sums;
    int ahead;

    template <class Isa>
    [[gnu::always_inline]] inline void rows(Chunk chunk) const noexcept {
        using Line = Pack<double, lanes, Isa::vector_bytes>;
        constexpr std::int64_t step = 4;
        Line sum[step];
        for (Line& each : sum) {
            each.zero();
        }
        const double* const end = x + chunk.last * step * lanes;
        for (const double* from = x + chunk.first * step * lanes; from != end;
             from += step * lanes) {
#pragma GCC unroll 4
            for (std::int64_t i = 0; i < step; ++i) {
                if (ahead > 0) {
                    __builtin_prefetch(from + ahead + i * lanes);
                }
                Line value;
                value.load(from + i * lanes);
                sum[i].add(value);
            }
        }
        double total = 0;
        for (const Line& each : sum) {
            double part[lanes];
            each.store(part);
            for (const double value : part) {
                total += value;
            }
        }
        sums[chunk.index] += total;
    }
};

/// Also in place, x == y.
struct ScaleKernel {
    const double* x;
    double* y;
    double factor;
    int ahead;

    template <class Isa>
    [[gnu::always_inline]] inline void rows(Chunk chunk) const noexcept {
        for (std::int64_t line = chunk.first; line < chunk.last; ++line) {
            Pack<double, lanes, Isa::vector_bytes> value;
            if (ahead > 0) {
                __builtin_prefetch(x + line * lanes + ahead);
            }
            value.load(x + line * lanes);
            value.scale(factor);
            value.store(y + line * lanes);
        }
    }
};

/// Whole lines go to memory past the caches, which need not read them first.
void copy_past_caches(int threads, double factor, const double* x, double* y, std::int64_t count) {
#pragma omp parallel for num_threads(threads) schedule(static)
    for (std::int64_t line = 0; line < count / lanes; ++line) {
#if defined(__SSE2__)
        const __m128d both = _mm_set1_pd(factor);
        __builtin_prefetch(x + line * lanes + 256);
#pragma GCC unroll 4
        for (std::int64_t i = 0; i < lanes; i += 2) {
            _mm_stream_pd(y + line * lanes + i,
                          _mm_mul_pd(both, _mm_loadu_pd(x + line * lanes + i)));
        }
#else
        for (std::int64_t i = 0; i < lanes; ++i) {
            y[line * lanes + i] = factor * x[line * lanes + i];
        }
#endif
    }
#if defined(__SSE2__)
    _mm_sfence();
#endif
}

/// Every chunk does `steps` times 12 multiply-adds on vectors of a register's size.
template <class R>
struct MultiplyAdds {
    static constexpr int chains = 12;
    std::int64_t steps;
    double* results;

    template <class Isa>
    [[gnu::always_inline]] inline void rows(Chunk chunk) const noexcept {
        constexpr int width = Isa::vector_bytes / static_cast<int>(sizeof(R));
        typedef R Vector __attribute__((vector_size(Isa::vector_bytes)));
        // Different, and none the fixed point 2, or the compiler would leave chains out.
        Vector sums[chains];
#pragma GCC unroll 12
        for (int chain = 0; chain < chains; ++chain) {
            sums[chain] = Vector{} + R(chain + 3);
        }
        const Vector factor = Vector{} + R(0.5);
        const Vector addend = Vector{} + R(1);
        for (std::int64_t step = 0; step < steps; ++step) {
#pragma GCC unroll 12
            for (int chain = 0; chain < chains; ++chain) {
                sums[chain] = sums[chain] * factor + addend;
            }
        }
        // Unrolled like the loop above: an index known only at run time keeps the sums in memory.
        Vector total = sums[0];
#pragma GCC unroll 12
        for (int chain = 1; chain < chains; ++chain) {
            total += sums[chain];
        }
        double mean = 0;
        for (int lane = 0; lane < width; ++lane) {
            mean += static_cast<double>(total[lane]) / (width * chains);
        }
        results[chunk.index] = mean;
    }
};

template <class R>
double run_multiply_adds(int threads, std::int64_t steps, double* results) {
    run_chunks(threads, threads, MultiplyAdds<R>{steps, results});
    return 2.0 * MultiplyAdds<R>::chains * (vector_bytes() / static_cast<double>(sizeof(R))) *
           static_cast<double>(steps) * threads;
}

}  // namespace

int traffic_forms(Traffic traffic) {
    constexpr int prefetches = static_cast<int>(std::size(prefetch_ahead));
    return traffic == Traffic::copy ? prefetches + 1 : prefetches;
}

void run_traffic(int threads, Traffic traffic, int form, double factor, double* x, double* y,
                 std::int64_t count) {
    if (form >= static_cast<int>(std::size(prefetch_ahead))) {
        copy_past_caches(threads, factor, x, y, count);
        return;
    }
    const int ahead = prefetch_ahead[form];
    if (traffic == Traffic::read) {
        run_chunks(threads, count / (4 * lanes), ReadKernel{x, y, ahead});
    } else {
        double* const target = traffic == Traffic::copy ? y : x;
        run_chunks(threads, count / lanes, ScaleKernel{x, target, factor, ahead});
    }
}

double run_arithmetic(int threads, Arithmetic arithmetic, std::int64_t steps, double* results) {
    return arithmetic == Arithmetic::single_fma
               ? run_multiply_adds<float>(threads, steps, results)
               : run_multiply_adds<double>(threads, steps, results);
}

}  // namespace quiver::host
