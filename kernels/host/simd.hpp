// SPDX-License-Identifier: BSD-3-Clause
// SIMD and threads of the host leaves: short vectors of the compiler, one copy of a kernel for each
// instruction set, and a fixed division of the rows among threads.
// Loops that multiply and add and that the compiler should vectorise have the pragma `ivdep`.
// Without it the compiler makes two versions and chooses by the distance of the operands in memory.
// One version may fuse a multiply-add that the other rounds twice; the bits of a result would then
// depend on the place of the operands in memory.
#pragma once

#include <algorithm>
#include <complex>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include <omp.h>

#include "blockvec/processor.hpp"
#include "blockvec/scalar.hpp"

namespace quiver::host {

/// For each instruction set that kernels are compiled for: bytes of a vector register, and number
/// of registers.
struct Baseline {
    static constexpr int vector_bytes = 16;
    static constexpr int registers = 16;
};
struct Avx2 {
    static constexpr int vector_bytes = 32;
    static constexpr int registers = 16;
};
struct Avx512 {
    static constexpr int vector_bytes = 64;
    static constexpr int registers = 32;
};

/// Numbers in a vector register.
template <class Isa, class R>
inline constexpr int lanes_v = Isa::vector_bytes / static_cast<int>(sizeof(R));

/// Rows first .. last - 1: chunk number `index`.
struct Chunk {
    std::int64_t first;
    std::int64_t last;
    int index;
};

#if defined(__x86_64__)
template <class Kernel>
[[gnu::target("avx2,fma"), gnu::noinline]] void run_avx2(const Kernel& kernel, Chunk chunk) {
    kernel.template rows<Avx2>(chunk);
}
template <class Kernel>
[[gnu::target("avx512f,avx512dq,avx512vl,avx512bw,avx2,fma"), gnu::noinline]] void run_avx512(
    const Kernel& kernel, Chunk chunk) {
    kernel.template rows<Avx512>(chunk);
}
template <class Function, class Args>
[[gnu::target("avx2,fma"), gnu::noinline]] void call_avx2(const Args& args) {
    Function::run(args);
}
template <class Function, class Args>
[[gnu::target("avx512f,avx512dq,avx512vl,avx512bw,avx2,fma"), gnu::noinline]] void call_avx512(
    const Args& args) {
    Function::run(args);
}
#endif
template <class Function, class Args>
[[gnu::noinline]] void call_baseline(const Args& args) {
    Function::run(args);
}

/// The [[gnu::always_inline]] Function::run(args), compiled for an instruction set.
template <class Isa, class Function, class Args>
constexpr auto entry() -> void (*)(const Args&) {
#if defined(__x86_64__)
    if constexpr (std::is_same_v<Isa, Avx512>) {
        return call_avx512<Function, Args>;
    } else if constexpr (std::is_same_v<Isa, Avx2>) {
        return call_avx2<Function, Args>;
    }
#endif
    return call_baseline<Function, Args>;
}

/// The number of chunks into which `threads` threads divide the rows. It is below the number of
/// threads if a chunk would have less than 64 KiB to read and write, which takes as long as waking
/// a thread. Number and bounds of the chunks depend on the arguments only, so that sums over them
/// always have the same bits.
inline int chunk_count(int threads, std::int64_t rows, std::size_t bytes_per_row) {
    constexpr double least_bytes = 65536;
    const double most =
        static_cast<double>(rows) * static_cast<double>(bytes_per_row) / least_bytes;
    return std::max(1, static_cast<int>(std::min(static_cast<double>(threads), most)));
}

/// Calls kernel.rows<Isa>(chunk) for this processor; rows is [[gnu::always_inline]] const noexcept.
template <class Kernel>
void run_chunk(const Kernel& kernel, Chunk chunk) {
#if defined(__x86_64__)
    const int bytes = vector_bytes();
    if (bytes == Avx512::vector_bytes) {
        run_avx512(kernel, chunk);
        return;
    }
    if (bytes == Avx2::vector_bytes) {
        run_avx2(kernel, chunk);
        return;
    }
#endif
    kernel.template rows<Baseline>(chunk);
}

/// Calls run(chunk) for all chunks, even if there are fewer threads than chunks. The number of
/// threads is limited to the cores of the process: threads that share one core (of a rank bound to
/// it by the MPI launcher) lose milliseconds at every barrier.
template <class Run>
void for_chunks(int chunks, std::int64_t rows, const Run& run) {
    const int team = chunks > 1 ? std::min(chunks, omp_get_num_procs()) : 1;
    // Do not add the clause if(team > 1) to the pragma. With clang and LLVM's OpenMP,
    // num_threads(1) would then apply to the caller's next parallel region, and OpenBLAS would wait
    // forever for its other threads.
#pragma omp parallel for schedule(static, 1) num_threads(team)
    for (int index = 0; index < chunks; ++index) {
        run(Chunk{rows * index / chunks, rows * (index + 1) / chunks, index});
    }
}

/// run_chunk(kernel, chunk) for all chunks.
template <class Kernel>
void run_chunks(int chunks, std::int64_t rows, const Kernel& kernel) {
    for_chunks(chunks, rows, [&](Chunk chunk) { run_chunk(kernel, chunk); });
}

/// The compiler's vector of `lanes` numbers, or one number.
template <class R, int lanes>
struct VectorOf {
    typedef R type __attribute__((vector_size(lanes * sizeof(R))));
};
template <class R>
struct VectorOf<R, 1> {
    using type = R;
};

/// Loads a vector from an address of any alignment exactly once; the compiler would otherwise
/// repeat the load at every use.
template <class Vector>
[[gnu::always_inline]] inline void load_once(const void* from, Vector& to) {
    Vector value;
    std::memcpy(&value, from, sizeof(Vector));
#if defined(__x86_64__)
    asm("" : "+v"(value));
#endif
    to = value;
}

/// to[l] = lane index[l] of the concatenation of `low` and `high`. clang has the builtin for
/// constant indices only.
template <class Vector, class Indices>
[[gnu::always_inline]] inline void shuffle(const Vector& low, const Vector& high,
                                           const Indices& index, Vector& to) noexcept {
#if defined(__clang__)
    constexpr int lanes = static_cast<int>(sizeof(Vector) / sizeof(low[0]));
    const Vector first = low;
    const Vector second = high;
#pragma GCC unroll 16
    for (int l = 0; l < lanes; ++l) {
        to[l] = index[l] < lanes ? first[index[l]] : second[index[l] - lanes];
    }
#else
    to = __builtin_shuffle(low, high, index);
#endif
}
/// to[l] = from[index[l]].
template <class Vector, class Indices>
[[gnu::always_inline]] inline void shuffle(const Vector& from, const Indices& index,
                                           Vector& to) noexcept {
#if defined(__clang__)
    shuffle(from, from, index, to);
#else
    to = __builtin_shuffle(from, index);
#endif
}

/// sum += factor i v for complex numbers in pairs of lanes.
template <class R, int lanes>
[[gnu::always_inline]] inline void add_times_i(
    typename VectorOf<R, lanes>::type& sum, R factor,
    const typename VectorOf<R, lanes>::type& v) noexcept {
    using Whole = std::conditional_t<sizeof(R) == 4, std::int32_t, std::int64_t>;
    typename VectorOf<Whole, lanes>::type swapped;
    typename VectorOf<R, lanes>::type signed_factor;
#pragma GCC unroll 16
    for (int l = 0; l < lanes; ++l) {
        swapped[l] = static_cast<Whole>(l ^ 1);
        signed_factor[l] = l % 2 == 0 ? -factor : factor;
    }
    typename VectorOf<R, lanes>::type other;
    shuffle(v, swapped, other);
    sum += signed_factor * other;
}

/// `width` numbers (a power of two) in vector registers of at most `bytes` bytes.
template <class R, int width, int bytes>
struct Pack {
    static constexpr int lanes = std::min<int>(width, bytes / static_cast<int>(sizeof(R)));
    static constexpr int vectors = width / lanes;
    using Vector = typename VectorOf<R, lanes>::type;

    Vector part[vectors];

    [[gnu::always_inline]] inline void zero() {
#pragma GCC unroll 8
        for (int i = 0; i < vectors; ++i) {
            part[i] = Vector{};
        }
    }
    [[gnu::always_inline]] inline void load(const R* from) {
#pragma GCC unroll 8
        for (int i = 0; i < vectors; ++i) {
            std::memcpy(&part[i], from + i * lanes, sizeof(Vector));
        }
    }
    [[gnu::always_inline]] inline void store(R* to) const {
#pragma GCC unroll 8
        for (int i = 0; i < vectors; ++i) {
            std::memcpy(to + i * lanes, &part[i], sizeof(Vector));
        }
    }
    /// *this += other
    [[gnu::always_inline]] inline void add(const Pack& other) {
#pragma GCC unroll 8
        for (int i = 0; i < vectors; ++i) {
            part[i] += other.part[i];
        }
    }
    /// *this += factor * other
    [[gnu::always_inline]] inline void add_product(R factor, const Pack& other) {
#pragma GCC unroll 8
        for (int i = 0; i < vectors; ++i) {
            part[i] += factor * other.part[i];
        }
    }
    /// *this *= factor
    [[gnu::always_inline]] inline void scale(R factor) {
#pragma GCC unroll 8
        for (int i = 0; i < vectors; ++i) {
            part[i] *= factor;
        }
    }
};

/// Real numbers per element.
template <class T>
inline constexpr int reals_v = is_complex_v<T> ? 2 : 1;

/// A complex array as the array of its alternating real and imaginary parts.
template <class T>
const real_t<T>* as_reals(const T* values) {
    return reinterpret_cast<const real_t<T>*>(values);
}
template <class T>
real_t<T>* as_reals(T* values) requires(!std::is_const_v<T>) {
    return reinterpret_cast<real_t<T>*>(values);
}

}  // namespace quiver::host
