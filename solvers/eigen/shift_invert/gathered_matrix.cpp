// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/shift_invert/gathered_matrix.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "blockvec/error.hpp"
#include "blockvec/number_text.hpp"
#include "blockvec/scalar_list.hpp"
#include "kernels/sparse/gathered_rows.hpp"
#include "solvers/eigen/search/scaled_residuals.hpp"
#include "solvers/precond/sparse_ldlt.hpp"

namespace quiver {
namespace {

/// The largest accepted difference of entry (i, j) and the conjugate of entry (j, i), relative to
/// the Frobenius norm: the rounding of sums of some terms in another order. Only one of the two
/// entries is factorised.
template <class T>
constexpr double hermitian_slack = 100 * static_cast<double>(epsilon_v<T>);

template <class W>
double frobenius_norm(const CsrRows<W>& rows) {
    double largest = 0;
    for (const W& value : rows.value) {
        largest = std::max(largest, std::abs(value));
    }
    if (largest == 0) {
        return 0;
    }
    double squares = 0;  // of entries / largest, because squares of entries may overflow
    for (const W& value : rows.value) {
        squares += std::norm(value / largest);
    }
    return largest * std::sqrt(squares);
}

}  // namespace

template <class T>
CsrRows<DoubleOf<T>> gather_rows(Context& ctx, Operator<T>& a, const char* name) {
    using Wide = DoubleOf<T>;
    auto* const stored = dynamic_cast<SparseMatrix<T>*>(&a);
    if (stored == nullptr) {
        InputError error(
            std::string(name) +
            " is not a sparse matrix, which a factorisation needs; use dense or a method "
            "that iterates");
        error.set_collective();
        throw error;
    }
    CsrRows<T> gathered = rows_on_rank_0(ctx, *stored);
    CsrRows<Wide> rows;
    ctx.comm().agree([&] {
        if (ctx.comm().rank() != 0) {
            return;
        }
        rows.map = gathered.map;
        rows.global_cols = gathered.global_cols;
        rows.symmetry = gathered.symmetry;
        rows.row_start = std::move(gathered.row_start);
        rows.column = std::move(gathered.column);
        for (const T& value : gathered.value) {
            if (!is_finite(value)) {
                throw NumericalError(std::string(name) + " has an entry that is not finite");
            }
            rows.value.push_back(static_cast<Wide>(value));
        }
        const double defect = hermitian_defect(rows);
        const double norm = frobenius_norm(rows);
        if (defect > hermitian_slack<T> * norm) {
            throw NumericalError(std::string(name) +
                                 " is not Hermitian: entries (i, j) and (j, i) "
                                 "differ by up to " +
                                 number_text(defect / norm, 2) +
                                 " of the Frobenius norm; store both triangles, or use (A + A^H) / "
                                 "2");
        }
    });
    return rows;
}

template <class W>
int scale_to_one(CsrRows<W>& rows) {
    double largest = 0;
    for (const W& value : rows.value) {
        largest = std::max(largest, static_cast<double>(std::abs(value)));
    }
    const int exponent = even_exponent(largest);
    const double factor = std::ldexp(1.0, -exponent);
    for (W& value : rows.value) {
        value *= factor;
    }
    return exponent;
}

template int scale_to_one(CsrRows<double>&);
template int scale_to_one(CsrRows<std::complex<double>>&);

// NOLINTBEGIN(bugprone-macro-parentheses): T is a type
#define QUIVER_INSTANTIATE(T) \
    template CsrRows<DoubleOf<T>> gather_rows(Context&, Operator<T>&, const char*);
// NOLINTEND(bugprone-macro-parentheses)
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
