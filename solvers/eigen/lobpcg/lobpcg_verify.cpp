// SPDX-License-Identifier: BSD-3-Clause
// The search of the complement of LOBPCG's pairs, which shows that no copy is missing.
#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "blockvec/scalar_list.hpp"
#include "kernels/column_ops.hpp"
#include "solvers/eigen/lanczos/lanczos_basis.hpp"
#include "solvers/eigen/lobpcg/lobpcg_solver.hpp"
#include "solvers/eigen/lobpcg/projected_pencil.hpp"

namespace quiver {

template <class T>
void Lobpcg<T>::take_complement(LobpcgSpace<T>& complement, const SavedState<T>& state) {
    const int count = state.count("complement", complement.max_width());
    BlockVector<T> x;
    ctx_.comm().agree([&] { x = BlockVector<T>(ctx_, problem_.a.row_map(), count); });
    if (count > 0) {
        state.read(ctx_, "complement", x.view());
        complement.absorb(std::as_const(x).view());
    }
}

template <class T>
std::optional<BlockVector<T>> Lobpcg<T>::search_complement(LobpcgSpace<T>& space, bool use_guards,
                                                           bool& tied) {
    const int fixed = problem_.constraints.cols;
    const double last = space.key(options_.k - 1);
    const double norm = space.norm_a();
    const double threshold = tol_ * norm;
    std::vector<int> known(static_cast<std::size_t>(options_.k));
    std::iota(known.begin(), known.end(), 0);
    // Fixing guard vectors that are certainly outside makes a later eigenvalue the next one of the
    // complement.
    bool copy_known = false;
    double coupling = 0;
    double nearest = std::numeric_limits<double>::infinity();
    for (int j = options_.k; j < space.width() && use_guards; ++j) {
        const double gap = space.key(j) - last;
        const double rho = space.residual(j);
        if (gap <= threshold && rho <= threshold) {
            copy_known = true;
        } else if (gap > guard_margin * (threshold + rho)) {
            coupling += rho * rho;
            nearest = std::min(nearest, gap);
        } else {
            continue;
        }
        known.push_back(j);
    }
    const int count = fixed + static_cast<int>(known.size());
    BlockVector<T> block;
    ctx_.comm().agree([&] { block = BlockVector<T>(ctx_, problem_.a.row_map(), count); });
    copy(ctx_, space.fixed_and_x(0, fixed), block.columns(0, fixed));
    gather_columns(ctx_, space.x(), known, block.columns(fixed, count - fixed));
    const std::int64_t room = dimensions_ + fixed - count;
    const int width = static_cast<int>(std::min<std::int64_t>(verify_block, room / 3));
    LobpcgSpace<T> complement(ctx_, problem_, inner_, options_.which,
                              options_.seed + 0x51ed270b27b4d1ffu * ++verifications_, width, count,
                              bounds_);
    complement.fix(std::as_const(block).view());
    block = {};
    if (resumed_ != nullptr) {
        take_complement(complement, *std::exchange(resumed_, nullptr));
    }
    if (complement.width() < width) {
        complement.absorb_random(width - complement.width());
    }

    const std::int64_t before = steps_;
    const std::int64_t applications = applications_;
    const double attainable = attainable_tolerance<T>(0) * norm;
    LobpcgProgress progress;
    bool stalled = false;
    for (;;) {
        complement.measure();
        steps_ = before + complement.steps();
        applications_ = applications + complement.applications();
        const double rho = complement.residual(0);
        const bool go_on = monitor_.report(steps_, options_.k, norm > 0 ? rho / norm : 0, "verify");
        save_if_asked(space, !go_on || steps_ >= options_.max_iterations,
                      [&](SolverState<T>& state) {
                          state.numbers["complement"] = {static_cast<double>(complement.width())};
                          state.blocks["complement"] = complement.x();
                      });
        if (!go_on) {
            return std::nullopt;
        }
        // The tolerance alone does not settle the verdict: with a loose one a mixture of
        // eigenvectors could pass.
        const double settled = stalled ? rho : carried_margin * std::min(threshold, attainable);
        const double theta = complement.key(0);
        const ComplementVerdict verdict =
            judge_complement(last, theta, rho, threshold, settled, dimensions_);
        if (verdict == ComplementVerdict::inside) {
            int inside = 1;
            while (inside < complement.width() &&
                   complement.key(inside) < last - threshold - complement.residual(inside)) {
                ++inside;
            }
            return copy_of(complement.x().columns(0, inside));
        }
        if (verdict != ComplementVerdict::open) {
            tied = copy_known || verdict == ComplementVerdict::tied;
            // The guard vectors are only approximate eigenvectors.
            const double gap = std::max(theta - last, 0.0) + 2 * threshold;
            if (coupling > 0 && coupling > gap * nearest / 4) {
                return search_complement(space, false, tied);
            }
            return BlockVector<T>(ctx_, problem_.a.row_map(), 0);
        }
        if (steps_ >= options_.max_iterations || progress.since > search_patience) {
            return std::nullopt;
        }
        if (complement.age() >= refresh_period) {
            complement.refresh();
            continue;
        }
        stalled = !progress.made(complement, 1, 0, stall_patience) &&
                  rho <= attainable_slack * attainable;
        std::vector<int> active(static_cast<std::size_t>(complement.width()));
        std::iota(active.begin(), active.end(), 0);
        std::erase_if(active, [&](int j) { return complement.residual(j) <= settled; });
        complement.advance(active);
    }
}

template <class T>
std::optional<BlockVector<T>> Lobpcg<T>::search_pencil(LobpcgSpace<T>& pool, bool& tied) {
    const int fixed = problem_.constraints.cols;
    const int known = fixed + options_.k;
    const double sigma = pool.ritz_value(options_.k - 1);
    ProjectedPencil<T> pencil(ctx_, problem_.a, *problem_.b, sigma,
                              options_.which == Which::smallest ? 1 : -1,
                              pool.fixed_and_x(0, known), pool.product_with_b(0, known));
    EigenProblem<T> complement{pencil};
    complement.constraints = pool.fixed_and_x(0, known);
    const std::int64_t room = dimensions_ - options_.k;
    const int width = static_cast<int>(std::min<std::int64_t>(verify_block, room));
    LanczosBasis<T> basis(
        ctx_, complement, Which::smallest, options_.seed + 0x51ed270b27b4d1ffu * ++verifications_,
        static_cast<int>(std::min<std::int64_t>(verify_basis, room)), width, width);
    // If A = sigma B in the complement, the product is rounding noise only.
    basis.raise_norm(pool.scale(options_.k - 1));
    if (resumed_ != nullptr) {
        basis.restore(*std::exchange(resumed_, nullptr), "pencil_");
    } else {
        basis.start(width);
    }
    const std::int64_t before = steps_ - basis.steps();
    const std::int64_t applications = applications_ - basis.applications();
    for (;;) {
        const bool ends = steps_ >= options_.max_iterations || monitor_.interrupted();
        save_if_asked(pool, ends, [&](SolverState<T>& state) { basis.save(state, "pencil_"); });
        if (ends) {
            return std::nullopt;
        }
        if (basis.next_width() > 0) {
            basis.step();
        }
        steps_ = before + basis.steps();
        applications_ = applications + basis.applications();
        if (!basis.full() && !basis.ritz_due()) {
            continue;
        }
        basis.ritz();
        const double rho = basis.ritz_residual(0);
        const double threshold = tol_ * basis.norm();
        const double noise =
            carried_margin * std::min(tol_, attainable_tolerance<T>(0)) * basis.norm();
        monitor_.report(steps_, options_.k, basis.norm() > 0 ? rho / basis.norm() : 0, "verify");
        const ComplementVerdict verdict =
            judge_complement(0, basis.ritz_value(0), rho, threshold, noise, dimensions_);
        tied = verdict == ComplementVerdict::tied;
        if (verdict == ComplementVerdict::outside || tied) {
            return BlockVector<T>(ctx_, problem_.a.row_map(), 0);
        }
        if (verdict == ComplementVerdict::inside) {
            int inside = 0;
            const int converged = std::max(1, basis.converged_prefix(threshold));
            while (inside < converged && basis.ritz_value(inside) < -threshold - rho) {
                ++inside;
            }
            basis.restart(inside, 0);
            std::vector<int> order(static_cast<std::size_t>(inside));
            std::iota(order.begin(), order.end(), 0);
            BlockVector<T> found;
            ctx_.comm().agree([&] { found = BlockVector<T>(ctx_, problem_.a.row_map(), inside); });
            basis.extract(order, found.view());
            return found;
        }
        if (basis.full()) {
            basis.restart(0, width);
        }
    }
}

#define QUIVER_INSTANTIATE(T)                                                                  \
    template void Lobpcg<T>::take_complement(LobpcgSpace<T>&, const SavedState<T>&);           \
    template std::optional<BlockVector<T>> Lobpcg<T>::search_complement(LobpcgSpace<T>&, bool, \
                                                                        bool&);                \
    template std::optional<BlockVector<T>> Lobpcg<T>::search_pencil(LobpcgSpace<T>&, bool&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
