// SPDX-License-Identifier: BSD-3-Clause
// The routines of LAPACK and BLAS of the dense eigensolver, loaded at run time: a program that
// makes no dense solve starts without the library. Private to solvers/.
#pragma once

#include <complex>
#include <cstddef>
#include <optional>

#include "blockvec/context.hpp"
#include "blockvec/scalar.hpp"
#include "blockvec/shared_library.hpp"
#include "blockvec/small_matrix.hpp"

namespace quiver {

/// The routines for one scalar, with the interface of Fortran: every argument is an address, and
/// the lengths of the character arguments follow at the end. LAPACK reads a row-major Hermitian
/// matrix A as conj(A).
template <class W>
struct LapackRoutines {
    explicit LapackRoutines(const SharedLibrary& library);

    /// xSYTRD or xHETRD: uplo, n, a, lda, d, e, tau, work, lwork, info.
    void (*tridiagonalise)(const char*, const int*, W*, const int*, double*, double*, W*, W*,
                           const int*, int*, std::size_t);
    /// xORMTR or xUNMTR: side, uplo, trans, m, n, a, lda, tau, c, ldc, work, lwork, info.
    void (*multiply_by_q)(const char*, const char*, const char*, const int*, const int*, W*,
                          const int*, const W*, W*, const int*, W*, const int*, int*, std::size_t,
                          std::size_t, std::size_t);
    /// xPOTRF: uplo, n, a, lda, info.
    void (*factorise)(const char*, const int*, W*, const int*, int*, std::size_t);
    /// xSYGST or xHEGST: itype, uplo, n, a, lda, b, ldb, info.
    void (*reduce)(const int*, const char*, const int*, W*, const int*, const W*, const int*, int*,
                   std::size_t);
    /// xTRTRS: uplo, trans, diag, n, nrhs, a, lda, b, ldb, info.
    void (*solve_triangular)(const char*, const char*, const char*, const int*, const int*,
                             const W*, const int*, W*, const int*, int*, std::size_t, std::size_t,
                             std::size_t);
    /// xGEMM: transa, transb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc.
    void (*multiply)(const char*, const char*, const int*, const int*, const int*, const W*,
                     const W*, const int*, const W*, const int*, const W*, W*, const int*,
                     std::size_t, std::size_t);
    /// DSTEDC: compz, n, d, e, z, ldz, work, lwork, iwork, liwork, info.
    void (*divide_and_conquer)(const char*, const int*, double*, double*, double*, const int*,
                               double*, const int*, int*, const int*, int*, std::size_t);
};

/// A B, where A has as many columns as B has rows. Scales the rows of B if A is square and
/// diagonal; else calls BLAS, or product() if `blas` is null.
template <class W>
SmallMatrix<W> blas_product(const LapackRoutines<W>* blas, const SmallMatrix<W>& a,
                            const SmallMatrix<W>& b);

/// LAPACK as this process finds it; a service of the Context.
class Lapack {
  public:
    explicit Lapack(Context& ctx);

    /// Null if no library was found.
    template <class W>
    const LapackRoutines<W>* routines() const {
        const auto& found = [this]() -> const auto& {
            if constexpr (is_complex_v<W>) {
                return complex_;
            } else {
                return real_;
            }
        }
        ();
        return found ? &*found : nullptr;
    }
    bool is_available() const { return real_ && complex_; }

    /// Sets the number of threads of OpenBLAS during its own lifetime.
    class Threads {
      public:
        Threads(const Lapack& lapack, int count);
        Threads(const Threads&) = delete;
        Threads& operator=(const Threads&) = delete;
        ~Threads();

      private:
        void (*set_)(int);
        int before_ = 0;
    };

  private:
    void load(const char* name);

    std::optional<LapackRoutines<double>> real_;
    std::optional<LapackRoutines<std::complex<double>>> complex_;
    void (*set_threads_)(int) = nullptr;
    int (*get_threads_)() = nullptr;
};

}  // namespace quiver
