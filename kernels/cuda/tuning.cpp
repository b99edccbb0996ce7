// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/tuning.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>

#include "blockvec/error.hpp"
#include "kernels/cuda/cuda_kernels.hpp"
#include "kernels/cuda/launcher.hpp"
#include "kernels/cuda/planned_products.hpp"
#include "kernels/cuda/planner.hpp"
#include "kernels/cuda/specialiser.hpp"
#include "kernels/cuda/tiling.hpp"
#include "kernels/output_file.hpp"
#include "kernels/random.hpp"

namespace quiver {
namespace {

using namespace cuda;

constexpr int least_runs = 5;
/// Number of rows of the result that are compared.
constexpr std::int64_t compared_rows = 2048;

/// The differences between the operations, so that one search serves both.
template <class T>
struct Tsmttsm {
    using Plan = TsmttsmPlan;
    static constexpr auto plans = tsmttsm_plans;

    /// Plans that differ in rows, stages and blocks only belong to one family.
    static std::string family(Plan plan) {
        plan.rows = plan.stages = plan.blocks = 1;
        return to_text(plan);
    }
    /// Plans that differ from `plan` in the fields that the model does not rank.
    static std::vector<Plan> variants(const Plan& plan) {
        std::vector<Plan> all;
        for (const int unroll : {1, 2, 8}) {
            all.push_back(plan);
            all.back().unroll = unroll;
        }
        if (!plan.tensor && !plan.streamed) {
            all.push_back(plan);
            all.back().blocked = true;
        }
        return all;
    }
    static double row_bytes(const TuneCase& which) {
        return static_cast<double>(sizeof(T)) * (which.m + (which.same ? 0 : which.n));
    }
    static double depth(const TuneCase&, std::int64_t rows) { return static_cast<double>(rows); }
    static std::int64_t result_rows(const TuneCase& which, std::int64_t) { return which.m; }
};

template <class T>
struct Tsmm {
    using Plan = TsmmPlan;
    static constexpr auto plans = tsmm_plans;

    static std::string family(Plan plan) {
        plan.stages = 2;
        plan.blocks = 1;
        return to_text(plan);
    }
    static std::vector<Plan> variants(const Plan&) { return {}; }
    static double row_bytes(const TuneCase& which) {
        return static_cast<double>(sizeof(T)) * (which.m + which.n);
    }
    static double depth(const TuneCase& which, std::int64_t) { return which.m; }
    static std::int64_t result_rows(const TuneCase&, std::int64_t rows) {
        return std::min(rows, compared_rows);
    }
};

/// The operands of a tuning run, as large as any case needs, filled once per scalar type.
template <class T>
class Operands {
  public:
    Operands(Context& ctx, std::size_t bytes)
        : first_(ctx.allocate(MemoryKind::device, bytes, "the operands of the search")),
          second_(ctx.allocate(MemoryKind::device, bytes, "the operands of the search")),
          small_(ctx.allocate(MemoryKind::device, 512 * 512 * sizeof(T), "small results")),
          workspace_(ctx.allocate(MemoryKind::device, workspace_bytes, "partial sums")),
          bytes_(bytes) {
        fill(ctx, 1, first_, bytes);
        fill(ctx, 2, second_, bytes);
        fill(ctx, 3, small_, 512 * 512 * sizeof(T));
    }
    T* first() { return first_.as<T>(); }
    T* second() { return second_.as<T>(); }
    T* small() { return small_.as<T>(); }
    void* workspace() { return workspace_.as<void>(); }
    static constexpr std::size_t workspace_bytes = 256u << 20;
    std::int64_t rows(double row_bytes) const {
        return std::max<std::int64_t>(
            1, static_cast<std::int64_t>(static_cast<double>(bytes_) / row_bytes));
    }

  private:
    static void fill(Context& ctx, std::uint64_t seed, Buffer& buffer, std::size_t bytes) {
        constexpr int cols = 8;
        const auto rows = static_cast<std::int64_t>(bytes / (cols * sizeof(T)));
        fill_random<T>(ctx, seed, 0, 0,
                       BlockView<T>(buffer.as<T>(), rows, cols, cols, Place::device));
    }
    Buffer first_, second_, small_, workspace_;
    std::size_t bytes_;
};

/// The median time of several runs on the stream, by events.
template <class Run>
double median_seconds(Context& ctx, Run&& run) {
    const DeviceEvent begin = device::create_event(true);
    const DeviceEvent end = device::create_event(true);
    std::vector<double> seconds;
    double sum = 0;
    while (seconds.size() < least_runs || (sum < 2e-3 && seconds.size() < 50)) {
        device::record(begin, ctx.stream());
        run();
        device::record(end, ctx.stream());
        device::synchronize(end);
        seconds.push_back(device::elapsed_seconds(begin, end));
        sum += seconds.back();
    }
    device::destroy_event(begin);
    device::destroy_event(end);
    std::sort(seconds.begin(), seconds.end());
    return seconds[seconds.size() / 2];
}

template <class T, class Op>
class Search {
  public:
    Search(Context& ctx, const TuneOptions& options, Operands<T>& operands)
        : ctx_(ctx), options_(options), operands_(operands) {}

    /// The best plans by the model, at most two per family, variants of the first one, the former
    /// choice, and plans that are good for shapes a few columns away.
    std::vector<typename Op::Plan> candidates(const TuneCase& which) {
        const ProductShape shape(which.scalar, which.m, which.n, which.same);
        const Machine& machine = ctx_.service<Planner>().machine();
        std::vector<typename Op::Plan> chosen;
        std::map<std::string, int> family;
        for (const auto& plan : Op::plans(shape, machine, 2000)) {
            if (static_cast<int>(chosen.size()) < options_.candidates &&
                ++family[Op::family(plan)] <= 2) {
                chosen.push_back(plan);
            }
        }
        if (!chosen.empty()) {
            for (const auto& plan : Op::variants(typename Op::Plan(chosen.front()))) {
                chosen.push_back(plan);
            }
        }
        constexpr int most_former = 5;
        int added = 0;
        for (const int away : {0, 1, 2, 3, 4, -1, -2, -3, -4, 8}) {
            const int m = which.m + away;
            const int n = which.n + away;
            if (m < 1 || n < 1 || n > widest_panel || added == most_former) {
                continue;
            }
            const auto former = ctx_.service<Planner>().plan<typename Op::Plan>(
                {{which.scalar, m, n, which.same}, layout(m), layout(n)});
            if (former && std::find(chosen.begin(), chosen.end(), *former) == chosen.end() &&
                kernel_of(*former, shape, layout(which.m), layout(which.n), machine)) {
                chosen.push_back(*former);
                ++added;
            }
        }
        return chosen;
    }

    PlannedKernel kernel(const TuneCase& which, const typename Op::Plan& plan) {
        return kernel_of(plan, served(which), ctx_.service<Planner>().machine()).value();
    }

    TuneResult run(const TuneCase& which) {
        TuneResult result;
        result.which = which;
        const auto former = ctx_.service<Planner>().plan<typename Op::Plan>(served(which));
        const std::int64_t rows = operands_.rows(Op::row_bytes(which));
        std::vector<T> reference;
        bool first = true;
        double least = 0;
        for (const auto& plan : candidates(which)) {
            double seconds = 0;
            try {
                seconds = time(which, plan, rows, reference);
            } catch (const Error& error) {
                result.rejected.push_back(to_text(plan) + ": " + error.what());
                continue;
            }
            ++result.timed;
            if (first) {
                result.model_seconds = seconds;
                first = false;
            }
            if (former && *former == plan) {
                result.former_seconds = seconds;
            }
            const double cost = seconds * spill_factor(kernel(which, plan));
            if (result.plan.empty() || cost < least) {
                result.plan = to_text(plan);
                result.seconds = seconds;
                least = cost;
            }
        }
        return result;
    }

  private:
    /// The layout of the operands: aligned and without gaps.
    static Layout layout(int columns) { return Layout::of(nullptr, columns, columns, sizeof(T)); }
    static Served served(const TuneCase& which) {
        return {{which.scalar, which.m, which.n, which.same}, layout(which.m), layout(which.n)};
    }

    double time(const TuneCase& which, const typename Op::Plan& plan, std::int64_t rows,
                std::vector<T>& reference) {
        const std::int64_t result_rows = Op::result_rows(which, rows);
        const std::size_t count =
            static_cast<std::size_t>(result_rows) * static_cast<std::size_t>(which.n);
        T* output = nullptr;
        std::function<void()> call;
        if constexpr (std::is_same_v<typename Op::Plan, TsmttsmPlan>) {
            T* const b = which.same ? operands_.first() : operands_.second();
            output = operands_.small() + 256 * 512;
            const TsmttsmArgs<T> args{rows,    which.m, which.n, T(1), operands_.first(),
                                      which.m, b,       which.n, T(0), output,
                                      which.n};
            if (workspace_bytes(ctx_, args, plan) > operands_.workspace_bytes) {
                throw MemoryError("the partial sums exceed the workspace of the search");
            }
            call = [this, args, plan] { cuda::tsmttsm(ctx_, args, plan, operands_.workspace()); };
        } else {
            output = operands_.second();
            const TsmmArgs<T> args{rows,    which.m,           which.n, T(1), operands_.first(),
                                   which.m, operands_.small(), which.n, T(0), output,
                                   which.n};
            call = [this, args, plan] { cuda::tsmm(ctx_, args, plan); };
        }
        device::check(cudaMemsetAsync(output, 0xff, count * sizeof(T),
                                      static_cast<cudaStream_t>(ctx_.stream())),
                      "cudaMemsetAsync");
        call();
        std::vector<T> values(count);
        device::copy(values.data(), output, count * sizeof(T), ctx_.stream());
        ctx_.synchronize();
        check(values, reference, Op::depth(which, rows));
        return median_seconds(ctx_, call);
    }

    /// Spilled registers cause memory traffic that slows other concurrent kernels: a plan with
    /// spills must be clearly faster than one without.
    double spill_factor(const PlannedKernel& planned) {
        const Kernel& kernel =
            ctx_.service<Specialiser>().get(ctx_, planned.source, planned.expression);
        cudaFuncAttributes attributes;
        device::check(cudaFuncGetAttributes(&attributes, static_cast<const void*>(kernel.handle)),
                      "cudaFuncGetAttributes");
        return attributes.localSizeBytes > 0 ? 1.1 : 1;
    }

    static void check(const std::vector<T>& values, std::vector<T>& reference, double depth) {
        if (reference.empty()) {
            reference = values;
        }
        using R = real_t<T>;
        double largest = 0;
        for (const T& value : reference) {
            largest = std::max(largest, static_cast<double>(std::abs(value)));
        }
        // Error bound for sums of `depth` products in another order.
        const double bound = 200 * static_cast<double>(std::numeric_limits<R>::epsilon()) *
                             (std::sqrt(depth) + 10 + largest);
        for (std::size_t i = 0; i < values.size(); ++i) {
            const auto difference = static_cast<double>(std::abs(values[i] - reference[i]));
            if (!(difference <= bound)) {
                throw NumericalError("entry " + std::to_string(i) + " is " +
                                     std::to_string(difference) +
                                     " away from the result of the first plan");
            }
        }
    }

    Context& ctx_;
    const TuneOptions& options_;
    Operands<T>& operands_;
};

template <class T>
void tune_scalar(Context& ctx, const std::vector<TuneCase>& cases, const TuneOptions& options,
                 std::size_t bytes, const std::function<void(const TuneResult&)>& report) {
    Operands<T> operands(ctx, bytes);
    Search<T, Tsmttsm<T>> tsmttsm(ctx, options, operands);
    Search<T, Tsmm<T>> tsmm(ctx, options, operands);
    // Groups of cases are compiled together, in parallel.
    constexpr std::size_t together = 16;
    for (std::size_t begin = 0; begin < cases.size(); begin += together) {
        const std::span<const TuneCase> part(cases.data() + begin,
                                             std::min(together, cases.size() - begin));
        std::map<std::string, std::vector<std::string>> expressions;
        for (const TuneCase& which : part) {
            const auto collect = [&](auto& search) {
                for (const auto& plan : search.candidates(which)) {
                    const PlannedKernel kernel = search.kernel(which, plan);
                    expressions[kernel.source].push_back(kernel.expression);
                }
            };
            if (which.operation == "tsmm") {
                collect(tsmm);
            } else {
                collect(tsmttsm);
            }
        }
        for (const auto& [source, wanted] : expressions) {
            ctx.service<Specialiser>().prepare(source.c_str(), wanted, options.threads);
        }
        for (const TuneCase& which : part) {
            report(which.operation == "tsmm" ? tsmm.run(which) : tsmttsm.run(which));
        }
    }
}

/// The table of a file. Throws InputError if it belongs to another GPU.
TuningTable table_of(Context& ctx, const std::string& file) {
    TuningTable table;
    table.add_file(file);
    table.require(ctx.service<Planner>().machine(), file);
    return table;
}

}  // namespace

void choose_plans(Context& ctx, const PlanChoice& choice) {
    if (ctx.place() == Place::device) {
        choose_spmmv(ctx, choice.sparse);
        choose_batched(ctx, choice.batched);
        ctx.service<Planner>().choose(choice);
    }
}

void tune(Context& ctx, std::span<const TuneCase> cases, const TuneOptions& options,
          const std::function<void(const TuneResult&)>& report) {
    if (ctx.place() != Place::device) {
        throw UnsupportedError("tune: only kernels on a GPU have plans to choose from");
    }
    const double free_bytes = static_cast<double>(device::properties(ctx.device().id).free_bytes);
    const double wanted = options.operand_bytes > 0 ? options.operand_bytes : 1e9;
    const auto bytes = static_cast<std::size_t>(std::min(wanted, free_bytes / 4));
    for (const Dtype scalar : {Dtype::s, Dtype::d, Dtype::c, Dtype::z}) {
        std::vector<TuneCase> own;
        std::copy_if(cases.begin(), cases.end(), std::back_inserter(own),
                     [&](const TuneCase& which) { return which.scalar == scalar; });
        if (!own.empty()) {
            visit_dtype(scalar,
                        [&]<class T>() { tune_scalar<T>(ctx, own, options, bytes, report); });
        }
    }
}

std::string tuning_row(const TuneCase& which) {
    return TuningTable::key(which.operation.c_str(),
                            ProductShape(which.scalar, which.m, which.n, which.same));
}

std::string default_tuning_file() {
    return Planner::default_path();
}

std::vector<std::string> tuned_rows(Context& ctx, const std::string& file) {
    const TuningTable table = table_of(ctx, file);
    std::vector<std::string> rows;
    for (const auto& [key, plan] : table.rows()) {
        rows.push_back(key);
    }
    return rows;
}

void save_tuning(Context& ctx, const std::string& file, std::span<const TuneResult> results) {
    TuningTable table = table_of(ctx, file);
    for (const TuneResult& result : results) {
        if (!result.plan.empty()) {
            table.set(tuning_row(result.which), result.plan);
        }
    }
    std::ostringstream text;
    text << "# Plans found by quiver tune; see kernels/cuda/plan.hpp.\ngpu "
         << capability_text(ctx.service<Planner>().machine().capability) << " "
         << device::properties(ctx.device().id).name << "\n"
         << table.text();
    write_output(file, text.str());
}

}  // namespace quiver
