// SPDX-License-Identifier: BSD-3-Clause
// The product of one compressed row with a contiguous column, by AVX-512: eight entries at a time
// (four complex doubles), of which a mask selects those of the row. Most rows of graphs are shorter
// than that: they need neither a loop nor its branch, which is hard to predict for rows of
// different lengths, and the sums of long rows do not wait for each other.
#pragma once

#if defined(__x86_64__)

#include <algorithm>
#include <complex>
#include <cstdint>

#include <immintrin.h>

namespace quiver::host {

// A macro, because an attribute takes no constant.
#define QUIVER_AVX512 gnu::target("avx512f,avx512dq,avx512vl,avx512bw,avx2,fma")

/// The first `count` of 8 lanes; all for a larger count.
[[QUIVER_AVX512, gnu::always_inline]] inline __mmask8 first_lanes(std::int64_t count) noexcept {
    return static_cast<__mmask8>((1U << std::min<std::int64_t>(count, 8)) - 1);
}

/// The sums of the even and of the odd lanes.
[[QUIVER_AVX512, gnu::always_inline]] inline __m128d two_sums(const __m512d& lanes) noexcept {
    // With a mask of all lanes, here and below: GCC 12 warns of the instruction without a mask.
    const __m256d four = _mm256_add_pd(_mm512_maskz_extractf64x4_pd(0xff, lanes, 0),
                                       _mm512_maskz_extractf64x4_pd(0xff, lanes, 1));
    return _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
}

/// The sum of value[e] x[column[e]] for e = 0 .. count - 1. `checked`: entries whose column is not
/// below `most` are omitted.
template <bool checked>
[[QUIVER_AVX512, gnu::always_inline]] inline double gathered_row(const std::int32_t* column,
                                                                 const double* value,
                                                                 std::int64_t count,
                                                                 const double* x,
                                                                 std::uint32_t most) noexcept {
    __m512d sum = _mm512_setzero_pd();
    std::int64_t at = 0;
    do {
        __mmask8 lanes = first_lanes(count - at);
        const __m256i from = _mm256_maskz_loadu_epi32(lanes, column + at);
        if constexpr (checked) {
            lanes = _mm256_mask_cmplt_epu32_mask(lanes, from,
                                                 _mm256_set1_epi32(static_cast<int>(most)));
        }
        const __m512d gathered = _mm512_mask_i32gather_pd(_mm512_setzero_pd(), lanes, from, x, 8);
        sum = _mm512_fmadd_pd(_mm512_maskz_loadu_pd(lanes, value + at), gathered, sum);
        at += 8;
    } while (at < count);
    const __m128d two = two_sums(sum);
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}

template <bool checked>
[[QUIVER_AVX512, gnu::always_inline]] inline float gathered_row(const std::int32_t* column,
                                                                const float* value,
                                                                std::int64_t count, const float* x,
                                                                std::uint32_t most) noexcept {
    __m256 sum = _mm256_setzero_ps();
    std::int64_t at = 0;
    do {
        __mmask8 lanes = first_lanes(count - at);
        const __m256i from = _mm256_maskz_loadu_epi32(lanes, column + at);
        if constexpr (checked) {
            lanes = _mm256_mask_cmplt_epu32_mask(lanes, from,
                                                 _mm256_set1_epi32(static_cast<int>(most)));
        }
        const __m256 gathered = _mm256_mmask_i32gather_ps(_mm256_setzero_ps(), lanes, from, x, 4);
        sum = _mm256_fmadd_ps(_mm256_maskz_loadu_ps(lanes, value + at), gathered, sum);
        at += 8;
    } while (at < count);
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(sum), _mm256_extractf128_ps(sum, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

template <bool checked>
[[QUIVER_AVX512, gnu::always_inline]] inline std::complex<float> gathered_row(
    const std::int32_t* column, const std::complex<float>* value, std::int64_t count,
    const std::complex<float>* x, std::uint32_t most) noexcept {
    // X times the real and times the imaginary parts of the values.
    __m512 real = _mm512_setzero_ps();
    __m512 imaginary = _mm512_setzero_ps();
    std::int64_t at = 0;
    do {
        __mmask8 lanes = first_lanes(count - at);
        const __m256i from = _mm256_maskz_loadu_epi32(lanes, column + at);
        if constexpr (checked) {
            lanes = _mm256_mask_cmplt_epu32_mask(lanes, from,
                                                 _mm256_set1_epi32(static_cast<int>(most)));
        }
        // A complex float has the size of a double.
        const __m512 gathered =
            _mm512_castpd_ps(_mm512_mask_i32gather_pd(_mm512_setzero_pd(), lanes, from, x, 8));
        const __m512 factor =
            _mm512_castpd_ps(_mm512_castsi512_pd(_mm512_maskz_loadu_epi64(lanes, value + at)));
        real = _mm512_fmadd_ps(_mm512_maskz_moveldup_ps(0xffff, factor), gathered, real);
        imaginary = _mm512_fmadd_ps(_mm512_maskz_movehdup_ps(0xffff, factor), gathered, imaginary);
        at += 8;
    } while (at < count);
    // real + i imaginary: the lanes of a pair change places, and the first one its sign.
    const __m512 sum =
        _mm512_fmaddsub_ps(_mm512_set1_ps(1), real,
                           _mm512_maskz_permute_ps(0xffff, imaginary, _MM_SHUFFLE(2, 3, 0, 1)));
    const __m256 four = _mm256_add_ps(_mm512_maskz_extractf32x8_ps(0xff, sum, 0),
                                      _mm512_maskz_extractf32x8_ps(0xff, sum, 1));
    const __m128 two = _mm_add_ps(_mm256_castps256_ps128(four), _mm256_extractf128_ps(four, 1));
    const __m128 one = _mm_add_ps(two, _mm_movehl_ps(two, two));
    return {_mm_cvtss_f32(one), _mm_cvtss_f32(_mm_movehdup_ps(one))};
}

template <bool checked>
[[QUIVER_AVX512, gnu::always_inline]] inline std::complex<double> gathered_row(
    const std::int32_t* column, const std::complex<double>* value, std::int64_t count,
    const std::complex<double>* x, std::uint32_t most) noexcept {
    __m512d real = _mm512_setzero_pd();
    __m512d imaginary = _mm512_setzero_pd();
    std::int64_t at = 0;
    do {
        __mmask8 entries = first_lanes(std::min<std::int64_t>(count - at, 4));
        const __m128i from = _mm_maskz_loadu_epi32(entries, column + at);
        if constexpr (checked) {
            entries =
                _mm_mask_cmplt_epu32_mask(entries, from, _mm_set1_epi32(static_cast<int>(most)));
        }
        // Two lanes for each entry: its column and its mask twice.
        constexpr __mmask8 all = 0xff;
        const __m256i twice = _mm256_maskz_permutexvar_epi32(
            all, _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3), _mm256_castsi128_si256(from));
        const __m512i of_lane = _mm512_add_epi64(
            _mm512_maskz_slli_epi64(all, _mm512_maskz_cvtepu32_epi64(all, twice), 1),
            _mm512_setr_epi64(0, 1, 0, 1, 0, 1, 0, 1));
        const __mmask8 lanes = _mm512_test_epi64_mask(_mm512_set1_epi64(entries),
                                                      _mm512_setr_epi64(1, 1, 2, 2, 4, 4, 8, 8));
        const __m512d gathered =
            _mm512_mask_i64gather_pd(_mm512_setzero_pd(), lanes, of_lane, x, 8);
        const __m512d factor = _mm512_maskz_loadu_pd(lanes, value + at);
        real = _mm512_fmadd_pd(_mm512_maskz_movedup_pd(all, factor), gathered, real);
        imaginary =
            _mm512_fmadd_pd(_mm512_maskz_permute_pd(all, factor, 0xff), gathered, imaginary);
        at += 4;
    } while (at < count);
    const __m512d sum =
        _mm512_fmaddsub_pd(_mm512_set1_pd(1), real, _mm512_maskz_permute_pd(0xff, imaginary, 0x55));
    const __m128d one = two_sums(sum);
    return {_mm_cvtsd_f64(one), _mm_cvtsd_f64(_mm_unpackhi_pd(one, one))};
}

}  // namespace quiver::host

#endif
