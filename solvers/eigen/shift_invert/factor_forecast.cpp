// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/shift_invert/factor_forecast.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <optional>
#include <vector>

#include "blockvec/host_memory.hpp"
#include "blockvec/number_text.hpp"
#include "blockvec/scalar_list.hpp"
#include "kernels/sparse/sparse_matrix.hpp"
#include "solvers/eigen/shift_invert/gathered_matrix.hpp"
#include "solvers/precond/sparse_ldlt.hpp"

namespace quiver {
namespace {

/// The share of the available memory that factors may take: two exist for a moment.
constexpr double memory_share = 0.4;
/// Eigen numbers the entries of a factor by 32 bits.
constexpr double most_entries = std::numeric_limits<int>::max();

template <class W>
std::int64_t count_below(const CsrRows<W>& a, const std::optional<CsrRows<W>>& b, double shift) {
    const SparseLdlt<W> factor(a, b ? &*b : nullptr, shift);
    if (!factor.complete()) {
        return -1;
    }
    const std::vector<double> pivots = factor.pivots();
    return std::count_if(pivots.begin(), pivots.end(), [](double pivot) { return pivot < 0; });
}

}  // namespace

std::string FactorForecast::words() const {
    return "factors of " + number_text(static_cast<double>(entries), 2) + " entries, " +
           number_text(bytes / 1e6, 3) + " MB";
}

double FactorForecast::solve_products(double pairs, bool interior) const {
    // Measured (shift_invert.hpp): 2 to 8 factorisations at an end, 21 inside; 9 to 20 solves for
    // each pair, two passes over L each. Each vector is made orthogonal to all pairs found.
    const double shifts = interior ? 21 : 6;
    return shifts * products +
           pairs * (30 * static_cast<double>(entries) + 20 * pairs * static_cast<double>(rows));
}

template <class T>
bool can_factorise(const EigenProblem<T>& problem) {
    const auto is_stored = [](const Operator<T>* a) {
        return a == nullptr || dynamic_cast<const SparseMatrix<T>*>(a) != nullptr;
    };
    return is_stored(&problem.a) && is_stored(problem.b) && problem.constraints.cols == 0 &&
           problem.checkpoint == nullptr && problem.protection == nullptr &&
           problem.a.row_map().global_rows() <= most_ldlt_rows;
}

template <class T>
FactorForecast forecast_factorisation(Context& ctx, const EigenProblem<T>& problem,
                                      const EigenOptions& options, double most_counting) {
    using Wide = DoubleOf<T>;
    std::optional<CsrRows<Wide>> b;
    if (problem.b != nullptr) {
        b = gather_rows<T>(ctx, *problem.b, "B");
    }
    const CsrRows<Wide> a = gather_rows<T>(ctx, problem.a, "A");
    FactorForecast forecast;
    ctx.comm().agree([&] {
        if (ctx.comm().rank() != 0) {
            return;
        }
        constexpr double entry_bytes = sizeof(Wide) + sizeof(int);
        forecast.most_bytes =
            std::min(memory_share * std::min(available_host_bytes(), available_address_space()),
                     most_entries * entry_bytes);
        const LdltFill fill = predict_fill(
            a, b ? &*b : nullptr, static_cast<std::int64_t>(forecast.most_bytes / entry_bytes));
        forecast.rows = a.map.global_rows();
        forecast.column_bytes = sizeof(Wide) * static_cast<double>(forecast.rows);
        forecast.entries = fill.entries;
        forecast.products = fill.products;
        forecast.bytes = entry_bytes * static_cast<double>(fill.entries);
        if (options.window && forecast.fits(0) && fill.products <= most_counting) {
            // Farther out, because an eigenvalue at an end would give a pivot of zero.
            const double edge = 1e-3 * (options.window->high - options.window->low);
            const std::int64_t low = count_below(a, b, options.window->low - edge);
            const std::int64_t high = count_below(a, b, options.window->high + edge);
            forecast.inside = low < 0 || high < low ? -1 : high - low;
        }
    });
    ctx.comm().broadcast(&forecast, sizeof(forecast), 0);
    return forecast;
}

#define QUIVER_INSTANTIATE(T)                                                        \
    template bool can_factorise(const EigenProblem<T>&);                             \
    template FactorForecast forecast_factorisation(Context&, const EigenProblem<T>&, \
                                                   const EigenOptions&, double);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
