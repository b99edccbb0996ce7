// SPDX-License-Identifier: BSD-3-Clause
#include "apps/bench/scaling_points.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "apps/bench/timer.hpp"
#include "apps/problem.hpp"
#include "apps/run.hpp"
#include "blockvec/block_vector.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/random.hpp"
#include "kernels/rank_links.hpp"
#include "kernels/tsmttsm.hpp"
#include "solvers/eigen/block_lanczos.hpp"

namespace quiver::apps::bench {
namespace {

/// The timed solve: some restarts of a small basis.
constexpr int solver_pairs = 4;
constexpr int solver_basis = 64;
constexpr int solver_steps = 24;

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

/// Median over samples of the seconds of one call on the slowest rank (`least`: on the fastest). A
/// sample has `calls` calls; if 0, as many as take 20 ms, at most 200.
template <class Work>
double seconds_of(Context& ctx, int repeat, int calls, bool least, Work&& work) {
    Timer timer(ctx);
    const Comm& comm = ctx.comm();
    work();
    work();
    ctx.synchronize();
    if (calls == 0) {
        const double once = comm.max(timer.time(1, work));
        calls = static_cast<int>(std::clamp(0.02 / std::max(once, 1e-9), 1.0, 200.0));
    }
    std::vector<double> samples;
    for (int i = 0; i < repeat; ++i) {
        comm.barrier();
        const double mine = timer.time(calls, work) / calls;
        ctx.synchronize();
        samples.push_back(least ? -comm.max(-mine) : comm.max(mine));
    }
    return median(std::move(samples));
}

std::int64_t sums_counted(Context& ctx) {
    std::int64_t count = 0;
    for (const KernelRecord& record : ctx.ledger().records()) {
        count += std::strcmp(record.call.name, "sum over ranks") == 0 ? record.calls : 0;
    }
    return count;
}

/// Measures a step of block Lanczos: its seconds, including its share of the restarts, and its
/// number of reductions.
void measure_steps(Context& ctx, SparseMatrix<double>& a, ScalingPoint& point) {
    EigenOptions options;
    options.k = solver_pairs;
    options.block = scaling_width;
    options.max_basis = solver_basis;
    options.max_iterations = solver_steps;
    options.tol = 1e-12;
    std::vector<IterationEvent> events;
    ctx.set_event_sink([&](const Event& event) {
        if (const auto* iteration = std::get_if<IterationEvent>(&event)) {
            events.push_back(*iteration);
        }
    });
    // The first run compiles kernels and fills pools.
    for (int run = 0; run < 2; ++run) {
        events.clear();
        ctx.ledger().clear();
        ctx.comm().barrier();
        block_lanczos(ctx, EigenProblem<double>{a}, options);
        ctx.synchronize();
    }
    ctx.set_event_sink({});
    // Measure from the first full basis on, because from there the work repeats.
    const auto first = std::find_if(events.begin(), events.end(), [](const IterationEvent& event) {
        return event.iteration * scaling_width >= solver_basis - scaling_width;
    });
    const auto last = std::find_if(events.rbegin(), events.rend(), [](const IterationEvent& event) {
        return std::strcmp(event.stage, "search") == 0;
    });
    if (first != events.end() && last != events.rend() && last->iteration > first->iteration) {
        const double steps = static_cast<double>(last->iteration - first->iteration);
        point.step_seconds = ctx.comm().max((last->seconds - first->seconds) / steps);
    }
    point.sums_a_step = static_cast<double>(sums_counted(ctx)) / solver_steps;
}

/// A matrix that gives each rank its own rows of X, or those of the next rank.
class Shift {
  public:
    Shift(Context& ctx, std::int64_t rows_each, bool to_next_rank)
        : a_(ctx, rows(ctx, rows_each, to_next_rank)),
          x_(ctx, a_.row_map(), scaling_width),
          y_(ctx, a_.row_map(), scaling_width) {
        fill(ctx, 1.0, x_.view());
    }
    double seconds(Context& ctx, int repeat) {
        return seconds_of(ctx, repeat, 0, false,
                          [&] { a_.apply(ctx, std::as_const(x_).view(), y_.view()); });
    }

  private:
    static CsrRows<double> rows(Context& ctx, std::int64_t rows_each, bool to_next_rank) {
        const std::int64_t all = rows_each * ctx.comm().size();
        const std::int64_t shift = to_next_rank ? rows_each : 0;
        return rows_from_callback<double>(ctx.comm(), all, Symmetry::general,
                                          [=](std::int64_t row, RowEntries<double>& entries) {
                                              entries.add((row + shift) % all, 1.0);
                                          });
    }
    SparseMatrix<double> a_;
    BlockVector<double> x_;
    BlockVector<double> y_;
};

}  // namespace

ScalingPoint measure_point(Context& ctx, const std::string& family, const std::string& matrix,
                           int repeat, const ReorderingOptions& distribution) {
    const Comm& comm = ctx.comm();
    ScalingPoint point;
    point.family = family;
    point.matrix = matrix;
    Stopwatch watch;
    const Problem problem = inspect_problem(comm, matrix);
    CsrRows<double> rows_of_rank = load_problem<double>(comm, problem, ctx.threads());
    const Reordering numbering = plan_reordering(comm, rows_of_rank, distribution);
    point.distribution = numbering.facts();
    SparseMatrix<double> a(ctx, numbering.permute(comm, std::move(rows_of_rank)),
                           {.width = scaling_width});
    ctx.synchronize();
    point.setup_seconds = comm.max(watch.lap());
    point.rows = static_cast<double>(a.row_map().global_rows());
    point.nonzeros = static_cast<double>(a.global_nonzeros());
    const auto rows = static_cast<double>(a.row_map().local_rows());
    point.load = {comm.size(), comm.max(rows), comm.max(static_cast<double>(a.local_nonzeros())),
                  comm.max(rows == 0 ? 0 : static_cast<double>(a.boundary_rows()) / rows),
                  comm.max(static_cast<double>(a.halo_size()))};
    {
        BlockVector<double> user;
        BlockVector<double> x;
        BlockVector<double> y;
        comm.agree([&] {
            user = BlockVector<double>(ctx, numbering.user_map(), scaling_width);
            x = BlockVector<double>(ctx, a.row_map(), scaling_width);
            y = BlockVector<double>(ctx, a.row_map(), scaling_width);
        });
        // The same X on every number of ranks, in any numbering.
        fill_random(ctx, 1, user);
        numbering.to_solver(ctx, std::as_const(user).view(), x.view());
        user = {};
        point.product_seconds = seconds_of(
            ctx, repeat, 0, false, [&] { a.apply(ctx, std::as_const(x).view(), y.view()); });
        point.norms.resize(scaling_width);
        norms(ctx, std::as_const(y).view(), std::span<double>(point.norms));
    }
    measure_steps(ctx, a, point);
    return point;
}

std::vector<SumPoint> measure_sums(Context& ctx, int repeat) {
    const Comm& comm = ctx.comm();
    constexpr std::size_t count = std::size_t{scaling_sum} * scaling_sum;
    constexpr std::size_t bytes = count * sizeof(double);
    const std::int64_t rows = ctx.place() == Place::device ? 100'000 : 2'000;
    BlockVector<double> x(ctx, RowMap::by_rows(comm, rows * comm.size()), scaling_sum);
    fill_random(ctx, 1, x);
    SmallMatrix<double> c(scaling_sum, scaling_sum);
    const Buffer values = ctx.allocate(memory_kind(ctx.place()), bytes, "a sum");
    const BlockView<double> view(values.as<double>(), scaling_sum, scaling_sum, scaling_sum,
                                 ctx.place());
    fill(ctx, 0.0, view);
    const auto product = [&](Reduce reduce) {
        const BlockView<const double> block = std::as_const(x).view();
        return seconds_of(ctx, repeat, 50, false,
                          [&] { tsmttsm(ctx, 1.0, block, block, 0.0, c, reduce); });
    };
    const double local = product(Reduce::this_rank);
    RankLinks& links = ctx.service<RankLinks>();
    std::vector<SumPoint> points;
    for (const SumBy way : {SumBy::peers, SumBy::nccl, SumBy::mpi}) {
        try {
            links.choose(way);
        } catch (const UnsupportedError&) {
            continue;
        }
        const auto sum = [&] {
            if (links.sums_on_device(bytes)) {
                links.sum(ctx, values.as<double>(), count);
                return;
            }
            if (ctx.place() == Place::host) {
                comm.sum(std::span<double>(values.as<double>(), count));
                return;
            }
            const Scratch pinned = ctx.scratch(MemoryKind::pinned, bytes);
            device::copy(pinned.as<void>(), values.as<void>(), bytes, ctx.stream());
            ctx.synchronize();
            comm.sum(std::span<double>(pinned.as<double>(), count));
            device::copy(values.as<void>(), pinned.as<void>(), bytes, ctx.stream());
            ctx.synchronize();
        };
        SumPoint point;
        point.ranks = comm.size();
        point.way = to_string(way);
        point.alone = seconds_of(ctx, 5 * repeat, 1, true, sum);
        point.back_to_back = seconds_of(ctx, repeat, 100, false, sum);
        point.in_step = std::max(0.0, product(Reduce::all_ranks) - local);
        links.check();
        points.push_back(point);
    }
    links.choose(SumBy::automatic);
    return points;
}

Curve measure_halo(Context& ctx, int repeat) {
    if (ctx.comm().size() == 1) {
        return {};
    }
    Curve curve;
    const std::int64_t many = ctx.place() == Place::device ? 200'000 : 20'000;
    for (const std::int64_t rows : {std::int64_t{64}, many, 16 * many}) {
        const double apart = Shift(ctx, rows, false).seconds(ctx, repeat);
        curve.points.emplace_back(static_cast<double>(rows) * scaling_width * sizeof(double),
                                  Shift(ctx, rows, true).seconds(ctx, repeat) - apart);
    }
    return curve;
}

}  // namespace quiver::apps::bench
