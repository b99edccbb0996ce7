// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/shift_invert/factor_forecast.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>

#include "blockvec/device.hpp"
#include "blockvec/host_memory.hpp"
#include "blockvec/number_text.hpp"
#include "blockvec/scalar_list.hpp"
#include "kernels/sparse/sparse_matrix.hpp"
#include "solvers/eigen/shift_invert/cudss.hpp"
#include "solvers/eigen/shift_invert/cudss_factorisation.hpp"
#include "solvers/eigen/shift_invert/gathered_matrix.hpp"
#include "solvers/eigen/shift_invert/mumps_factorisation.hpp"
#include "solvers/precond/sparse_ldlt.hpp"

namespace quiver {
namespace {

/// The share of the available memory that factors may take; larger for MUMPS, whose forecast
/// includes its work space.
constexpr double memory_share = 0.4;
constexpr double mumps_memory_share = 0.8;
/// Multiply-adds that MUMPS makes in the time of one multiply-add of SparseLdlt.
constexpr double mumps_speed = 4;
/// The other costs of MUMPS, in multiply-adds of SparseLdlt: analysis per entry of A and B
/// (measured 1 us), factorisation per row (1.7 us), solve of one column per row (0.1 us) and per
/// entry of L (0.65 ns). Measured with five Laplacians of 27,000 to 100,000 rows: lines, squares,
/// cubes, a mesh.
constexpr double mumps_analysis = 1250;
constexpr double mumps_factor_row = 2100;
constexpr double mumps_solve_row = 125;
constexpr double mumps_solve_entry = 0.8;
/// The same for cuDSS on an H100: speed; analysis per entry of A and B (1.4 us, one thread); solve
/// of one column (1 ms), and per entry of L (0.024 ns). Measured with Laplacians of 64,000 to 10^6
/// rows, squares and cubes. cuDSS does not report the multiply-adds of the factorisation; they are
/// estimated as fill_products times (entries of L)^2 / rows.
constexpr double cudss_speed = 1000;
constexpr double cudss_analysis = 1750;
constexpr double cudss_solve = 1.2e6;
constexpr double cudss_solve_entry = 0.03;
constexpr double fill_products = 2.5;
/// The share of the free device memory that cuDSS may take by its own estimate.
constexpr double device_memory_share = 0.9;
/// Below this number of rows the host factorises: cuDSS, which delays no pivots, left shifts of
/// small matrices with zero diagonals undecided.
constexpr std::int64_t least_gpu_rows = 20000;
/// Eigen numbers the entries of a factor with 32-bit integers.
constexpr double most_entries = std::numeric_limits<int>::max();

template <class W>
std::int64_t count_below(Factorisation<W>& factorisation, const CsrRows<W>& a, const CsrRows<W>* b,
                         double shift) {
    const FactorFacts facts = factorisation.factor(a, b, shift);
    return facts.complete && facts.zero == 0 ? facts.below : -1;
}

/// The intersection of the window and the bounds of the spectrum; the window itself if this is
/// empty.
Window within(const Window& bounds, const Window& window) {
    const Window inside{std::max(window.low, bounds.low), std::min(window.high, bounds.high)};
    return inside.low <= inside.high ? inside : window;
}

/// FactorForecast::value_ratio.
template <class W>
double ratio_of_values(const CsrRows<W>& a, const CsrRows<W>& b) {
    double least = std::numeric_limits<double>::infinity();
    double largest = 0;
    for (std::int64_t row = 0; row < a.map.global_rows(); ++row) {
        const double mass = diagonal_entry(b, row);
        if (!(mass > 0)) {
            return std::numeric_limits<double>::infinity();
        }
        if (const double value = std::abs(diagonal_entry(a, row)) / mass; value > 0) {
            least = std::min(least, value);
            largest = std::max(largest, value);
        }
    }
    return largest > 0 ? largest / least : 1;
}

template <class W>
double entries_of_pencil(const CsrRows<W>& a, const CsrRows<W>* b) {
    return static_cast<double>(a.nonzeros() + (b == nullptr ? 0 : b->nonzeros()));
}

template <class W>
std::unique_ptr<Factorisation<W>> predict_cudss(Context& ctx, const CsrRows<W>& a,
                                                const CsrRows<W>* b, FactorForecast& forecast) {
    auto cudss = std::make_unique<CudssFactorisation<W>>(ctx, a, b);
    const CudssForecast& size = cudss->forecast();
    forecast.most_bytes =
        device_memory_share * static_cast<double>(device::available_bytes(ctx.device().id));
    forecast.entries = static_cast<std::int64_t>(size.entries);
    forecast.analysis_products = cudss_analysis * entries_of_pencil(a, b);
    forecast.products = fill_products * size.entries * size.entries /
                        static_cast<double>(a.map.global_rows()) / cudss_speed;
    forecast.column_products = cudss_solve + cudss_solve_entry * size.entries;
    forecast.bytes = size.bytes;
    return cudss;
}

template <class W>
std::unique_ptr<Factorisation<W>> predict_mumps(int threads, const CsrRows<W>& a,
                                                const CsrRows<W>* b, FactorForecast& forecast) {
    auto mumps = std::make_unique<MumpsFactorisation<W>>(Comm(), threads, a, b);
    const MumpsForecast& size = mumps->forecast();
    const auto order = static_cast<double>(a.map.global_rows());
    forecast.most_bytes =
        mumps_memory_share * std::min(available_host_bytes(), available_address_space());
    forecast.entries = static_cast<std::int64_t>(size.entries);
    forecast.analysis_products = mumps_analysis * entries_of_pencil(a, b);
    forecast.products = size.products / mumps_speed;
    forecast.overhead_products = mumps_factor_row * order;
    forecast.column_products = mumps_solve_row * order + mumps_solve_entry * size.entries;
    forecast.bytes = size.all_bytes;
    return mumps;
}

template <class W>
std::unique_ptr<Factorisation<W>> predict_ldlt(const CsrRows<W>& a, const CsrRows<W>* b,
                                               FactorForecast& forecast) {
    constexpr double entry_bytes = sizeof(W) + sizeof(int);
    forecast.most_bytes =
        std::min(memory_share * std::min(available_host_bytes(), available_address_space()),
                 most_entries * entry_bytes);
    const LdltFill fill =
        predict_fill(a, b, static_cast<std::int64_t>(forecast.most_bytes / entry_bytes));
    forecast.entries = fill.entries;
    forecast.products = fill.products;
    forecast.column_products = 2 * static_cast<double>(fill.entries);
    forecast.bytes = entry_bytes * static_cast<double>(fill.entries);
    return std::make_unique<LdltFactorisation<W>>();
}

/// Fills in the forecast, on rank 0, and returns the factorisation that it predicts.
template <class W>
std::unique_ptr<Factorisation<W>> predict_factors(Context& ctx, const CsrRows<W>& a,
                                                  const CsrRows<W>* b, FactorForecast& forecast) {
    switch (forecast.library) {
        case FactorLibrary::cudss:
            return predict_cudss(ctx, a, b, forecast);
        case FactorLibrary::mumps:
            return predict_mumps(ctx.threads(), a, b, forecast);
        default:
            return predict_ldlt(a, b, forecast);
    }
}

/// True if rank 0 can hold the entries of a matrix with more than most_ldlt_rows rows. Collective.
template <class T>
bool can_gather(Context& ctx, const EigenProblem<T>& problem) {
    // Bytes of the sent entries, of two sparse matrices made from them, and of the copy for MUMPS
    // or cuDSS.
    constexpr double bytes_per_entry = 120;
    constexpr double bytes_per_row = 200;
    double entries = 0;
    for (const Operator<T>* const a :
         std::initializer_list<const Operator<T>*>{&problem.a, problem.b}) {
        const auto* const stored = dynamic_cast<const SparseMatrix<T>*>(a);
        entries += stored == nullptr ? 0 : static_cast<double>(stored->global_nonzeros());
    }
    const auto rows = static_cast<double>(problem.a.row_map().global_rows());
    bool fits = bytes_per_entry * entries + bytes_per_row * rows <=
                memory_share * std::min(available_host_bytes(), available_address_space());
    ctx.comm().broadcast(&fits, sizeof(fits), 0);
    return fits;
}

}  // namespace

const char* to_string(FactorLibrary library) {
    switch (library) {
        case FactorLibrary::cudss:
            return "cuDSS";
        case FactorLibrary::mumps:
            return "MUMPS";
        default:
            return "SparseLdlt";
    }
}

FactorLibrary factor_library(Context& ctx, std::int64_t rows) {
    if (rows >= least_gpu_rows && cudss_is_available(ctx)) {
        return FactorLibrary::cudss;
    }
    return mumps_is_available(ctx.comm()) ? FactorLibrary::mumps : FactorLibrary::ldlt;
}

std::string FactorForecast::words() const {
    return "factors of " + number_text(static_cast<double>(entries), 2) + " entries, " +
           number_text(bytes / 1e6, 3) + " MB";
}

std::string FactorForecast::words_of_too_much() const {
    return words() + ", and the vectors take more than the " + number_text(most_bytes / 1e6, 3) +
           " MB that shift-invert may use";
}

double FactorForecast::solve_products(double pairs, bool interior) const {
    // Measured: 2 to 8 factorisations at an end, 3 to 21 inside; 9 to 20 solves for each pair.
    // Interior problems count the multiply-adds of 21 factorisations, because a dense solve, whose
    // cost is known, is the safer choice. Each vector is made orthogonal, twice, to all pairs found
    // and to half of the basis.
    constexpr double shifts = 4;
    constexpr double most_shifts = 21;
    constexpr double solves = 16;
    constexpr double half_basis = 15;
    constexpr double product_speed = 4;  // of BLAS, whose complex multiply-add takes as long as 4
    const double vector =
        (is_complex ? 4 : 1) / product_speed * 2 * (pairs + half_basis) * static_cast<double>(rows);
    return analysis_products + shifts * overhead_products +
           (interior ? most_shifts : shifts) * products +
           pairs * solves * (column_products + vector);
}

template <class T>
bool can_factorise(Context& ctx, const EigenProblem<T>& problem) {
    const auto is_stored = [](const Operator<T>* a) {
        return a == nullptr || dynamic_cast<const SparseMatrix<T>*>(a) != nullptr;
    };
    if (!is_stored(&problem.a) || !is_stored(problem.b) || problem.constraints.cols > 0 ||
        problem.checkpoint != nullptr || problem.protection != nullptr) {
        return false;
    }
    const std::int64_t rows = problem.a.row_map().global_rows();
    if (rows <= most_ldlt_rows) {
        return true;
    }
    // On a GPU an iteration with a large matrix is faster than a factorisation on the host.
    const FactorLibrary library = factor_library(ctx, rows);
    const bool on_host = ctx.comm().max(std::int64_t{ctx.place() == Place::device ? 1 : 0}) == 0;
    return (library == FactorLibrary::cudss || (library == FactorLibrary::mumps && on_host)) &&
           can_gather(ctx, problem);
}

template <class T>
FactorForecast forecast_factorisation(Context& ctx, const EigenProblem<T>& problem,
                                      const EigenOptions& options, double most_counting) {
    using Wide = DoubleOf<T>;
    std::optional<CsrRows<Wide>> b;
    if (problem.b != nullptr) {
        b = gather_rows<T>(ctx, *problem.b, "shift-invert: B");
    }
    const CsrRows<Wide> a = gather_rows<T>(ctx, problem.a, "shift-invert: A");
    FactorForecast forecast;
    forecast.library = factor_library(ctx, problem.a.row_map().global_rows());
    ctx.comm().agree([&] {
        if (ctx.comm().rank() != 0) {
            return;
        }
        const CsrRows<Wide>* const mass = b ? &*b : nullptr;
        const std::unique_ptr<Factorisation<Wide>> factorisation =
            predict_factors(ctx, a, mass, forecast);
        forecast.rows = a.map.global_rows();
        forecast.is_complex = is_complex_v<T>;
        forecast.value_ratio = mass == nullptr ? 1 : ratio_of_values(a, *mass);
        forecast.column_bytes = forecast.library == FactorLibrary::cudss
                                    ? 0
                                    : sizeof(Wide) * static_cast<double>(forecast.rows);
        if (options.window && forecast.fits(0) && forecast.products <= most_counting) {
            // Count slightly beyond the ends, because an eigenvalue at an end would give a pivot of
            // zero.
            Window window = within(value_bounds(a, mass), *options.window);
            if (mass != nullptr) {
                const double far = far_value(a, *mass);
                window = within({-far, far}, window);
            }
            const double width = window.high - window.low;
            const auto edge = [&](double end, double other) {
                return std::min(end == 0 ? 1e-6 * std::abs(other) : 1e-3 * std::abs(end),
                                1e-3 * width);
            };
            const std::int64_t low =
                count_below(*factorisation, a, mass, window.low - edge(window.low, window.high));
            const std::int64_t high =
                count_below(*factorisation, a, mass, window.high + edge(window.high, window.low));
            forecast.inside = low < 0 || high < low ? -1 : high - low;
        }
    });
    ctx.comm().broadcast(&forecast, sizeof(forecast), 0);
    return forecast;
}

#define QUIVER_INSTANTIATE(T)                                                        \
    template bool can_factorise(Context&, const EigenProblem<T>&);                   \
    template FactorForecast forecast_factorisation(Context&, const EigenProblem<T>&, \
                                                   const EigenOptions&, double);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
