// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/cuda/cublas.hpp"

#include <initializer_list>
#include <utility>
#include <vector>

#include "blockvec/error.hpp"
#include "blockvec/scalar_list.hpp"
#include "kernels/cuda/plan.hpp"
#include "kernels/cuda/planner.hpp"

namespace quiver::cuda {
namespace {

void require_cublas(int status, const char* what) {
    if (status != 0) {
        throw DeviceError(std::string(what) + ": status " + std::to_string(status) +
                          " (QUIVER_CUBLAS=none uses the kernels of this library)");
    }
}

std::vector<std::string> cublas_files() {
    return library_files("QUIVER_CUBLAS", {"libcublas.so.13", "libcublas.so.12"});
}

/// cuBLAS expects complex double operands at multiples of 16 bytes.
template <class T>
bool are_aligned(std::initializer_list<const T*> operands) {
    for (const T* operand : operands) {
        if (reinterpret_cast<std::uintptr_t>(operand) % sizeof(T) != 0) {
            return false;
        }
    }
    return true;
}

bool is_the_librarys(const PlanChoice& choice) {
    return choice.plan.empty() && choice.tuned && !choice.exact &&
           choice.reduction == Reduction::reproducible;
}

/// The Context's cuBLAS if it serves a product of at least one row.
template <class Args>
const Cublas* cublas_for(Context& ctx, const Args& args) {
    if (args.rows == 0 || !Cublas::serves(ctx.service<Planner>().choice(), args)) {
        return nullptr;
    }
    const Cublas& cublas = ctx.service<Cublas>();
    return cublas.is_available() ? &cublas : nullptr;
}

}  // namespace

template <>
CublasLibrary::Gemm<float>* CublasLibrary::gemm<float>() const {
    return sgemm;
}
template <>
CublasLibrary::Gemm<double>* CublasLibrary::gemm<double>() const {
    return dgemm;
}
template <>
CublasLibrary::Gemm<std::complex<float>>* CublasLibrary::gemm<std::complex<float>>() const {
    return cgemm;
}
template <>
CublasLibrary::Gemm<std::complex<double>>* CublasLibrary::gemm<std::complex<double>>() const {
    return zgemm;
}

Cublas::Cublas(Context& ctx) {
    const std::vector<std::string> files = cublas_files();
    for (const std::string& file : files) {
        try {
            open(ctx, file);
            return;
        } catch (const Error&) {
            if (files.size() == 1) {
                throw;
            }
            // Without any version, the kernels of this library compute all products.
        }
    }
}

void Cublas::open(Context& ctx, const std::string& file) {
    library_.emplace(file);
    try {
        require_cublas(library_->create(&handle_), "cublasCreate");
        require_cublas(library_->set_stream(handle_, ctx.stream()), "cublasSetStream");
    } catch (const Error&) {
        close();
        throw;
    }
}

void Cublas::close() {
    if (handle_ != nullptr) {
        static_cast<void>(library_->destroy(std::exchange(handle_, nullptr)));
    }
}

Cublas::~Cublas() {
    close();
}

template <class T>
bool Cublas::serves(const PlanChoice& choice, const TsmttsmArgs<T>& args) {
    return args.a != args.b && prefers_cublas_tsmttsm(dtype_v<T>, args.m, args.n) &&
           is_the_librarys(choice) && are_aligned<T>({args.a, args.b, args.c});
}

template <class T>
bool Cublas::serves(const PlanChoice& choice, const TsmmArgs<T>& args) {
    return args.x != args.y && args.d == nullptr &&
           prefers_cublas_tsmm(dtype_v<T>, args.m, args.n) && is_the_librarys(choice) &&
           are_aligned<T>({args.x, args.c, args.y});
}

template <class T>
const Cublas* Cublas::for_product(Context& ctx, const TsmttsmArgs<T>& args) {
    return cublas_for(ctx, args);
}

template <class T>
const Cublas* Cublas::for_product(Context& ctx, const TsmmArgs<T>& args) {
    return cublas_for(ctx, args);
}

// A row-major array is the column-major array of the transpose: C^T = B^T conj(A), Y^T = C^T X^T.

template <class T>
void Cublas::tsmttsm(const TsmttsmArgs<T>& args) const {
    require_cublas(library_->gemm<T>()(handle_, CublasLibrary::plain, CublasLibrary::adjoint,
                                       args.n, args.m, args.rows, &args.alpha, args.b, args.ldb,
                                       args.a, args.lda, &args.beta, args.c, args.ldc),
                   "cuBLAS gemm");
}

template <class T>
void Cublas::tsmm(const TsmmArgs<T>& args) const {
    require_cublas(library_->gemm<T>()(handle_, CublasLibrary::plain, CublasLibrary::plain, args.n,
                                       args.rows, args.m, &args.alpha, args.c, args.ldc, args.x,
                                       args.ldx, &args.beta, args.y, args.ldy),
                   "cuBLAS gemm");
}

#define QUIVER_INSTANTIATE(T)                                                    \
    template bool Cublas::serves(const PlanChoice&, const TsmttsmArgs<T>&);      \
    template bool Cublas::serves(const PlanChoice&, const TsmmArgs<T>&);         \
    template const Cublas* Cublas::for_product(Context&, const TsmttsmArgs<T>&); \
    template const Cublas* Cublas::for_product(Context&, const TsmmArgs<T>&);    \
    template void Cublas::tsmttsm(const TsmttsmArgs<T>&) const;                  \
    template void Cublas::tsmm(const TsmmArgs<T>&) const;
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver::cuda
