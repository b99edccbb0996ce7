// SPDX-License-Identifier: BSD-3-Clause
// cuBLAS, NVIDIA's library of dense products, opened at run time: the build needs neither its
// header nor the library.
#pragma once

#include <complex>
#include <cstdint>
#include <optional>
#include <string>

#include "blockvec/context.hpp"
#include "blockvec/shared_library.hpp"
#include "kernels/leaf_args.hpp"
#include "kernels/tuning.hpp"

namespace quiver::cuda {

/// The part of the interface of cuBLAS 12 and 13 (cublas_v2.h) that is used here, with 64-bit
/// integers. Not in an unnamed namespace: see NcclLibrary.
struct CublasLibrary {
    /// Loads the file `name`. Throws UnsupportedError.
    explicit CublasLibrary(const std::string& name) : library(name) {}

    // cublasOperation_t
    static constexpr int plain = 0;
    static constexpr int adjoint = 2;

    using Create = int(void** handle);
    using Destroy = int(void* handle);
    using SetStream = int(void* handle, Stream stream);
    template <class T>
    using Gemm = int(void* handle, int op_a, int op_b, std::int64_t m, std::int64_t n,
                     std::int64_t k, const T* alpha, const T* a, std::int64_t lda, const T* b,
                     std::int64_t ldb, const T* beta, T* c, std::int64_t ldc);

    template <class T>
    Gemm<T>* gemm() const;

    SharedLibrary library;
    Create* create = library.find<Create>("cublasCreate_v2");
    Destroy* destroy = library.find<Destroy>("cublasDestroy_v2");
    SetStream* set_stream = library.find<SetStream>("cublasSetStream_v2");
    Gemm<float>* sgemm = library.find<Gemm<float>>("cublasSgemm_v2_64");
    Gemm<double>* dgemm = library.find<Gemm<double>>("cublasDgemm_v2_64");
    Gemm<std::complex<float>>* cgemm = library.find<Gemm<std::complex<float>>>("cublasCgemm_v2_64");
    Gemm<std::complex<double>>* zgemm =
        library.find<Gemm<std::complex<double>>>("cublasZgemm_v2_64");
};

/// The cuBLAS of this process, and its handle for the Context's GPU and stream; a service of the
/// Context. The loader's path is searched for libcublas.so.13 and libcublas.so.12, or QUIVER_CUBLAS
/// names the file (`none`: no cuBLAS).
class Cublas {
  public:
    /// Throws the UnsupportedError or DeviceError that prevents the use of a file that
    /// QUIVER_CUBLAS names.
    explicit Cublas(Context& ctx);
    Cublas(const Cublas&) = delete;
    Cublas& operator=(const Cublas&) = delete;
    ~Cublas();

    bool is_available() const { return handle_ != nullptr; }
    /// True if a product belongs to cuBLAS, provided that it is available: it is the fastest for
    /// the shape (prefers_cublas_tsmttsm, prefers_cublas_tsmm), A is not B and X is not Y, there is
    /// no D, complex double operands start at multiples of 16 bytes, and the choice of plans is
    /// that of the library.
    template <class T>
    static bool serves(const PlanChoice& choice, const TsmttsmArgs<T>& args);
    template <class T>
    static bool serves(const PlanChoice& choice, const TsmmArgs<T>& args);
    /// The cuBLAS for a product that it serves; null for others, or if there is none. Loads the
    /// library only for products that it serves.
    template <class T>
    static const Cublas* for_product(Context& ctx, const TsmttsmArgs<T>& args);
    template <class T>
    static const Cublas* for_product(Context& ctx, const TsmmArgs<T>& args);

    /// Throws DeviceError. Two equal calls on the same GPU model give the same bits.
    template <class T>
    void tsmttsm(const TsmttsmArgs<T>& args) const;
    template <class T>
    void tsmm(const TsmmArgs<T>& args) const;

  private:
    void open(Context& ctx, const std::string& file);
    void close();

    std::optional<CublasLibrary> library_;
    void* handle_ = nullptr;
};

}  // namespace quiver::cuda
