// SPDX-License-Identifier: BSD-3-Clause
// Double-precision products of a warp on the tensor cores.
#pragma once

namespace quiver {

/// D += A B for A 16 x (4 STEPS), B (4 STEPS) x 8, D 16 x 8. With g = lane / 4 and t = lane % 4, a
/// lane holds a[2 s + h] = A(g + 8 h, t + 4 s), b[s] = B(t + 4 s, g), d[2 h + e] = D(g + 8 h, 2 t +
/// e). PTX ISA, mma.m16n8k4/k8/k16 for .f64.
template <int STEPS>
void mma(double (&d)[4], const double (&a)[2 * STEPS], const double (&b)[STEPS]) {
#if __CUDA_ARCH__ >= 900
    if constexpr (STEPS == 1) {
        asm("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5}, {%6}, "
            "{%0,%1,%2,%3};"
            : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
            : "d"(a[0]), "d"(a[1]), "d"(b[0]));
    } else if constexpr (STEPS == 2) {
        asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
            "{%8,%9}, {%0,%1,%2,%3};"
            : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
            : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
    } else {
        static_assert(STEPS == 4);
        asm("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, "
            "{%4,%5,%6,%7,%8,%9,%10,%11}, {%12,%13,%14,%15}, {%0,%1,%2,%3};"
            : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
            : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(a[4]), "d"(a[5]), "d"(a[6]),
              "d"(a[7]), "d"(b[0]), "d"(b[1]), "d"(b[2]), "d"(b[3]));
    }
#else
    // On sm_80: two 8 x 8 halves with a depth of four per instruction.
#pragma unroll
    for (int s = 0; s < STEPS; ++s) {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
                : "+d"(d[2 * h]), "+d"(d[2 * h + 1])
                : "d"(a[2 * s + h]), "d"(b[s]));
        }
    }
#endif
}

/// D = A B + C, without a copy of C.
template <int STEPS>
void mma(double (&d)[4], const double (&a)[2 * STEPS], const double (&b)[STEPS],
         const double (&c)[4]) {
#if __CUDA_ARCH__ >= 900
    if constexpr (STEPS == 1) {
        asm("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5}, {%6}, "
            "{%7,%8,%9,%10};"
            : "=d"(d[0]), "=d"(d[1]), "=d"(d[2]), "=d"(d[3])
            : "d"(a[0]), "d"(a[1]), "d"(b[0]), "d"(c[0]), "d"(c[1]), "d"(c[2]), "d"(c[3]));
        return;
    } else if constexpr (STEPS == 2) {
        asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
            "{%8,%9}, {%10,%11,%12,%13};"
            : "=d"(d[0]), "=d"(d[1]), "=d"(d[2]), "=d"(d[3])
            : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]), "d"(c[0]),
              "d"(c[1]), "d"(c[2]), "d"(c[3]));
        return;
    } else {
        asm("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, "
            "{%4,%5,%6,%7,%8,%9,%10,%11}, {%12,%13,%14,%15}, {%16,%17,%18,%19};"
            : "=d"(d[0]), "=d"(d[1]), "=d"(d[2]), "=d"(d[3])
            : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(a[4]), "d"(a[5]), "d"(a[6]),
              "d"(a[7]), "d"(b[0]), "d"(b[1]), "d"(b[2]), "d"(b[3]), "d"(c[0]), "d"(c[1]),
              "d"(c[2]), "d"(c[3]));
        return;
    }
#endif
#pragma unroll
    for (int q = 0; q < 4; ++q) {
        d[q] = c[q];
    }
    mma<STEPS>(d, a, b);
}

/// The sums of COUNT products, D of mma for each.
template <int COUNT>
void clear_sums(double (&sums)[COUNT][4]) {
#pragma unroll
    for (int e = 0; e < COUNT; ++e) {
#pragma unroll
        for (int q = 0; q < 4; ++q) {
            sums[e][q] = 0;
        }
    }
}
/// A lane's sum number `entry`: one double, or for a complex T two neighbouring ones.
template <class T, int COUNT>
T sum_of(const double (&sums)[COUNT][4], int entry) {
    constexpr int parts = sizeof(T) / sizeof(double);
    const int e = entry * parts;
    if constexpr (parts == 1) {
        return sums[e / 4][e % 4];
    } else {
        return {sums[e / 4][e % 4], sums[e / 4][e % 4 + 1]};
    }
}

}  // namespace quiver
