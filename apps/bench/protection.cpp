// SPDX-License-Identifier: BSD-3-Clause
#include "apps/bench/protection.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/bench/case.hpp"
#include "apps/bench/runner.hpp"
#include "apps/bench/timer.hpp"
#include "apps/bench/words.hpp"
#include "apps/execution.hpp"
#include "apps/matrices/generators.hpp"
#include "apps/problem.hpp"
#include "apps/report.hpp"
#include "blockvec/config.hpp"
#include "kernels/random.hpp"
#include "solvers/abft/protected_matrix.hpp"
#include "solvers/eigen/eigensolver.hpp"
#include "solvers/linear/linear_solve.hpp"
#include "solvers/protected_orth.hpp"

namespace quiver::apps::bench {
namespace {

constexpr int pairs = 8;
constexpr int pairs_of_window = 24;
constexpr int right_hand_sides = 8;
constexpr int qr_columns = 32;
constexpr std::array modes{AbftMode::off, AbftMode::detect, AbftMode::correct};

/// The steps and the outcome of one solve.
struct Solve {
    std::int64_t steps = 0;
    bool converged = false;
    std::int64_t alarms = 0;
};

struct Method {
    std::string name;
    std::function<Solve(AbftMode)> solve;
};

struct Row {
    std::string method;
    std::int64_t steps = 0;
    /// The median seconds of all rounds, by mode.
    double seconds[modes.size()] = {};
    bool good = true;
    double ratio(std::size_t mode) const { return seconds[mode] / seconds[0]; }
};

/// An interval with the smallest `count` eigenvalues of the matrix and all copies of the largest of
/// them.
Window window_of(const std::string& spec, int count) {
    constexpr int most_copies = 48;  // multiplicity of an eigenvalue of the Laplacian of a cube
    const std::vector<double> spectrum =
        exact_eigenvalues(spec, count + most_copies, true).value_or(std::vector<double>{});
    const double last = spectrum.at(std::min(static_cast<std::size_t>(count), spectrum.size()) - 1);
    const auto next = std::upper_bound(spectrum.begin(), spectrum.end(), last * (1 + 1e-9));
    return {0, next == spectrum.end() ? last * 1.01 : (last + *next) / 2};
}

/// The methods and their operands. `guarded` is a second copy of the matrix, whose products check
/// their indices.
class Methods {
  public:
    Methods(Context& ctx, const std::string& spec, SparseMatrix<double>& a,
            SparseMatrix<double>& guarded)
        : ctx_(ctx),
          window_(window_of(spec, pairs_of_window)),
          a_(a),
          detecting_(ctx, guarded, AbftOptions{AbftMode::detect}),
          correcting_(ctx, guarded, AbftOptions{AbftMode::correct}),
          b_(ctx, a.row_map(), right_hand_sides),
          x_(ctx, a.row_map(), right_hand_sides),
          block_(ctx, a.row_map(), qr_columns),
          q_(ctx, a.row_map(), qr_columns) {
        fill_random(ctx, 1, b_);
        fill_random(ctx, 2, block_);
    }

    std::vector<Method> all() {
        std::vector<Method> list;
        for (const quiver::Method method :
             {quiver::Method::chebyshev, quiver::Method::lanczos, quiver::Method::lobpcg,
              quiver::Method::jacobi_davidson, quiver::Method::filter}) {
            list.push_back({to_string(method), [=, this](AbftMode m) { return eigen(method, m); }});
        }
        for (const LinearMethod method : {LinearMethod::cg, LinearMethod::minres,
                                          LinearMethod::gmres, LinearMethod::bicgstab}) {
            list.push_back(
                {to_string(method), [=, this](AbftMode m) { return linear(method, m); }});
        }
        list.push_back({"qr", [this](AbftMode mode) { return qr(mode); }});
        return list;
    }

  private:
    ProtectedMatrix<double>* protection(AbftMode mode) {
        return mode == AbftMode::off      ? nullptr
               : mode == AbftMode::detect ? &detecting_
                                          : &correcting_;
    }
    Operator<double>& matrix(ProtectedMatrix<double>* guarded) {
        return guarded != nullptr ? static_cast<Operator<double>&>(*guarded) : a_;
    }
    static std::int64_t alarms(ProtectedMatrix<double>* guarded) {
        return guarded != nullptr ? guarded->counts().alarms : 0;
    }

    Solve eigen(quiver::Method method, AbftMode mode) {
        ProtectedMatrix<double>* const guarded = protection(mode);
        EigenProblem<double> problem{matrix(guarded)};
        problem.protection = guarded;
        EigenOptions options;
        options.method = method;
        options.k = pairs;
        if (method == quiver::Method::filter) {
            options.window = window_;
        }
        const EigenResult<double> result = eigensolve(ctx_, problem, options);
        return {result.iterations, result.converged, alarms(guarded)};
    }

    Solve linear(LinearMethod method, AbftMode mode) {
        ProtectedMatrix<double>* const guarded = protection(mode);
        LinearProblem<double> problem{matrix(guarded), b_.view()};
        problem.protection = guarded;
        LinearOptions options;
        options.tol = 1e-8;
        const LinearResult result =
            linear_solve(ctx_, method, problem, x_.view(), options, workspace_);
        return {result.iterations, result.converged, alarms(guarded)};
    }

    Solve qr(AbftMode mode) {
        OperationGuard guard(AbftOptions{mode});
        const BlockVector<double> none(ctx_, a_.row_map(), 0);
        const OrthResult<double> result = protected_gram_schmidt<double>(
            ctx_, guard, a_.row_map(), none.view(), block_.view(), q_.view());
        return {result.passes, result.columns == qr_columns, guard.counts.alarms};
    }

    Context& ctx_;
    Window window_;
    SparseMatrix<double>& a_;
    ProtectedMatrix<double> detecting_, correcting_;
    BlockVector<double> b_, x_, block_, q_;
    LinearWorkspace<double> workspace_;
};

/// The methods named in `words`, or all methods if `words` is empty. Throws InputError for an
/// unknown name.
std::vector<Method> chosen(std::vector<Method> all, const std::vector<std::string>& words) {
    if (words.empty()) {
        return all;
    }
    std::vector<Method> some;
    for (const std::string& word : words) {
        const auto at = std::find_if(all.begin(), all.end(),
                                     [&](const Method& method) { return method.name == word; });
        if (at == all.end()) {
            std::string names;
            for (const Method& method : all) {
                names += (names.empty() ? "" : ", ") + method.name;
            }
            throw_collective(ErrorKind::input,
                             fmt::format("--methods {}: a list of {}", word, names));
        }
        some.push_back(*at);
    }
    return some;
}

Row measure(Context& ctx, const Method& method, int rounds) {
    Row row;
    row.method = method.name;
    row.steps = method.solve(AbftMode::off).steps;
    std::array<std::vector<double>, modes.size()> samples;
    for (int round = 0; round < rounds; ++round) {
        for (std::size_t m = 0; m < modes.size(); ++m) {
            Solve solve;
            Timer timer(ctx);
            ctx.comm().barrier();
            samples[m].push_back(
                ctx.comm().max(timer.time(1, [&] { solve = method.solve(modes[m]); })));
            row.good = row.good && solve.converged && ctx.comm().sum(solve.alarms) == 0;
        }
    }
    for (std::size_t m = 0; m < modes.size(); ++m) {
        row.seconds[m] = summarise(samples[m]).median;
    }
    return row;
}

}  // namespace

bool run_protection(const Comm& comm, const ProtectionOptions& options) {
    std::vector<std::string> words;
    comm.agree([&] {
        check_common(comm, options);
        if (!options.methods.empty()) {
            words = split_list("--methods", options.methods);
        }
        if (options.nx < 4 || options.nx > 1000) {
            throw InputError(fmt::format("--nx {}: 4 to 1000", options.nx));
        }
    });
    const Problem problem = inspect_problem(comm, fmt::format("gen:laplace3d,nx={}", options.nx));
    const Budget budget(options.budget);
    Context ctx(comm, choose_execution(comm, options.device).device);
    SparseMatrix<double> a(ctx, load_problem<double>(comm, problem, ctx.threads()));
    SparseMatrix<double> guarded(ctx, load_problem<double>(comm, problem, ctx.threads()));
    Methods methods(ctx, problem.spec, a, guarded);
    const std::vector<Method> list = chosen(methods.all(), words);
    std::FILE* const stream = table_stream({options.json, options.markdown});
    const bool cuda = ctx.place() == Place::device;
    std::string text;
    const auto say = [&](const std::string& more) {
        print(comm, more, stream);
        text += more;
    };
    nlohmann::ordered_json json = {
        {"schema", 1},
        {"command", "bench"},
        {"version", config::version},
        {"kernel", "protection"},
        {"repeat", options.repeat},
        {"environment",
         {{"device", cuda ? "cuda" : "host"},
          {"gpu", cuda ? device::properties(ctx.device().id).name : ""},
          {"threads", ctx.threads()},
          {"ranks", comm.size()}}},
        {"runs", {{{"date", utc_now()}, {"command_line", options.command}}}},
        {"matrix", problem.spec},
        {"methods", nlohmann::ordered_json::array()}};
    say(fmt::format(
        "    {}\n\n{}, {}; {}, {} rows; medians of {} rounds\n\n| method | steps | off, "
        "seconds | detect over off | correct over off |\n|---|---|---|---|---|\n",
        options.command, cuda ? std::string("GPU") : "Host, " + plural(ctx.threads(), "thread"),
        plural(comm.size(), "rank"), problem.spec, a.row_map().global_rows(), options.repeat));
    bool good = true;
    int left_out = 0;
    for (const Method& method : list) {
        if (comm.max(std::int64_t{budget.exhausted() ? 1 : 0}) > 0) {
            ++left_out;
            continue;
        }
        const Row row = measure(ctx, method, options.repeat);
        good = good && row.good;
        say(fmt::format("| {} | {} | {:.4g} | {:.2f} | {:.2f} |{}\n", row.method, row.steps,
                        row.seconds[0], row.ratio(1), row.ratio(2),
                        row.good ? "" : " **not converged, or an alarm** |"));
        json["methods"].push_back({{"method", row.method},
                                   {"steps", row.steps},
                                   {"off_seconds", row.seconds[0]},
                                   {"detect_seconds", row.seconds[1]},
                                   {"correct_seconds", row.seconds[2]},
                                   {"detect_ratio", row.ratio(1)},
                                   {"correct_ratio", row.ratio(2)},
                                   {"outcome", row.good ? "passed" : "incorrect"}});
    }
    if (left_out > 0) {
        say(fmt::format("\nNot run, because the budget was spent: {}.\n",
                        plural(left_out, "method")));
    }
    json["methods_not_run"] = left_out;
    if (!options.json.empty()) {
        write_on_rank_0(comm, options.json, [&] { return json.dump(1) + "\n"; });
    }
    if (!options.markdown.empty()) {
        write_on_rank_0(comm, options.markdown, [&] { return text; });
    }
    return good;
}

}  // namespace quiver::apps::bench
