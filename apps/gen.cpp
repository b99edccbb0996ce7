// SPDX-License-Identifier: BSD-3-Clause
// `quiver gen`: lists the generators, and writes matrices as Matrix Market files.
#include <algorithm>
#include <memory>
#include <string>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>

#include "apps/execution.hpp"
#include "apps/matrices/generators.hpp"
#include "apps/matrix_facts.hpp"
#include "apps/problem.hpp"
#include "apps/report.hpp"
#include "apps/subcommands.hpp"
#include "blockvec/error.hpp"
#include "kernels/sparse/matrix_market_writer.hpp"

namespace quiver::apps {
namespace {

struct GenOptions {
    std::string spec;
    std::string output;
    std::string scalar = "auto";
    bool list = false;
};

std::string values_of(const GeneratorKey& key) {
    switch (key.kind) {
        case KeyKind::whole:
            return fmt::format("whole number >= {}", key.least);
        case KeyKind::real:
            return "number";
        default:
            return key.choices;
    }
}

int show_list(const Comm& comm) {
    constexpr int name_width = 8;  // of the longest key, "boundary"
    std::string text;
    for (const GeneratorInfo& info : generators()) {
        text += fmt::format("gen:{}\n    {}\n", info.name, info.description);
        for (const GeneratorKey& key : info.keys) {
            text += fmt::format("    {:<{}} default {:<14} {} ({})\n", key.name, name_width,
                                key.default_value, key.meaning, values_of(key));
        }
    }
    print(comm,
          text +
              "\nWrite gen:NAME,key=value,... with any of the keys. If the default of a key is the "
              "name of\nanother key, the value of that key is used. On a periodic lattice or ring, "
              "two sites along\nan axis have two bonds between them, which doubles the hopping; a "
              "single site is its own\nneighbour on both sides.\n");
    return success;
}

template <class T>
int show_facts(const Comm& comm, const Problem& problem, const CsrRows<T>& rows, int threads) {
    const MatrixFacts facts = facts_of(comm, rows, threads);
    print(comm, to_table(problem.spec, dtype_v<T>, facts) +
                    "output      none; -o FILE.mtx or FILE.mtx.gz writes the matrix\n");
    return success;
}

template <class T>
int make_and_write(const Comm& comm, const Problem& problem, const std::string& output) {
    const int threads = choose_threads(comm);
    const CsrRows<T> rows = load_problem<T>(comm, problem, threads);
    if (output.empty()) {
        return show_facts(comm, problem, rows, threads);
    }
    const std::int64_t listed = write_matrix_market(comm, output, rows, problem.spec);
    const std::int64_t nonzeros = comm.sum(rows.nonzeros());
    std::string text;
    if (comm.rank() == 0) {
        text = fmt::format("{}: {} x {}, {} nonzeros, {}, {}, {} entries listed", output,
                           rows.map.global_rows(), rows.global_cols, nonzeros, name_of(dtype_v<T>),
                           to_string(rows.symmetry), listed);
        const double megabytes = megabytes_of_file(output);
        text += megabytes > 0 ? fmt::format(", {:.1f} MB\n", megabytes) : "\n";
    }
    print(comm, text, table_stream({output}));
    return success;
}

int run_gen(const Comm& comm, const GenOptions& options, bool wants_output) {
    if (options.list) {
        return show_list(comm);
    }
    comm.agree([&] {
        if (options.spec.empty()) {
            throw InputError("gen: name a matrix (gen:NAME,key=value,...), or give --list");
        }
    });
    if (wants_output) {
        check_matrix_market_path(comm, options.output);
        comm.agree([&] {
            if (comm.rank() == 0) {
                require_not_the_matrix("-o", options.output, options.spec);
            }
        });
    }
    const Problem problem = inspect_problem(comm, options.spec);
    Dtype dtype = Dtype::d;
    comm.agree([&] { dtype = choose_scalar(problem, options.scalar); });
    return visit_dtype(dtype,
                       [&]<class T>() { return make_and_write<T>(comm, problem, options.output); });
}

constexpr const char* gen_examples = R"(Examples:
  quiver gen --list                                the generators with their keys and defaults
  quiver gen gen:graphene,W=64 -o sheet.mtx.gz     a generated matrix into a gzip'd file
  mpirun -n 4 quiver gen gen:topi,nx=40 -o topi.mtx
                                                   each of four processes generates its rows
  quiver gen matrix.mtx.gz -o plain.mtx            a file in coordinate format, sorted)";

}  // namespace

void add_gen(CLI::App& app, Action& chosen) {
    auto options = std::make_shared<GenOptions>();
    CLI::App* gen = app.add_subcommand("gen", "List generated matrices; write Matrix Market files");
    gen->footer(gen_examples);
    gen->add_option("MATRIX", options->spec, matrix_argument);
    const CLI::Option* output = gen->add_option("-o,--output", options->output,
                                                "File to write, gzip'd when its name ends in .gz; "
                                                "- for standard output");
    gen->add_option("--scalar", options->scalar, "Scalar type of the matrix")
        ->check(CLI::IsMember({"auto", "s", "d", "c", "z"}))
        ->capture_default_str();
    gen->add_flag("--list", options->list, "List all generators with their keys and defaults");
    gen->callback([options, output, &chosen] {
        chosen = [options, wants_output = output->count() > 0](const Comm& comm) {
            return run_gen(comm, *options, wants_output);
        };
    });
}

}  // namespace quiver::apps
