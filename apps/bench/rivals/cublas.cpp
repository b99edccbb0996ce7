// SPDX-License-Identifier: BSD-3-Clause
#include <bit>
#include <string>

#include <cublas_v2.h>

#include "apps/bench/rivals/rival.hpp"
#include "blockvec/error.hpp"
#include "blockvec/shared_library.hpp"

namespace quiver::apps::bench {
namespace {

class CuBlas final : public Rival,
                     public Gemm,
                     public MixedGemm,
                     public Batched,
                     public BatchedSolve {
  public:
    explicit CuBlas(Context& ctx) {
        check(library_.find<decltype(cublasCreate_v2)>("cublasCreate_v2")(&handle_),
              "cublasCreate");
        check(library_.find<decltype(cublasSetStream_v2)>("cublasSetStream_v2")(handle_,
                                                                                ctx.stream()),
              "cublasSetStream");
        int version = 0;
        check(
            library_.find<decltype(cublasGetVersion_v2)>("cublasGetVersion_v2")(handle_, &version),
            "cublasGetVersion");
        warm_up(ctx);
        version_ = std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) +
                   "." + std::to_string(version % 100);
    }
    CuBlas(const CuBlas&) = delete;
    CuBlas& operator=(const CuBlas&) = delete;
    ~CuBlas() override {
        static_cast<void>(library_.find<decltype(cublasDestroy_v2)>("cublasDestroy_v2")(handle_));
    }

    const char* name() const override { return "cublas"; }
    std::string version() const override { return version_; }
    Gemm* gemm() override { return this; }
    Batched* batched_lu() override { return this; }
    void run(const BatchedCall<float>& call) override { factor<float>(sgetrf_, call); }
    void run(const BatchedCall<double>& call) override { factor<double>(dgetrf_, call); }
    void run(const BatchedCall<std::complex<float>>& call) override {
        factor<cuComplex>(cgetrf_, call);
    }
    void run(const BatchedCall<std::complex<double>>& call) override {
        factor<cuDoubleComplex>(zgetrf_, call);
    }
    BatchedSolve* batched_solve() override { return this; }
    void run(const BatchedSolveCall<float>& call) override { solve<float>(sgetrs_, sgetri_, call); }
    void run(const BatchedSolveCall<double>& call) override {
        solve<double>(dgetrs_, dgetri_, call);
    }
    void run(const BatchedSolveCall<std::complex<float>>& call) override {
        solve<cuComplex>(cgetrs_, cgetri_, call);
    }
    void run(const BatchedSolveCall<std::complex<double>>& call) override {
        solve<cuDoubleComplex>(zgetrs_, zgetri_, call);
    }
    MixedGemm* mixed_gemm() override { return this; }
    void run(const MixedGemmCall<half_t>& call) override { multiply_mixed(CUDA_R_16F, call); }
    void run(const MixedGemmCall<bfloat16_t>& call) override { multiply_mixed(CUDA_R_16BF, call); }
    void run(const GemmCall<float>& call) override { multiply<float>(sgemm_, call); }
    void run(const GemmCall<double>& call) override { multiply<double>(dgemm_, call); }
    void run(const GemmCall<std::complex<float>>& call) override {
        multiply<cuComplex>(cgemm_, call);
    }
    void run(const GemmCall<std::complex<double>>& call) override {
        multiply<cuDoubleComplex>(zgemm_, call);
    }

  private:
    /// Multiplies once in each type, because cuBLAS loads its kernels at the first product.
    /// Otherwise the first timed product would look slow.
    void warm_up(Context& ctx) {
        const Scratch scratch = ctx.scratch(MemoryKind::device, 16);
        const auto multiply_one = [&](auto zero) {
            using T = decltype(zero);
            const BlockView<T> one(scratch.as<T>(), 1, 1, 1, Place::device);
            for (const bool adjoint : {false, true}) {
                run(GemmCall<T>{adjoint, zero, one, one, zero, one});
            }
        };
        multiply_one(0.0f);
        multiply_one(0.0);
        multiply_one(std::complex<float>());
        multiply_one(std::complex<double>());
        const auto multiply_short = [&](auto zero) {
            using T = decltype(zero);
            const BlockView<T> one(scratch.as<T>(), 1, 1, 1, Place::device);
            const BlockView<float> sum(scratch.as<float>() + 1, 1, 1, 1, Place::device);
            for (const bool transposed : {false, true}) {
                run(MixedGemmCall<T>{transposed, one, one, sum});
            }
        };
        multiply_short(half_t{});
        multiply_short(bfloat16_t{});
        ctx.synchronize();
    }

    void check(cublasStatus_t status, const char* what) const {
        if (status != CUBLAS_STATUS_SUCCESS) {
            const char* const name =
                library_.find<decltype(cublasGetStatusName)>("cublasGetStatusName")(status);
            throw DeviceError(std::string(what) + ": " + name);
        }
    }

    /// A row-major array is the column-major array of the transpose. C = A B is C^T = B^T A^T: the
    /// same arrays in the other order. C = A^H B is C^T = B^T conj(A), and conj(A) is the adjoint
    /// of the column-major array of A. The result is C in row-major order, which is our order.
    template <class V, class Function, class T>
    void multiply(Function* gemm, const GemmCall<T>& call) {
        // cuBLAS expects a cuDoubleComplex at a multiple of 16 bytes.
        const V alpha = std::bit_cast<V>(call.alpha);
        const V beta = std::bit_cast<V>(call.beta);
        check(gemm(handle_, CUBLAS_OP_N, call.adjoint ? CUBLAS_OP_C : CUBLAS_OP_N,
                   static_cast<int>(call.c.cols), static_cast<int>(call.c.rows),
                   static_cast<int>(call.b.rows), &alpha, reinterpret_cast<const V*>(call.b.data),
                   static_cast<int>(call.b.ld), reinterpret_cast<const V*>(call.a.data),
                   static_cast<int>(call.a.ld), &beta, reinterpret_cast<V*>(call.c.data),
                   static_cast<int>(call.c.ld)),
              "cublas gemm");
    }

    template <class V, class Function, class T>
    void factor(Function* getrf, const BatchedCall<T>& call) {
        check(getrf(handle_, call.n, reinterpret_cast<V* const*>(call.pointers), call.n,
                    call.pivots, call.status, call.count),
              "cublas getrfBatched");
    }

    template <class V, class Solve, class Invert, class T>
    void solve(Solve* getrs, Invert* getri, const BatchedSolveCall<T>& call) {
        const auto* const factors = reinterpret_cast<const V* const*>(call.factors);
        auto* const b = reinterpret_cast<V* const*>(call.b);
        if (call.columns == 0) {
            check(getri(handle_, call.n, factors, call.n, call.pivots, b, call.n, call.status,
                        call.count),
                  "cublas getriBatched");
            return;
        }
        int info = 0;
        check(getrs(handle_, CUBLAS_OP_N, call.n, call.columns, factors, call.n, call.pivots, b,
                    call.n, &info, call.count),
              "cublas getrsBatched");
    }

    /// Like multiply, with sums in float.
    template <class T>
    void multiply_mixed(cudaDataType_t type, const MixedGemmCall<T>& call) {
        const float alpha = 1;
        const float beta = 0;
        check(gemm_ex_(handle_, CUBLAS_OP_N, call.transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
                       static_cast<int>(call.c.cols), static_cast<int>(call.c.rows),
                       static_cast<int>(call.b.rows), &alpha, call.b.data, type,
                       static_cast<int>(call.b.ld), call.a.data, type, static_cast<int>(call.a.ld),
                       &beta, call.c.data, CUDA_R_32F, static_cast<int>(call.c.ld),
                       CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
              "cublasGemmEx");
    }

    SharedLibrary library_{"libcublas.so." + std::to_string(CUBLAS_VER_MAJOR)};
    cublasHandle_t handle_ = nullptr;
    std::string version_;
    decltype(cublasSgemm_v2)* sgemm_ = library_.find<decltype(cublasSgemm_v2)>("cublasSgemm_v2");
    decltype(cublasDgemm_v2)* dgemm_ = library_.find<decltype(cublasDgemm_v2)>("cublasDgemm_v2");
    decltype(cublasCgemm_v2)* cgemm_ = library_.find<decltype(cublasCgemm_v2)>("cublasCgemm_v2");
    // The type of the C function is written out, because the C++ header overloads its name for
    // older compute types.
    using GemmEx = cublasStatus_t(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int,
                                  int, const void*, const void*, cudaDataType, int, const void*,
                                  cudaDataType, int, const void*, void*, cudaDataType, int,
                                  cublasComputeType_t, cublasGemmAlgo_t);
    GemmEx* gemm_ex_ = library_.find<GemmEx>("cublasGemmEx");
    decltype(cublasZgemm_v2)* zgemm_ = library_.find<decltype(cublasZgemm_v2)>("cublasZgemm_v2");
    decltype(cublasSgetrfBatched)* sgetrf_ =
        library_.find<decltype(cublasSgetrfBatched)>("cublasSgetrfBatched");
    decltype(cublasDgetrfBatched)* dgetrf_ =
        library_.find<decltype(cublasDgetrfBatched)>("cublasDgetrfBatched");
    decltype(cublasCgetrfBatched)* cgetrf_ =
        library_.find<decltype(cublasCgetrfBatched)>("cublasCgetrfBatched");
    decltype(cublasZgetrfBatched)* zgetrf_ =
        library_.find<decltype(cublasZgetrfBatched)>("cublasZgetrfBatched");
    decltype(cublasSgetrsBatched)* sgetrs_ =
        library_.find<decltype(cublasSgetrsBatched)>("cublasSgetrsBatched");
    decltype(cublasDgetrsBatched)* dgetrs_ =
        library_.find<decltype(cublasDgetrsBatched)>("cublasDgetrsBatched");
    decltype(cublasCgetrsBatched)* cgetrs_ =
        library_.find<decltype(cublasCgetrsBatched)>("cublasCgetrsBatched");
    decltype(cublasZgetrsBatched)* zgetrs_ =
        library_.find<decltype(cublasZgetrsBatched)>("cublasZgetrsBatched");
    decltype(cublasSgetriBatched)* sgetri_ =
        library_.find<decltype(cublasSgetriBatched)>("cublasSgetriBatched");
    decltype(cublasDgetriBatched)* dgetri_ =
        library_.find<decltype(cublasDgetriBatched)>("cublasDgetriBatched");
    decltype(cublasCgetriBatched)* cgetri_ =
        library_.find<decltype(cublasCgetriBatched)>("cublasCgetriBatched");
    decltype(cublasZgetriBatched)* zgetri_ =
        library_.find<decltype(cublasZgetriBatched)>("cublasZgetriBatched");
};

}  // namespace

std::unique_ptr<Rival> make_cublas(Context& ctx) {
    return std::make_unique<CuBlas>(ctx);
}

}  // namespace quiver::apps::bench
