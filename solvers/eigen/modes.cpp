// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/modes.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "blockvec/error.hpp"
#include "blockvec/number_text.hpp"
#include "blockvec/small_matrix.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/tsmttsm.hpp"
#include "solvers/eigen/eigensolver.hpp"
#include "solvers/eigen/inertia.hpp"
#include "solvers/eigen/shift_invert/factor_forecast.hpp"
#include "solvers/eigen/shift_invert/gathered_matrix.hpp"
#include "solvers/orth/indefinite_error.hpp"

namespace quiver {
namespace {

/// A dense solve takes less time than factorisations up to this number of rows.
constexpr std::int64_t most_dense_modes = 1024;
/// Up to this number of rows, the factorisation that counts the null space of M takes a small part
/// of the solve.
constexpr std::int64_t most_counted_rows = 20000;

/// Sums over the rows of a matrix, equal on all ranks.
struct RowFacts {
    double largest_sum = 0;
    std::int64_t zero_rows = 0;
    bool diagonal = true;
    /// See row_facts(); counted from 1, 0: none.
    std::int64_t bad_row = 0;
};

/// bad_row is the first row with an entry that is not finite, or a diagonal entry below `least`.
template <class T>
RowFacts row_facts(Context& ctx, const SparseMatrix<T>& a, double least) {
    const auto rows = static_cast<std::size_t>(a.row_map().local_rows());
    std::vector<double> sums(rows);
    constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();
    std::int64_t bad = none;
    std::int64_t beside = 0;
    ctx.comm().agree([&] {
        a.for_each_entry(ctx, [&](std::size_t row, std::int64_t column, T entry) {
            const auto value = static_cast<double>(entry);
            const bool on_diagonal = column == static_cast<std::int64_t>(row);
            if (!std::isfinite(value) || (on_diagonal && value < least)) {
                bad = std::min(bad, a.row_map().first_row() + static_cast<std::int64_t>(row) + 1);
            } else {
                sums[row] += std::abs(value);
            }
            beside += !on_diagonal && value != 0 ? 1 : 0;
        });
    });
    RowFacts facts;
    facts.largest_sum =
        ctx.comm().max(sums.empty() ? 0.0 : *std::max_element(sums.begin(), sums.end()));
    facts.zero_rows = ctx.comm().sum(std::int64_t{std::count(sums.begin(), sums.end(), 0.0)});
    facts.diagonal = ctx.comm().sum(beside) == 0;
    const std::int64_t first = none - ctx.comm().max(none - bad);
    facts.bad_row = first == none ? 0 : first;
    return facts;
}

[[noreturn]] void refuse_modes(const std::string& text) {
    throw_collective(ErrorKind::input, "modes: " + text);
}

void check_frequencies(const ModesOptions& options) {
    const auto check = [](const char* name, double value) {
        if (!(value >= 0 && std::isfinite(value))) {
            refuse_modes(std::string(name) + " " + number_text(value, 6) +
                         ": a frequency is a finite number from 0 on");
        }
    };
    if (options.range) {
        check("the range begins at", options.range->low);
        check("the range ends at", options.range->high);
        if (options.range->low > options.range->high) {
            refuse_modes("the range " + number_text(options.range->low, 6) + " to " +
                         number_text(options.range->high, 6) + " is not ascending");
        }
    }
    if (options.near) {
        check("near", *options.near);
    }
    check("rigid_below", options.rigid_below);
    if (!(options.unit > 0 && std::isfinite(options.unit))) {
        refuse_modes("the unit " + number_text(options.unit, 6) + " is not positive");
    }
}

/// Counts the null space of M.
template <class T>
void count_infinite(Context& ctx, SparseMatrix<T>& m, const RowFacts& facts,
                    ModesResult<T>& result) {
    result.infinite = facts.zero_rows;
    if (facts.diagonal) {
        return;
    }
    const std::int64_t rows = m.row_map().global_rows();
    result.infinite_at_least = rows > most_counted_rows;
    if (result.infinite_at_least) {
        return;
    }
    const CsrRows<double> all = gather_rows<T>(ctx, m, "modes: M");
    std::int64_t counted = -1;
    ctx.comm().agree([&] {
        if (ctx.comm().rank() == 0) {
            const Inertia count = inertia(all, attainable_tolerance<T>(0) * facts.largest_sum);
            counted = count.reliable ? count.below : -1;
        }
    });
    ctx.comm().broadcast(&counted, sizeof(counted), 0);
    result.infinite_at_least = counted < 0;
    result.infinite = std::max(result.infinite, counted);
}

template <class T>
EigenOptions solver_options(Context& ctx, const EigenProblem<T>& problem,
                            const ModesOptions& options, std::int64_t infinite) {
    EigenOptions solver = options.solver;
    const auto eigenvalue = [&](double frequency) {
        return (frequency / options.unit) * (frequency / options.unit);
    };
    solver.which = options.near ? Which::target : Which::smallest;
    solver.target = eigenvalue(options.near.value_or(0));
    solver.window.reset();
    if (options.range) {
        const double high = eigenvalue(options.range->high);
        const double low = options.range->low > 0 ? eigenvalue(options.range->low) : -high;
        solver.window = Window{low, high};
    }
    const std::int64_t rows = problem.a.row_map().global_rows();
    if (solver.method == Method::automatic && (rows > most_dense_modes || infinite > 0) &&
        can_factorise(ctx, problem)) {
        solver.method = Method::shift_invert;
    }
    return solver;
}

/// Replaces the eigenvalues of a dense solve, whose rounding errors are relative to the largest
/// finite one, by the Rayleigh quotients of their vectors, and sorts the pairs by these. Errors of
/// the quotients are relative to ||K|| ||x||^2, as the limit of rigid modes is.
template <class T>
void take_quotients(Context& ctx, SparseMatrix<T>& k, SparseMatrix<T>& m, EigenResult<T>& eigen) {
    const BlockView<const T> x = std::as_const(eigen.vectors).view();
    BlockVector<T> images;
    ctx.comm().agree([&] { images = BlockVector<T>(ctx, k.row_map(), x.cols); });
    const auto forms = [&](SparseMatrix<T>& a) {
        std::vector<T> values(static_cast<std::size_t>(x.cols));
        a.apply(ctx, x, images.view());
        dots(ctx, x, std::as_const(images).view(), std::span<T>(values));
        return values;
    };
    const std::vector<T> of_k = forms(k);
    const std::vector<T> of_m = forms(m);
    std::vector<double> quotients(of_k.size());
    std::vector<int> order(of_k.size());
    for (std::size_t j = 0; j < of_k.size(); ++j) {
        quotients[j] = static_cast<double>(of_k[j]) / static_cast<double>(of_m[j]);
        order[j] = static_cast<int>(j);
    }
    const auto quotient = [&](int j) { return quotients[static_cast<std::size_t>(j)]; };
    std::stable_sort(order.begin(), order.end(),
                     [&](int i, int j) { return quotient(i) < quotient(j); });
    gather_columns(ctx, x, order, eigen.vectors.view());
    const std::vector<double> residuals = eigen.residuals;
    for (std::size_t j = 0; j < order.size(); ++j) {
        eigen.eigenvalues[j] = quotient(order[j]);
        eigen.residuals[j] = residuals[static_cast<std::size_t>(order[j])];
    }
}

/// The largest |x_ij| of each column, over all ranks.
template <class T>
std::vector<double> largest_elements(Context& ctx, const BlockVector<T>& x) {
    BlockVector<T> host;
    ctx.comm().agree([&] {
        if (ctx.place() != Place::host) {
            host = BlockVector<T>(ctx, x.row_map(), x.width(), 0, Place::host);
            copy(ctx, x.view(), host.view());
        }
    });
    const BlockView<const T> view =
        ctx.place() == Place::host ? x.view() : std::as_const(host).view();
    std::vector<double> most(static_cast<std::size_t>(x.width()));
    for (std::int64_t i = 0; i < view.rows; ++i) {
        for (int j = 0; j < view.cols; ++j) {
            double& one = most[static_cast<std::size_t>(j)];
            one = std::max(one, static_cast<double>(std::abs(view(i, j))));
        }
    }
    ctx.comm().max(std::span<double>(most));
    return most;
}

/// Frequencies, and the modes that are rigid or unstable.
template <class T>
void classify(Context& ctx, double norm, const ModesOptions& options, ModesResult<T>& result) {
    const std::vector<double>& values = result.eigen.eigenvalues;
    std::vector<real_t<T>> lengths(values.size());
    norms(ctx, std::as_const(result.eigen.vectors).view(), std::span<real_t<T>>(lengths));
    const double least = options.rigid_below / options.unit;
    for (std::size_t j = 0; j < values.size(); ++j) {
        const double length = lengths[j];
        const double rounding = attainable_tolerance<T>(0) * norm * length * length;
        const double limit = std::max(rounding, least * least);
        const bool rigid = std::abs(values[j]) <= limit;
        if (rigid) {
            result.rigid_limit = std::max(result.rigid_limit, std::sqrt(limit) * options.unit);
        }
        const double frequency =
            std::copysign(std::sqrt(std::abs(values[j])) * options.unit, values[j]);
        result.frequencies.push_back(rigid ? 0 : frequency);
        result.rigid += rigid ? 1 : 0;
        result.unstable += !rigid && values[j] < 0 ? 1 : 0;
    }
    for (const double most : largest_elements(ctx, result.eigen.vectors)) {
        result.modal_masses.push_back(1 / (most * most));
    }
}

/// Moves the rotations among six directions from the origin to the centre of mass: a x (p - c) = a
/// x p - a x c. products = R^T M R, which gives the first moments of the mass.
void move_to_centre(const SmallMatrix<double>& products, ModesFacts& facts) {
    const double mass = products(0, 0);
    if (!(mass > 0)) {
        return;
    }
    facts.centre = {products(1, 5) / mass, products(2, 3) / mass, products(0, 4) / mass};
    for (std::size_t a = 0; a < 3; ++a) {
        const std::size_t b = (a + 1) % 3;
        const std::size_t c = (a + 2) % 3;
        const double along_b = facts.centre[b];
        const double along_c = facts.centre[c];
        // -a x c has the components along_c in direction b and -along_b in direction c.
        std::vector<double>& moved = facts.participation[3 + a];
        for (std::size_t i = 0; i < moved.size(); ++i) {
            moved[i] += along_c * facts.participation[b][i] - along_b * facts.participation[c][i];
        }
        const auto product = [&](std::size_t i, std::size_t j) {
            return products(static_cast<int>(i), static_cast<int>(j));
        };
        facts.total_masses[3 + a] +=
            2 * (along_c * product(b, 3 + a) - along_b * product(c, 3 + a)) +
            along_c * along_c * product(b, b) + along_b * along_b * product(c, c) -
            2 * along_b * along_c * product(b, c);
    }
}

template <class T>
void participate(Context& ctx, SparseMatrix<T>& m, BlockView<const T> directions,
                 ModesResult<T>& result) {
    const int count = directions.cols;
    const auto modes = static_cast<int>(result.frequencies.size());
    BlockVector<T> moved;
    SmallMatrix<T> products(count, count);
    SmallMatrix<T> factors(count, modes);
    ctx.comm().agree([&] { moved = BlockVector<T>(ctx, m.row_map(), count); });
    m.apply(ctx, directions, moved.view());
    tsmttsm(ctx, T(1), directions, std::as_const(moved).view(), T(0), products);
    if (modes > 0) {
        tsmttsm(ctx, T(1), std::as_const(moved).view(), std::as_const(result.eigen.vectors).view(),
                T(0), factors);
    }
    SmallMatrix<double> masses(count, count);
    for (int j = 0; j < count; ++j) {
        const T* const row = factors.data() + static_cast<std::ptrdiff_t>(j) * modes;
        result.participation.emplace_back(row, row + modes);
        for (int i = 0; i < count; ++i) {
            masses(i, j) = static_cast<double>(products(i, j));
        }
        result.total_masses.push_back(masses(j, j));
    }
    if (count == 6) {
        move_to_centre(masses, result);
    }
}

}  // namespace

std::vector<double> ModesFacts::effective_masses(std::size_t direction) const {
    std::vector<double> masses = participation[direction];
    for (double& one : masses) {
        one *= one;
    }
    return masses;
}

template <class T>
BlockVector<T> rigid_directions(Context& ctx, const RowMap& map,
                                std::span<const double> coordinates) {
    const std::int64_t rows = map.global_rows();
    if (rows % 3 != 0 ||
        (!coordinates.empty() && static_cast<std::int64_t>(coordinates.size()) != rows)) {
        throw_collective(ErrorKind::shape, "rigid_directions: " + std::to_string(rows) +
                                               " rows and coordinates of " +
                                               std::to_string(coordinates.size() / 3) +
                                               " nodes; three rows a node are needed");
    }
    const int columns = coordinates.empty() ? 3 : 6;
    BlockVector<T> result;
    ctx.comm().agree([&] {
        BlockVector<T> host(ctx, map, columns, 0, Place::host);
        const BlockView<T> view = host.view();
        for (std::int64_t i = 0; i < view.rows; ++i) {
            std::fill_n(view.data + i * view.ld, columns, T(0));
            const auto row = static_cast<std::size_t>(map.first_row() + i);
            const auto d = static_cast<int>(row % 3);
            view(i, d) = T(1);
            if (columns == 6) {
                // Component d of a x p for the axes a.
                const double* const p = coordinates.data() + (row - row % 3);
                view(i, 3 + (d + 1) % 3) = static_cast<T>(p[(d + 2) % 3]);
                view(i, 3 + (d + 2) % 3) = static_cast<T>(-p[(d + 1) % 3]);
            }
        }
        if (ctx.place() == Place::host) {
            result = std::move(host);
        } else {
            result = BlockVector<T>(ctx, map, columns);
            copy(ctx, host.view(), result.view());
        }
    });
    return result;
}

template <class T>
ModesResult<T> modes(Context& ctx, SparseMatrix<T>& k, SparseMatrix<T>& m,
                     const ModesOptions& options, BlockView<const T> directions) {
    check_frequencies(options);
    const std::int64_t rows = k.row_map().global_rows();
    const RowFacts stiffness = row_facts(ctx, k, -std::numeric_limits<double>::infinity());
    const RowFacts mass = row_facts(ctx, m, 0);
    if (stiffness.bad_row > 0) {
        refuse_modes("row " + std::to_string(stiffness.bad_row) + " of K has NaN or infinity");
    }
    if (mass.bad_row > 0) {
        refuse_modes("row " + std::to_string(mass.bad_row) +
                     " of M has NaN, infinity, or a negative mass on the diagonal");
    }
    if (mass.largest_sum == 0) {
        refuse_modes("M is zero: all eigenvalues are infinite");
    }
    ModesResult<T> result;
    count_infinite(ctx, m, mass, result);
    const std::int64_t finite = m.row_map().global_rows() - result.infinite;
    if (!options.range && options.solver.k > finite) {
        refuse_modes("k = " + std::to_string(options.solver.k) + " modes are wanted, but only " +
                     std::to_string(finite) + " of " + std::to_string(rows) +
                     " eigenvalues are finite: M has a null space of dimension " +
                     std::to_string(result.infinite));
    }
    const Method method = options.solver.method;
    if (result.infinite > 0 && method != Method::automatic && method != Method::dense &&
        method != Method::shift_invert) {
        refuse_modes("M has a null space of dimension " + std::to_string(result.infinite) +
                     ", which " + to_string(method) +
                     " does not take; use shift-invert, dense or auto");
    }
    EigenProblem<T> problem{k};
    problem.b = &m;
    EigenOptions solver = solver_options(ctx, problem, options, result.infinite);
    try {
        result.eigen = eigensolve(ctx, problem, solver);
        if (!result.eigen.converged && solver.method != method && rows <= most_dense_modes) {
            // The shifts for a few rows may all be too close to an eigenvalue.
            solver.method = method;
            result.eigen = eigensolve(ctx, problem, solver);
        }
    } catch (const SingularMassError& error) {
        refuse_modes("M is singular (" + std::string(error.what()) + ")");
    } catch (const IndefiniteError& error) {
        refuse_modes("M has a negative eigenvalue, or is singular beyond what the method takes (" +
                     std::string(error.what()) + ")");
    }
    if (result.eigen.method == Method::dense) {
        take_quotients(ctx, k, m, result.eigen);
    }
    classify(ctx, stiffness.largest_sum, options, result);
    if (directions.cols > 0) {
        participate(ctx, m, directions, result);
    }
    return result;
}

#define QUIVER_INSTANTIATE(T)                                                                   \
    template BlockVector<T> rigid_directions(Context&, const RowMap&, std::span<const double>); \
    template ModesResult<T> modes(Context&, SparseMatrix<T>&, SparseMatrix<T>&,                 \
                                  const ModesOptions&, BlockView<const T>);
QUIVER_INSTANTIATE(float)
QUIVER_INSTANTIATE(double)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
