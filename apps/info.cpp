// SPDX-License-Identifier: BSD-3-Clause
// `quiver info`: properties of a matrix, or of this machine and build.
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>
#include <omp.h>
#include <sys/resource.h>

#include "apps/blas_kernels.hpp"
#include "apps/execution.hpp"
#include "apps/halo_table.hpp"
#include "apps/matrix_facts.hpp"
#include "apps/problem.hpp"
#include "apps/report.hpp"
#include "apps/subcommands.hpp"
#include "blockvec/config.hpp"
#include "blockvec/device.hpp"
#include "blockvec/processor.hpp"
#include "kernels/rank_links.hpp"
#include "solvers/eigen/dense_eigen.hpp"
#include "solvers/eigen/shift_invert.hpp"

namespace quiver::apps {
namespace {

struct InfoOptions {
    std::string what;
    std::string scalar = "auto";
    std::string ranks;
    bool ranks_given = false;
};

std::string simd_flags() {
    std::string flags;
#if defined(__x86_64__)
    const auto add = [&](bool present, const char* name) {
        if (present) {
            flags += flags.empty() ? name : std::string(" ") + name;
        }
    };
    add(__builtin_cpu_supports("sse4.2") != 0, "sse4.2");
    add(__builtin_cpu_supports("avx") != 0, "avx");
    add(__builtin_cpu_supports("avx2") != 0, "avx2");
    add(__builtin_cpu_supports("fma") != 0, "fma");
    add(__builtin_cpu_supports("avx512f") != 0, "avx512f");
#endif
    return flags.empty() ? "unknown" : flags;
}

std::string mpi_library() {
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    MPI_Get_library_version(text, &length);
    const std::string full(text, static_cast<std::size_t>(length));
    return full.substr(0, full.find_first_of(",\n"));
}

std::string environment(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? "not set" : value;
}

std::string describe_gpus() {
    const int count = device::count();
    if (count == 0) {
        return fmt::format("GPUs        none: {}\n", device::why_none());
    }
    std::string text;
    constexpr double gib = 1024.0 * 1024.0 * 1024.0;
    for (int id = 0; id < count; ++id) {
        const device::Properties gpu = device::properties(id);
        text += fmt::format(
            "GPU {:<7} {}, compute capability {}.{}, {} multiprocessors, {:.1f} of {:.1f} GiB "
            "free\n",
            id, gpu.name, gpu.compute_major, gpu.compute_minor, gpu.multiprocessors,
            static_cast<double>(gpu.free_bytes) / gib, static_cast<double>(gpu.total_bytes) / gib);
    }
    return text;
}

/// The peak resident memory of this process.
std::int64_t peak_bytes() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return std::int64_t{1024} * usage.ru_maxrss;
}

/// The GPU of each rank, and how reductions and halos travel; empty for a single rank. Collective.
std::string describe_links(const Comm& comm) {
    const Execution execution = choose_execution(comm, "auto");
    if (comm.size() == 1) {
        return "";
    }
    Context ctx(comm, execution.device);
    const RankLinks& links = ctx.service<RankLinks>();
    std::string gpus;
    if (execution.device.place == Place::device) {
        gpus = "GPUs";
        for (const std::int64_t id : comm.gather(execution.device.id)) {
            gpus += fmt::format(" {}", id);
        }
    } else {
        gpus = fmt::format("{} on the host", comm.size());
    }
    return fmt::format("ranks       {}; reductions: {}; halos: {}\n", gpus, links.describe_sums(),
                       links.describe_halos());
}

int show_devices(const Comm& comm) {
    const int threads = choose_threads(comm);
    const std::string links = describe_links(comm);
    std::string text;
    if (comm.rank() == 0) {
        const std::string cuda = config::have_cuda
                                     ? fmt::format("CUDA {} with NVRTC", config::cuda_version)
                                     : std::string("without CUDA (host only)");
        text += fmt::format("quiver      {}, {}\n", config::version, cuda);
        text += fmt::format("host        {} a rank, {}, SIMD {}, vectors of {} bytes\n",
                            plural(threads, "thread"), plural(omp_get_num_procs(), "core"),
                            simd_flags(), vector_bytes());
        text += fmt::format("MPI         {}, {}\n", plural(comm.size(), "rank"), mpi_library());
        const std::string mumps = mumps_version();
        text += fmt::format("MUMPS       {}\n",
                            mumps.empty() ? "not in this build: shift-invert is limited to 50000 "
                                            "rows; install libmumps-dev"
                                          : mumps);
        if (const std::string kernels = blas_kernels(); !kernels.empty()) {
            text += fmt::format("OpenBLAS    kernels for {}\n", kernels);
        }
        const std::string scotch = scotch_version();
        text += fmt::format("SCOTCH      {}\n",
                            scotch.empty() ? "not in this build: rows are not partitioned by their "
                                             "graph; install libscotch-dev"
                                           : scotch);
        const std::string cudss = cudss_version();
        text += fmt::format("cuDSS       {}\n",
                            cudss.empty() ? "not found: shift-invert factorises on the host; set "
                                            "QUIVER_CUDSS to the file libcudss.so.1"
                                          : cudss + ", for shift-invert on a GPU");
        const std::string cusolver = cusolver_version();
        text += fmt::format("cuSOLVER    {}\n",
                            cusolver.empty() ? "not found: LAPACK computes all dense solves; set "
                                               "QUIVER_CUSOLVER to the file libcusolver.so.12"
                                             : cusolver + ", for large dense solves on a GPU");
        text += describe_gpus() + links;
        text += "environment (read by quiver and its libraries)\n";
        for (const char* name :
             {"QUIVER_CACHE", "QUIVER_PACKS", "QUIVER_TUNING", "QUIVER_NVRTC", "QUIVER_LINKS",
              "QUIVER_LAPACK", "QUIVER_CUBLAS", "QUIVER_CUSOLVER", "QUIVER_CUDSS", "QUIVER_MUMPS",
              "QUIVER_SCOTCH", "QUIVER_VECTORS", "OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES"}) {
            text += fmt::format("  {:<22} {}\n", name, environment(name));
        }
    }
    print(comm, text);
    return success;
}

template <class T>
int show_matrix(const Comm& comm, const Problem& problem, const std::vector<int>& ranks) {
    const int threads = choose_threads(comm);
    comm.barrier();
    const auto begin = std::chrono::steady_clock::now();
    const CsrRows<T> rows = load_problem<T>(comm, problem, threads);
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
    ReadCost cost;
    cost.seconds = comm.max(passed.count());
    cost.megabytes = problem.generated ? 0 : megabytes_of_file(problem.spec);
    cost.rank_peak_bytes = comm.gather(peak_bytes());
    MatrixFacts facts = facts_of(comm, rows, threads);
    facts.read = cost;
    if (facts.rows == facts.cols) {
        facts.storage = storage_facts(comm, rows, choose_execution(comm, "auto").device.place);
    }
    print(comm, to_table(problem.spec, dtype_v<T>, facts));
    if (!ranks.empty()) {
        // The distribution of the rows by eigs without --mass.
        const bool by_rows = problem.generated;
        print(comm, to_table(count_halo_lines(comm, rows, by_rows, ranks)));
    }
    return success;
}

int run_info(const Comm& comm, const InfoOptions& options) {
    std::vector<int> ranks;
    comm.agree([&] {
        if (options.ranks_given) {
            ranks = parse_ranks(options.ranks);
        }
    });
    if (options.what == "devices") {
        return show_devices(comm);
    }
    const Problem problem = inspect_problem(comm, options.what);
    Dtype dtype = Dtype::d;
    comm.agree([&] { dtype = choose_scalar(problem, options.scalar); });
    return visit_dtype(dtype, [&]<class T>() { return show_matrix<T>(comm, problem, ranks); });
}

constexpr const char* info_examples = R"(Examples:
  quiver info matrix.mtx.gz
  quiver info gen:spinSZ,L=12
  mpirun -n 4 quiver info matrix.mtx     how its rows are distributed over four ranks
  quiver info matrix.mtx --ranks 2,8,64  the rows that 2, 8 and 64 ranks would exchange
  quiver info devices)";

}  // namespace

void add_info(CLI::App& app, Action& chosen) {
    auto options = std::make_shared<InfoOptions>();
    CLI::App* info = app.add_subcommand("info", "Show properties of a matrix, or of this machine");
    info->footer(info_examples);
    info->add_option("WHAT", options->what,
                     "MATRIX as for eigs (- for standard input), or the word devices")
        ->required();
    info->add_option("--scalar", options->scalar, "Scalar type to read the matrix in")
        ->check(CLI::IsMember({"auto", "s", "d", "c", "z"}))
        ->capture_default_str();
    const CLI::Option* ranks =
        info->add_option("--ranks", options->ranks,
                         "Counts the halos of products for these numbers of ranks, as 2,4,8: rows "
                         "in ranges, in the order rcm, and partitioned by the graph");
    info->callback([options, ranks, &chosen] {
        options->ranks_given = ranks->count() > 0;
        chosen = [options](const Comm& comm) { return run_info(comm, *options); };
    });
}

}  // namespace quiver::apps
