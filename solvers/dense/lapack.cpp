// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/dense/lapack.hpp"

#include <array>
#include <cstdlib>
#include <string>
#include <type_traits>

#include "blockvec/error.hpp"
#include "solvers/small_blocks.hpp"
#include "solvers/small_dense.hpp"

namespace quiver {
namespace {

template <class F>
void find(const SharedLibrary& library, F*& function, const char* name) {
    function = library.find<F>(name);
}

}  // namespace

template <class W>
LapackRoutines<W>::LapackRoutines(const SharedLibrary& library) {
    constexpr bool complex = is_complex_v<W>;
    find(library, tridiagonalise, complex ? "zhetrd_" : "dsytrd_");
    find(library, multiply_by_q, complex ? "zunmtr_" : "dormtr_");
    find(library, factorise, complex ? "zpotrf_" : "dpotrf_");
    find(library, reduce, complex ? "zhegst_" : "dsygst_");
    find(library, solve_triangular, complex ? "ztrtrs_" : "dtrtrs_");
    find(library, multiply, complex ? "zgemm_" : "dgemm_");
    find(library, divide_and_conquer, "dstedc_");
}

Lapack::Lapack(Context& /*ctx*/) {
    if (const char* chosen = std::getenv("QUIVER_LAPACK"); chosen != nullptr && *chosen != '\0') {
        if (std::string(chosen) != "none") {
            load(chosen);
        }
        return;
    }
    for (const char* name : {"libopenblas.so.0", "liblapack.so.3"}) {
        try {
            load(name);
            return;
        } catch (const UnsupportedError&) {  // Eigen takes its place
        }
    }
}

/// Throws UnsupportedError.
void Lapack::load(const char* name) {
    const SharedLibrary library(name);
    LapackRoutines<double> real(library);
    complex_.emplace(library);
    real_ = real;
    try {  // OpenBLAS only
        set_threads_ = library.find<void(int)>("openblas_set_num_threads");
        get_threads_ = library.find<int()>("openblas_get_num_threads");
    } catch (const UnsupportedError&) {
        set_threads_ = nullptr;
    }
}

Lapack::Threads::Threads(const Lapack& lapack, int count) : set_(lapack.set_threads_) {
    if (set_ != nullptr) {
        before_ = lapack.get_threads_();
        set_(count);
    }
}

Lapack::Threads::~Threads() {
    if (set_ != nullptr) {
        set_(before_);
    }
}

template <class W>
SmallMatrix<W> blas_product(const LapackRoutines<W>* blas, const SmallMatrix<W>& a,
                            const SmallMatrix<W>& b) {
    if (a.rows() == a.cols() && is_diagonal(a)) {
        SmallMatrix<W> result = b;
        scale_rows(result,
                   [&](std::size_t i) { return a(static_cast<int>(i), static_cast<int>(i)); });
        return result;
    }
    if (blas == nullptr) {
        return product(a, b);
    }
    const int rows = a.rows();
    const int terms = b.rows();
    const int cols = b.cols();
    SmallMatrix<W> result(rows, cols);
    if (rows == 0 || cols == 0 || terms == 0) {
        return result;
    }
    const W one(1);
    const W zero(0);
    const int ld_a = a.cols();
    // BLAS reads a row-major matrix as its transpose: the call computes (A B)^T = B^T A^T.
    blas->multiply("N", "N", &cols, &rows, &terms, &one, b.data(), &cols, a.data(), &ld_a, &zero,
                   result.data(), &cols, 1, 1);
    return result;
}

template SmallMatrix<double> blas_product(const LapackRoutines<double>*, const SmallMatrix<double>&,
                                          const SmallMatrix<double>&);
template SmallMatrix<std::complex<double>> blas_product(const LapackRoutines<std::complex<double>>*,
                                                        const SmallMatrix<std::complex<double>>&,
                                                        const SmallMatrix<std::complex<double>>&);
template struct LapackRoutines<double>;
template struct LapackRoutines<std::complex<double>>;

}  // namespace quiver
