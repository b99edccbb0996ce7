// SPDX-License-Identifier: BSD-3-Clause
#include "apps/bench/scaling.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/bench/runner.hpp"
#include "apps/bench/scaling_points.hpp"
#include "apps/execution.hpp"
#include "apps/report.hpp"
#include "blockvec/config.hpp"
#include "blockvec/error.hpp"
#include "kernels/rank_links.hpp"

namespace quiver::apps::bench {
namespace {

constexpr int most_modelled = 1024;
/// The shortest spin chain with enough rows for a solver that restarts.
constexpr int least_length = 8;

/// A Comm of the first ranks of another Comm.
class FirstRanks {
  public:
    FirstRanks(const Comm& all, int count) : member_(all.rank() < count) {
        MPI_Comm part = MPI_COMM_NULL;
        check_mpi(MPI_Comm_split(all.handle(), member_ ? 0 : MPI_UNDEFINED, all.rank(), &part),
                  "MPI_Comm_split");
        if (member_) {
            comm_ = Comm(part);
            MPI_Comm_free(&part);
        }
    }
    bool member() const { return member_; }
    const Comm& comm() const { return comm_; }

  private:
    bool member_;
    Comm comm_;
};

/// The matrices of one family.
struct Family {
    std::string name;
    /// strong: one matrix for all numbers of ranks. weak: by the number of ranks, matrices of the
    /// same size per rank, without an entry if no matrix has that size.
    std::string strong;
    std::map<int, std::string> weak;
};

struct Measured {
    std::vector<ScalingPoint> points;
    std::vector<SumPoint> sums;
    Curve halo;
    std::string sum_way = "one rank";
    std::string halo_way = "one rank";
    std::vector<std::string> failures;
    bool complete = true;
};

std::vector<int> counts_of(int ranks) {
    std::vector<int> counts;
    for (int count = 1; count < ranks; count *= 2) {
        counts.push_back(count);
    }
    counts.push_back(ranks);
    return counts;
}

std::vector<Family> families_of(const ScalingOptions& options, const std::vector<int>& counts) {
    const int most = counts.back();
    const int nx = std::max(options.nx / most, 1) * most;
    Family laplace{"laplace3d", fmt::format("gen:laplace3d,nx={}", nx), {}};
    Family spin{"spinSZ", fmt::format("gen:spinSZ,L={}", options.length), {}};
    for (const int count : counts) {
        laplace.weak[count] = count == most
                                  ? laplace.strong
                                  : fmt::format("gen:laplace3d,nx={},nz={}", nx, nx / most * count);
        // Two more spins give nearly four times as many states.
        const int fewer = static_cast<int>(std::lround(std::log2(double(most) / count)));
        if (fewer % 2 == 0 && options.length - fewer >= least_length) {
            spin.weak[count] = fmt::format("gen:spinSZ,L={}", options.length - fewer);
        }
    }
    return {laplace, spin};
}

const ScalingPoint* find(const Measured& measured, const std::string& matrix, int ranks) {
    const auto found = std::find_if(
        measured.points.begin(), measured.points.end(),
        [&](const ScalingPoint& p) { return p.matrix == matrix && p.load.ranks == ranks; });
    return found == measured.points.end() ? nullptr : &*found;
}

/// The work per rank and second, divided by that on one rank.
double efficiency(double amount, double seconds, int ranks, double first_amount,
                  double first_seconds) {
    return amount / (seconds * ranks) / (first_amount / first_seconds);
}

ScalingModel model_of(const Measured& measured, const std::string& family) {
    ScalingModel model;
    std::vector<std::pair<double, double>> product;
    std::vector<std::pair<double, double>> rest;
    for (const ScalingPoint& point : measured.points) {
        if (point.family != family) {
            continue;
        }
        model.sums_a_step = std::max(model.sums_a_step, point.sums_a_step);
        if (point.load.ranks == 1) {
            product.emplace_back(point.nonzeros, point.product_seconds);
            rest.emplace_back(point.rows, point.step_seconds - point.product_seconds);
        }
    }
    model.product = Curve::from_zero(std::move(product));
    model.rest = Curve::from_zero(std::move(rest));
    model.halo = measured.halo;
    model.row_bytes = scaling_width * sizeof(double);
    for (const SumPoint& sum : measured.sums) {
        if (model.sum.measured.empty() || model.sum.measured.back().first != sum.ranks) {
            model.sum.measured.emplace_back(sum.ranks, sum.alone);  // the library's choice is first
        }
    }
    return model;
}

constexpr const char* table_head =
    "scaling  ranks  matrix                           rows     halo %  bound %  product ms  model  "
    "  "
    "eff %   step ms    model    eff %  sums/step\n";

/// "+1.2%"; "-" if the ratio is not finite.
std::string percent_off(double ratio) {
    return std::isfinite(ratio) ? fmt::format("{:+.1f}%", 100 * (ratio - 1)) : "-";
}

std::string percent(double part) {
    return std::isfinite(part) ? fmt::format("{:.1f}", 100 * part) : "-";
}

std::string table_row(const char* kind, const ScalingPoint& p, const ScalingPoint& first,
                      const ScalingModel& model) {
    const double rank_rows = p.load.rows;
    return fmt::format(
        "{:<8} {:>5}  {:<30} {:>9.3g}  {:>6.1f}  {:>7.1f}  {:>10.4f} {:>7}  {:>5} {:>9.3f} "
        "{:>8}  {:>6}  {:>9.1f}\n",
        kind, p.load.ranks, p.matrix, p.rows, 100 * p.load.halo_rows / rank_rows,
        100 * p.load.boundary, 1e3 * p.product_seconds,
        percent_off(model.product_seconds(p.load) / p.product_seconds),
        percent(efficiency(p.nonzeros, p.product_seconds, p.load.ranks, first.nonzeros,
                           first.product_seconds)),
        1e3 * p.step_seconds, percent_off(model.step_seconds(p.load) / p.step_seconds),
        percent(efficiency(p.rows, p.step_seconds, p.load.ranks, first.rows, first.step_seconds)),
        p.sums_a_step);
}

std::string tables(const Measured& measured, const std::vector<Family>& families,
                   const std::vector<int>& counts) {
    std::string text = table_head;
    for (const Family& family : families) {
        const ScalingModel model = model_of(measured, family.name);
        const ScalingPoint* const first = find(measured, family.strong, 1);
        for (const int count : counts) {
            const ScalingPoint* const point = find(measured, family.strong, count);
            if (point != nullptr && first != nullptr) {
                text += table_row("strong", *point, *first, model);
            }
        }
        const ScalingPoint* first_weak = nullptr;
        for (const auto& [count, matrix] : family.weak) {
            const ScalingPoint* const point = find(measured, matrix, count);
            first_weak = first_weak == nullptr && count == 1 ? point : first_weak;
            if (point != nullptr && first_weak != nullptr) {
                text += table_row("weak", *point, *first_weak, model);
            }
        }
    }
    text += fmt::format(
        "\nsum of {0} x {0} doubles, us\nranks  way        alone  back to back  in a step\n",
        scaling_sum);
    for (const SumPoint& sum : measured.sums) {
        text += fmt::format("{:>5}  {:<9} {:>6.1f}  {:>12.1f}  {:>9.1f}\n", sum.ranks, sum.way,
                            1e6 * sum.alone, 1e6 * sum.back_to_back, 1e6 * sum.in_step);
    }
    text += fmt::format("sums by {}; halos by {}", measured.sum_way, measured.halo_way);
    const char* before = ": ";
    for (const auto& [bytes, seconds] : measured.halo.points) {
        text += fmt::format("{}{:.3g} MB in {:.1f} us", before, 1e-6 * bytes, 1e6 * seconds);
        before = ", ";
    }
    text += "\n";
    for (const std::string& failure : measured.failures) {
        text += "failed: " + failure + "\n";
    }
    if (!measured.complete) {
        text += "some cases did not run: the budget was spent\n";
    }
    return text;
}

/// The model's predictions for more ranks than were measured: the Laplacian, with rows in their
/// given order.
std::string extrapolation(const Measured& measured, const ScalingOptions& options, int ranks) {
    const ScalingModel model = model_of(measured, "laplace3d");
    if (model.product.points.size() < 2 || ranks == 1) {
        return "";
    }
    std::string text =
        "\nmodel, laplace3d, links as within this node, 5 us more for each doubling of the ranks\n"
        "ranks  weak product  weak step  strong product  strong step: efficiency %, then halo and "
        "sums "
        "in % of the step\n";
    const double nx = options.nx;
    const Load one = laplace3d_load(nx, nx, nx / ranks, 1);
    const Load all = laplace3d_load(nx, nx, nx, 1);
    for (int count = ranks; count <= most_modelled; count *= 4) {
        const Load weak = laplace3d_load(nx, nx, nx / ranks * count, count);
        const Load strong = laplace3d_load(nx, nx, nx, count);
        const double step = model.step_seconds(strong);
        text += fmt::format(
            "{:>5}  {:>12.1f}  {:>9.1f}  {:>14.1f}  {:>11.1f}  {:>6.1f} {:>6.1f}\n", count,
            100 * model.product_seconds(one) / model.product_seconds(weak),
            100 * model.step_seconds(one) / model.step_seconds(weak),
            100 * model.product_seconds(all) / model.product_seconds(strong) / count,
            100 * model.step_seconds(all) / step / count, 100 * model.halo_seconds(strong) / step,
            100 * model.sums_a_step * model.sum.at(count) / step);
    }
    return text;
}

std::string to_json(const Measured& measured, const ScalingOptions& options, const Context& ctx,
                    const std::vector<Family>& families) {
    using nlohmann::ordered_json;
    ordered_json results = ordered_json::array();
    for (const ScalingPoint& p : measured.points) {
        const ScalingModel model = model_of(measured, p.family);
        results.push_back({{"kernel", "scaling"},
                           {"matrix", p.matrix},
                           {"family", p.family},
                           {"ranks", p.load.ranks},
                           {"rows", p.rows},
                           {"nonzeros", p.nonzeros},
                           {"n", scaling_width},
                           {"distribution", json_distribution(p.distribution)},
                           {"halo_rows", p.load.halo_rows},
                           {"boundary_part", p.load.boundary},
                           {"setup_seconds", p.setup_seconds},
                           {"product_seconds", p.product_seconds},
                           {"product_model_seconds", model.product_seconds(p.load)},
                           {"step_seconds", p.step_seconds},
                           {"step_model_seconds", model.step_seconds(p.load)},
                           {"sums_a_step", p.sums_a_step}});
    }
    ordered_json sums = ordered_json::array();
    for (const SumPoint& sum : measured.sums) {
        sums.push_back({{"ranks", sum.ranks},
                        {"way", sum.way},
                        {"doubles", scaling_sum * scaling_sum},
                        {"alone_seconds", sum.alone},
                        {"back_to_back_seconds", sum.back_to_back},
                        {"in_step_seconds", sum.in_step}});
    }
    ordered_json weak = ordered_json::object();
    for (const Family& family : families) {
        for (const auto& [count, matrix] : family.weak) {
            weak[family.name][std::to_string(count)] = matrix;
        }
    }
    const bool cuda = ctx.place() == Place::device;
    ordered_json halo = ordered_json::array();
    for (const auto& [bytes, seconds] : measured.halo.points) {
        halo.push_back({{"bytes", bytes}, {"seconds", seconds}});
    }
    const ordered_json json = {{"schema", 3},
                               {"command", "bench"},
                               {"version", config::version},
                               {"kernel", "scaling"},
                               {"repeat", options.repeat},
                               {"budget", options.budget},
                               {"environment",
                                {{"device", cuda ? "cuda" : "host"},
                                 {"gpu", cuda ? device::properties(ctx.device().id).name : ""},
                                 {"threads", ctx.threads()},
                                 {"sums", measured.sum_way},
                                 {"halos", measured.halo_way}}},
                               {"runs", {{{"date", utc_now()}, {"command_line", options.command}}}},
                               {"weak", weak},
                               {"halo", halo},
                               {"sums", sums},
                               {"results", results},
                               {"failures", measured.failures}};
    return json.dump(1) + "\n";
}

/// Whether the products on every number of ranks have the same column norms, up to rounding.
bool norms_agree(const Measured& measured) {
    for (const ScalingPoint& point : measured.points) {
        const auto first =
            std::find_if(measured.points.begin(), measured.points.end(),
                         [&](const ScalingPoint& other) { return other.matrix == point.matrix; });
        const double bound = 4 * 2.3e-16 * (std::sqrt(point.rows) + 2);
        for (std::size_t j = 0; j < point.norms.size(); ++j) {
            if (!(std::abs(point.norms[j] / first->norms[j] - 1) <= bound)) {
                return false;
            }
        }
    }
    return true;
}

/// Does the work on some of the ranks while the others wait. Throws an error of the working ranks
/// on all ranks.
void run_on_part(const Comm& comm, const FirstRanks& part, const std::function<void()>& work) {
    std::optional<Error> failure;
    if (part.member()) {
        try {
            work();
        } catch (const Error& error) {
            if (!error.collective() && part.comm().size() > 1) {
                throw;  // the rest of the part may wait for this rank
            }
            failure = error;
        }
    }
    comm.agree([&] {
        if (failure) {
            throw Error(failure->kind(), failure->what());
        }
    });
}

void measure_links(Context& ctx, int repeat, Measured& measured) {
    const RankLinks& links = ctx.service<RankLinks>();
    measured.sum_way = links.describe_sums();
    measured.halo_way = links.describe_halos();
    measured.halo = measure_halo(ctx, repeat);
    const std::vector<SumPoint> sums = measure_sums(ctx, repeat);
    measured.sums.insert(measured.sums.end(), sums.begin(), sums.end());
}

/// The matrices of all families for a number of ranks, as pairs of family and matrix.
std::vector<std::pair<std::string, std::string>> matrices_on(const std::vector<Family>& families,
                                                             int count) {
    std::vector<std::pair<std::string, std::string>> matrices;
    for (const Family& family : families) {
        matrices.emplace_back(family.name, family.strong);
        const auto weak = family.weak.find(count);
        if (weak != family.weak.end() && weak->second != family.strong) {
            matrices.emplace_back(family.name, weak->second);
        }
    }
    return matrices;
}

Measured measure_all(const Comm& comm, const Device& device, const ScalingOptions& options,
                     const std::vector<Family>& families, const std::vector<int>& counts) {
    const Budget budget(options.budget);
    Measured measured;
    for (const int count : counts) {
        const FirstRanks part(comm, count);
        std::optional<Context> ctx;
        run_on_part(comm, part, [&] {
            ctx.emplace(part.comm(), device);
            if (count > 1) {
                measure_links(*ctx, options.repeat, measured);
            }
        });
        for (const auto& chosen : matrices_on(families, count)) {
            if (comm.max(std::int64_t{budget.exhausted() ? 1 : 0}) > 0) {
                measured.complete = false;
                continue;
            }
            try {
                run_on_part(comm, part, [&] {
                    measured.points.push_back(measure_point(*ctx, chosen.first, chosen.second,
                                                            options.repeat, options.rows.options));
                });
            } catch (const Error& error) {
                if (!error.collective() || error.kind() != ErrorKind::memory) {
                    throw;
                }
                measured.failures.push_back(fmt::format("{} on {}: {}", chosen.second,
                                                        plural(count, "rank"), error.what()));
            }
        }
    }
    return measured;
}

}  // namespace

bool run_scaling(const Comm& comm, const ScalingOptions& given) {
    comm.agree([&] {
        check_common(comm, given);
        if (given.nx < 0 || given.length < 0 || given.length % 2 != 0) {
            throw InputError("--nx and --length are 0 or more, --length even");
        }
    });
    ScalingOptions options = given;
    comm.agree([&] { resolve_distribution(options.rows); });
    const Execution execution = choose_execution(comm, options.device);
    fit_to(execution, options.rows.options);
    const Device device = execution.device;
    const bool cuda = device.place == Place::device;
    options.nx = options.nx > 0 ? options.nx : cuda ? 400 : 48;
    options.length = options.length > 0 ? options.length : cuda ? 28 : 14;
    options.nx = std::max(options.nx / comm.size(), 1) * comm.size();
    const std::vector<int> counts = counts_of(comm.size());
    const std::vector<Family> families = families_of(options, counts);
    const Measured measured = measure_all(comm, device, options, families, counts);

    Context ctx(Comm(), device);
    std::string text = fmt::format(
        "{}\n{} on {}, {}; columns {}, step: block Lanczos, block {}, with its share of restarts\n"
        "model: its seconds relative to the measured ones\n\n",
        options.command, plural(comm.size(), "rank"), cuda ? "cuda" : "host",
        cuda ? device::properties(ctx.device().id).name : plural(ctx.threads(), "thread"),
        scaling_width, scaling_width);
    bool agree = true;
    comm.agree([&] {
        if (comm.rank() != 0) {
            return;
        }
        agree = norms_agree(measured);
        text += tables(measured, families, counts) + extrapolation(measured, options, comm.size());
        text += agree ? "" : "INCORRECT: products depend on the number of ranks\n";
    });
    if (!options.json.empty()) {
        write_on_rank_0(comm, options.json,
                        [&] { return to_json(measured, options, ctx, families); });
    }
    if (!options.markdown.empty()) {
        write_on_rank_0(comm, options.markdown, [&] { return "```text\n" + text + "```\n"; });
    }
    print(comm, text, table_stream({options.json, options.markdown}));
    return comm.max(std::int64_t{agree ? 0 : 1}) == 0;
}

}  // namespace quiver::apps::bench
