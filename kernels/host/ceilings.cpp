// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/host/ceilings.hpp"

#include <iterator>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "kernels/host/simd.hpp"

namespace quiver::host {
namespace {

/// Doubles in a cache line.
constexpr std::int64_t lanes = 8;
/// Prefetch distances of the forms, in elements; 0: no prefetch.
constexpr int prefetch_ahead[] = {0, 64, 128, 256, 512};

/// Sums in four independent accumulators, because a single one is bound by the latency of
/// additions.
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

/// y = factor x, also in place (x == y).
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

/// Writes whole lines with non-temporal stores, so that y is not read into the caches.
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

/// Every chunk performs `steps` times 12 independent multiply-adds on vectors of register size.
template <class R>
struct MultiplyAdds {
    static constexpr int chains = 12;
    std::int64_t steps;
    double* results;

    template <class Isa>
    [[gnu::always_inline]] inline void rows(Chunk chunk) const noexcept {
        constexpr int width = Isa::vector_bytes / static_cast<int>(sizeof(R));
        typedef R Vector __attribute__((vector_size(Isa::vector_bytes)));
        // Distinct start values, none equal to the fixed point 2; otherwise the compiler could
        // remove chains.
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
        // Unrolled like the loop above, because an index known only at run time would keep the sums
        // in memory.
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
