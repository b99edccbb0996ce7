// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/chebyshev/ritz_block.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <numeric>
#include <string>
#include <utility>

#include "blockvec/error.hpp"
#include "blockvec/number_text.hpp"
#include "blockvec/scalar_list.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/prepare.hpp"
#include "kernels/random.hpp"
#include "kernels/tsmm.hpp"
#include "kernels/tsmttsm.hpp"
#include "solvers/eigen/search/block_memory.hpp"
#include "solvers/eigen/search/given_columns.hpp"
#include "solvers/eigen/search/rayleigh_ritz.hpp"
#include "solvers/orth/block_gram_schmidt.hpp"
#include "solvers/small_dense.hpp"

namespace quiver {
namespace {

/// All ranks hold the same small matrices, so all of them throw.
[[noreturn]] void fail(std::int64_t step, const std::string& text) {
    NumericalError error("subspace iteration: after " + std::to_string(step) + " block products " +
                         text);
    error.set_collective();
    throw error;
}

}  // namespace

template <class T>
RitzBlock<T>::RitzBlock(Context& ctx, const EigenProblem<T>& problem, SpectralOrder order,
                        std::uint64_t seed, const Room& room)
    : ctx_(ctx),
      a_(problem.a),
      order_(order),
      seed_(seed),
      fixed_(problem.constraints.cols),
      room_(room) {
    const int columns = fixed_ + room.locked + 2 * room.active + room.fresh;
    const int wanted = room.locked - room.fresh;
    // At the end the wanted columns are copied into the result.
    claim_block_memory<T>(ctx, a_.row_map(), columns + wanted, "subspace iteration: blocks");
    std::vector<int> widths = {room.active - 2 * room.fresh, wanted, 2 * room.fresh, room.fresh, 1};
    // For a small matrix some of these widths are zero or negative.
    std::erase_if(widths, [](int width) { return width < 1; });
    for (const int stride : {wanted, room.active}) {
        prepare_products<T>(ctx, {.rows = a_.row_map().local_rows(),
                                  .blocks = widths,
                                  .bases = {fixed_ + wanted},
                                  .stride = stride});
    }
    a_.prepare(ctx, widths);
    ctx.comm().agree([&] {
        outer_ = BlockVector<T>(ctx, a_.row_map(), 0, fixed_ + room.locked);
        x_ = BlockVector<T>(ctx, a_.row_map(), 0, room.active);
        ax_ = BlockVector<T>(ctx, a_.row_map(), 0, room.active);
        fresh_ = BlockVector<T>(ctx, a_.row_map(), 0, room.fresh);
    });
    take_constraints<T>(ctx, a_.row_map(), problem.constraints, outer_.columns(0, fixed_));
}

template <class T>
void RitzBlock<T>::start(BlockView<const T> guesses, int width) {
    active_ = width;
    fill_start_block<T>(ctx_, a_.row_map(), next_seed(), guesses, active_block());
}

template <class T>
void RitzBlock<T>::project(BlockView<T> x, BlockView<const T> basis) {
    if (basis.cols > 0) {
        SmallMatrix<T> share(basis.cols, x.cols);
        tsmttsm(ctx_, T(1), basis, x, T(0), share);
        tsmm(ctx_, T(-1), basis, share.view(), T(1), x);
    }
}

template <class T>
void RitzBlock<T>::rayleigh_ritz(std::int64_t step) {
    OrthResult<T> orth;
    try {
        orth =
            block_gram_schmidt<T>(ctx_, a_.row_map(), outer(), active_block(), {true, next_seed()});
    } catch (const NumericalError& error) {
        a_.rethrow_pending();
        fail(step, std::string("the operator failed on some rank, or its product is not finite (") +
                       error.what() + ")");
    }
    if (orth.columns < active_) {  // the block spans the rest of the space
        copy(ctx_, active_block().columns(0, orth.columns), packed(ax_, orth.columns));
        std::swap(x_, ax_);
        active_ = orth.columns;
    }
    rotate_to_ritz(active_block(), packed(ax_, active_), step, pair_);
}

template <class T>
void RitzBlock<T>::rotate_to_ritz(BlockView<T> x, BlockView<T> ax, std::int64_t step,
                                  std::vector<RitzPair>& pairs) {
    const int n = x.cols;
    for (int first = 0; first < n; first += product_width) {
        const int width = std::min(product_width, n - first);
        a_.apply(ctx_, x.columns(first, width), ax.columns(first, width));
    }
    project(ax, constraints());
    const auto fail_here = [&](const std::string& text) { fail(step, text); };
    const auto check = [&](const SmallMatrix<T>& h) {
        a_.rethrow_pending();
        for (int i = 0; i < n; ++i) {
            if (!is_finite(h(i, i))) {
                fail(step,
                     "the operator failed on some rank or its product is not finite, in column " +
                         std::to_string(i) + " of " + std::to_string(n));
            }
        }
        HermitianDefect defect(norm_);
        defect.see_matrix(h);
        defect.check<T>(fail_here);
    };
    pairs = quiver::rayleigh_ritz<T>(
        ctx_, x, x, ax, 0, [&](double value) { return order_.key(value); }, check, fail_here);
    for (const RitzPair& pair : pairs) {
        norm_ = std::max(norm_, std::abs(pair.value));
    }
}

template <class T>
int RitzBlock<T>::converged_prefix(double bound) const {
    int count = 0;
    while (count < active_ && residual(count) <= bound) {
        ++count;
    }
    return count;
}

template <class T>
int RitzBlock<T>::move_back(const std::function<bool(int)>& unfit) {
    std::vector<int> order(static_cast<std::size_t>(active_));
    std::iota(order.begin(), order.end(), 0);
    const auto last =
        std::stable_partition(order.begin(), order.end(), [&](int j) { return !unfit(j); });
    if (!std::is_sorted(order.begin(), order.end())) {
        gather_columns(ctx_, active_block(), order, active_block());
        std::vector<RitzPair> pairs;
        pairs.reserve(order.size());
        for (const int j : order) {
            pairs.push_back(active_pair(j));
        }
        pair_ = std::move(pairs);
    }
    return static_cast<int>(last - order.begin());
}

template <class T>
void RitzBlock<T>::lock(int count) {
    if (count == 0) {
        return;
    }
    const int rest = active_ - count;
    copy(ctx_, active_block().columns(0, count), outer_.columns(fixed_ + locked(), count));
    copy(ctx_, active_block().columns(count, rest), packed(ax_, rest));
    std::swap(x_, ax_);
    active_ = rest;
    locked_pair_.insert(locked_pair_.end(), pair_.begin(), pair_.begin() + count);
    pair_.erase(pair_.begin(), pair_.begin() + count);
    refined_ = false;
}

template <class T>
void RitzBlock<T>::refine(std::int64_t step) {
    rotate_to_ritz(locked_block(), packed(ax_, locked()), step, locked_pair_);
    refined_ = true;
}

template <class T>
void RitzBlock<T>::release(double bound, int most) {
    std::vector<int> order;
    std::vector<int> released;
    std::vector<RitzPair> pairs;
    for (int j = 0; j < locked(); ++j) {
        if (locked_residual(j) <= bound && static_cast<int>(order.size()) < most) {
            order.push_back(j);
            pairs.push_back(locked_pair(j));
        } else {
            released.push_back(j);
        }
    }
    const int count = static_cast<int>(released.size());
    const int kept = std::min(active_, room_.active - count);
    const BlockView<T> next = packed(ax_, count + kept);
    gather_columns(ctx_, locked_block(), released, next.columns(0, count));
    copy(ctx_, active_block().columns(0, kept), next.columns(count, kept));
    gather_columns(ctx_, locked_block(), order,
                   outer_.columns(fixed_, locked()).columns(0, static_cast<int>(order.size())));
    std::swap(x_, ax_);
    active_ = count + kept;
    locked_pair_ = std::move(pairs);
}

template <class T>
BlockView<T> RitzBlock<T>::make_fresh(int columns, int deflating) {
    const BlockView<T> fresh = packed(fresh_, columns);
    fill_random(ctx_, next_seed(), a_.row_map().first_row(), 0, fresh);
    for (int pass = 0; pass < 2; ++pass) {
        project(fresh, outer());
        project(fresh, active_block().columns(0, deflating));
    }
    return fresh;
}

template <class T>
std::vector<double> RitzBlock<T>::fresh_lengths(BlockView<T> fresh, std::int64_t step) {
    project(fresh, outer());
    std::vector<Real> length(static_cast<std::size_t>(fresh.cols));
    norms(ctx_, fresh, std::span<Real>(length));
    if (!std::all_of(length.begin(), length.end(), [](Real x) { return std::isfinite(x); })) {
        a_.rethrow_pending();
        fail(step, "the operator failed on some rank, or its product is not finite");
    }
    return {length.begin(), length.end()};
}

template <class T>
void RitzBlock<T>::append(BlockView<const T> fresh) {
    const int kept = std::min(active_, room_.active - fresh.cols);
    const BlockView<T> next = packed(ax_, kept + fresh.cols);
    copy(ctx_, active_block().columns(0, kept), next.columns(0, kept));
    copy(ctx_, fresh, next.columns(kept, fresh.cols));
    std::swap(x_, ax_);
    active_ = kept + fresh.cols;
}

template <class T>
double RitzBlock<T>::hidden_length(BlockView<const T> y, double cut) {
    SmallMatrix<T> share(active_, y.cols);
    tsmttsm(ctx_, T(1), active_block(), y, T(0), share);
    std::vector<double> hidden(static_cast<std::size_t>(y.cols), 0);
    for (int i = 0; i < active_; ++i) {
        const double distance = key(i) - cut;
        const double most = distance > 0 ? std::min(1.0, residual(i) / distance) : 1;
        for (int j = 0; j < y.cols; ++j) {
            hidden[static_cast<std::size_t>(j)] +=
                most * static_cast<double>(std::abs(share(i, j)));
        }
    }
    return *std::max_element(hidden.begin(), hidden.end());
}

template <class T>
std::vector<RitzPair> RitzBlock<T>::pairs(int active) const {
    std::vector<RitzPair> pairs = locked_pair_;
    pairs.insert(pairs.end(), pair_.begin(), pair_.begin() + active);
    return pairs;
}

template <class T>
void RitzBlock<T>::extract(const std::vector<int>& order, BlockView<T> y) {
    // Each run of columns from one block is gathered from that block: a joint copy of both blocks
    // might not fit the memory.
    const auto is_locked = [&](int j) { return j < locked(); };
    for (auto first = order.begin(); first != order.end();) {
        const bool from_locked = is_locked(*first);
        const auto last =
            std::find_if(first, order.end(), [&](int j) { return is_locked(j) != from_locked; });
        std::vector<int> columns(first, last);
        if (!from_locked) {
            std::for_each(columns.begin(), columns.end(), [&](int& j) { j -= locked(); });
        }
        gather_columns(
            ctx_, from_locked ? locked_block() : active_block(), columns,
            y.columns(static_cast<int>(first - order.begin()), static_cast<int>(columns.size())));
        first = last;
    }
}

template <class T>
void RitzBlock<T>::save(SolverState<T>& state) const {
    const auto add = [&](const std::string& name, const std::vector<RitzPair>& pairs) {
        std::vector<double>& values = state.numbers[name + "_values"];
        std::vector<double>& residuals = state.numbers[name + "_residuals"];
        for (const RitzPair& pair : pairs) {
            values.push_back(pair.value);
            residuals.push_back(pair.residual);
        }
    };
    add("locked", locked_pair_);
    add("active", pair_);
    state.numbers["norm"] = {norm_};
    state.numbers["refined"] = {refined_ ? 1.0 : 0.0};
    state.numbers["applications"] = {static_cast<double>(applications())};
    state.numbers["random_streams"] = {static_cast<double>(random_streams_)};
    state.blocks["locked"] = outer_.columns(fixed_, locked());
    const BlockView<const T> x = x_.columns(0, active_);
    state.blocks["active"] = {x.data, x.rows, active_, active_, x.place};
}

template <class T>
std::vector<RitzPair> RitzBlock<T>::read_pairs(const SavedState<T>& state, const std::string& name,
                                               int most) const {
    const std::vector<double>& values = state.values(name + "_values");
    if (values.size() > static_cast<std::size_t>(most)) {
        state.refuse(std::to_string(values.size()) + " pairs " + name +
                     ", but there is room only for " + std::to_string(most));
    }
    const std::vector<double>& residuals =
        state.values(name + "_residuals", static_cast<std::int64_t>(values.size()));
    std::vector<RitzPair> pairs;
    for (std::size_t j = 0; j < values.size(); ++j) {
        pairs.push_back({values[j], residuals[j]});
    }
    return pairs;
}

template <class T>
void RitzBlock<T>::restore(const SavedState<T>& state) {
    locked_pair_ = read_pairs(state, "locked", room_.locked);
    pair_ = read_pairs(state, "active", room_.active);
    active_ = static_cast<int>(pair_.size());
    norm_ = std::max(norm_, state.number("norm"));
    refined_ = state.flag("refined");
    applications_before_ = state.whole("applications", 0, most_count);
    random_streams_ = static_cast<std::uint64_t>(state.whole("random_streams", 0, most_count));
    state.read(ctx_, "locked", locked_block());
    state.read(ctx_, "active", active_block());
}

#define QUIVER_INSTANTIATE(T) template class RitzBlock<T>;
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
