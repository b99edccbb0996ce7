// SPDX-License-Identifier: BSD-3-Clause
// Libraries that are compared with ours in the same run on the same operands.
#pragma once

#include <complex>
#include <memory>
#include <string>
#include <vector>

#include "blockvec/context.hpp"
#include "blockvec/view.hpp"

namespace quiver::apps::bench {

/// C = alpha A B + beta C, or with A^H instead of A, all row-major: the general product that
/// corresponds to our products of tall & skinny matrices. Every dimension and stride fits in an
/// int.
template <class T>
struct GemmCall {
    bool adjoint;
    T alpha;
    BlockView<const T> a;
    BlockView<const T> b;
    T beta;
    BlockView<T> c;
};

class Gemm {
  public:
    virtual ~Gemm() = default;
    virtual void run(const GemmCall<float>& call) = 0;
    virtual void run(const GemmCall<double>& call) = 0;
    virtual void run(const GemmCall<std::complex<float>>& call) = 0;
    virtual void run(const GemmCall<std::complex<double>>& call) = 0;
};

/// C = A B or A^T B of blocks in half precision or bfloat16, C in float.
template <class T>
struct MixedGemmCall {
    bool transposed;
    BlockView<const T> a;
    BlockView<const T> b;
    BlockView<float> c;
};

class MixedGemm {
  public:
    virtual ~MixedGemm() = default;
    virtual void run(const MixedGemmCall<half_t>& call) = 0;
    virtual void run(const MixedGemmCall<bfloat16_t>& call) = 0;
};

/// Y = A X with A in compressed rows with 32-bit indices, all arrays in the Context's place.
template <class T>
struct SpmmCall {
    std::int64_t nonzeros;
    const std::int32_t* row_start;
    const std::int32_t* column;
    const T* value;
    BlockView<const T> x;
    BlockView<T> y;
};

class Spmm {
  public:
    virtual ~Spmm() = default;
    virtual void run(const SpmmCall<float>& call) = 0;
    virtual void run(const SpmmCall<double>& call) = 0;
    virtual void run(const SpmmCall<std::complex<float>>& call) = 0;
    virtual void run(const SpmmCall<std::complex<double>>& call) = 0;
};

/// Factors `count` column-major n x n matrices (ld = n) at the addresses in `pointers`, in place.
/// `pivots` (count x n, numbered from 1) is null for Cholesky, which factors the lower triangles.
/// All arrays are in the Context's place.
template <class T>
struct BatchedCall {
    int n;
    int count;
    T* const* pointers;
    int* pivots;
    int* status;
};

class Batched {
  public:
    virtual ~Batched() = default;
    virtual void run(const BatchedCall<float>& call) = 0;
    virtual void run(const BatchedCall<double>& call) = 0;
    virtual void run(const BatchedCall<std::complex<float>>& call) = 0;
    virtual void run(const BatchedCall<std::complex<double>>& call) = 0;
};

/// B = A^-1 B of `columns` columns or, if `columns` is 0, B = A^-1, for `count` column-major n x n
/// matrices A (ld = n), from their LU factors. `pivots` (count x n) are numbered from 1. `status`:
/// one number per matrix. All arrays are in the Context's place.
template <class T>
struct BatchedSolveCall {
    int n;
    int columns;
    int count;
    T* const* factors;
    const int* pivots;
    T* const* b;
    int* status;
};

class BatchedSolve {
  public:
    virtual ~BatchedSolve() = default;
    virtual void run(const BatchedSolveCall<float>& call) = 0;
    virtual void run(const BatchedSolveCall<double>& call) = 0;
    virtual void run(const BatchedSolveCall<std::complex<float>>& call) = 0;
    virtual void run(const BatchedSolveCall<std::complex<double>>& call) = 0;
};

/// X = Q R, where Q overwrites X. X is in the Context's place, R (n x n) in host memory.
template <class T>
struct QrCall {
    BlockView<T> x;
    BlockView<T> r;
};

class Qr {
  public:
    virtual ~Qr() = default;
    virtual void run(const QrCall<float>& call) = 0;
    virtual void run(const QrCall<double>& call) = 0;
    virtual void run(const QrCall<std::complex<float>>& call) = 0;
    virtual void run(const QrCall<std::complex<double>>& call) = 0;
};

/// A library and its operations. The functions return null for an operation that it lacks.
class Rival {
  public:
    virtual ~Rival() = default;
    /// The name in `--rivals` and in the column `library`.
    virtual const char* name() const = 0;
    virtual std::string version() const = 0;
    virtual Gemm* gemm() { return nullptr; }
    virtual MixedGemm* mixed_gemm() { return nullptr; }
    virtual Spmm* spmm() { return nullptr; }
    virtual Qr* qr() { return nullptr; }
    virtual Batched* batched_lu() { return nullptr; }
    virtual Batched* batched_cholesky() { return nullptr; }
    virtual BatchedSolve* batched_solve() { return nullptr; }
};

using Rivals = std::vector<std::unique_ptr<Rival>>;

/// The rivals of a list such as "openblas,eigen". They use as many threads as the Context, and its
/// stream. Throws InputError for an unknown name or a library for the other place, and
/// UnsupportedError for a library that this build or machine lacks.
Rivals make_rivals(Context& ctx, const std::string& list);

/// Throws InputError for an unknown name; an empty list is allowed.
void check_rivals(const std::string& list);

// Each function has its own file. A build without the library uses a file *_none.cpp instead.
std::unique_ptr<Rival> make_cublas(Context& ctx);
std::unique_ptr<Rival> make_cusparse(Context& ctx);
std::unique_ptr<Rival> make_cusolver(Context& ctx);
std::unique_ptr<Rival> make_openblas(Context& ctx);
std::unique_ptr<Rival> make_eigen(Context& ctx);

}  // namespace quiver::apps::bench
