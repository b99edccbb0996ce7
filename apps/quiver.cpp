// SPDX-License-Identifier: BSD-3-Clause
// The command `quiver`: starts MPI, parses the command line, and converts errors to exit statuses.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iterator>
#include <new>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>

#include "apps/blas_kernels.hpp"
#include "apps/number_option.hpp"
#include "apps/report.hpp"
#include "apps/subcommands.hpp"
#include "apps/suggest.hpp"
#include "blockvec/comm.hpp"
#include "blockvec/config.hpp"
#include "blockvec/error.hpp"
#include "blockvec/mpi.hpp"

namespace quiver::apps {
namespace {

constexpr const char* examples = R"(Examples:
  quiver eigs matrix.mtx -k 10                     10 smallest eigenvalues of a Hermitian matrix
  quiver eigs matrix.mtx.gz -k 20 --which largest  20 largest, matrix in a gzip'd file
  quiver eigs gen:laplace3d,nx=40,ny=40,nz=40 --json out.json
                                                   a generated matrix; results also as JSON
  mpirun -n 4 quiver eigs matrix.mtx               on four processes
  quiver solve matrix.mtx b.mtx -o x.mtx           A x = b for all columns of b
  quiver info matrix.mtx                           rows, nonzeros, symmetry, norms
  quiver gen --list                                the matrices that can be generated
  quiver ed model:heisenberg,L=20 --sector sz=0    energies of a chain of spins
  quiver qr X.h5 -o Q.h5                           an orthonormal basis of the columns in a file
  quiver kmeans X.h5 -k 10                         10 clusters of the rows in a file
  quiver embed graph.mtx -k 8 -o positions.h5      Laplacian eigenvectors of a graph
  quiver modes K.mtx M.mtx -k 12                   12 vibration modes of K x = lambda M x
  quiver svd A.mtx -k 10                           10 largest singular values, rectangular matrix
  quiver svd --pca X.h5 -k 5                       5 principal components of the rows in a file
  quiver info devices                              what this machine and this build have

Exit status: 0 done, 1 not converged, 2 bad usage or input, 3 a failure while running.)";

int status_of(ErrorKind kind) {
    switch (kind) {
        case ErrorKind::shape:
        case ErrorKind::input:
        case ErrorKind::unsupported:
            return bad_input;
        default:
            return failed;
    }
}

/// Reports an error and returns the exit status. Rank 0 prints a collective error. An error of a
/// single rank aborts all processes, since the other ranks may be waiting for this rank.
int report(const Comm& comm, bool collective, int status, const char* what) {
    if (collective || comm.size() == 1) {
        if (comm.rank() == 0) {
            fmt::print(stderr, "quiver: {}\n", what);
        }
        return status;
    }
    if (comm.rank() != 0) {
        // If all ranks failed in the same way, rank 0 ends the others before they print the same
        // line.
        std::this_thread::sleep_for(std::chrono::milliseconds(500));
    }
    fmt::print(stderr, "quiver: rank {}: {}\n", comm.rank(), what);
    std::fflush(stderr);
    comm.abort(status);
}

/// Throws InputError on all ranks unless they all have the arguments of rank 0. With different
/// arguments they would call different collective functions. Collective.
void require_equal_arguments(const Comm& comm, int argc, char** argv) {
    std::string mine;
    for (int i = 1; i < argc; ++i) {
        mine += (i > 1 ? " " : "") + std::string(argv[i]);
    }
    auto size = static_cast<std::uint64_t>(mine.size());
    comm.broadcast(&size, sizeof(size), 0);
    std::string first = mine;
    first.resize(size);
    comm.broadcast(first.data(), size, 0);
    comm.agree([&] {
        if (mine != first) {
            throw InputError(fmt::format(
                "the ranks have different arguments: rank 0 '{}', rank {} '{}'; all ranks take the "
                "same",
                first, comm.rank(), mine));
        }
    });
}

/// Throws InputError unless the first word is a subcommand or an option. The error is collective,
/// since all ranks read the same command line.
void require_known_subcommand(const CLI::App& app, int argc, char** argv) {
    std::vector<std::string> names;
    for (const CLI::App* subcommand : app.get_subcommands({})) {
        names.push_back(subcommand->get_name());
    }
    const std::string word = argc > 1 ? argv[1] : "";
    if (argc < 2) {
        throw_collective(ErrorKind::input,
                         "which subcommand" + suggest(word, names) + "; see quiver --help");
    }
    if (!word.starts_with('-') && std::find(names.begin(), names.end(), word) == names.end()) {
        throw_collective(ErrorKind::input, "there is no subcommand '" + word + "'" +
                                               suggest(word, names) + "; see quiver --help");
    }
}

/// Formats the error as one line: "bench kernels: MESSAGE; see quiver bench kernels --help"
std::string one_line(const CLI::App& app, const CLI::ParseError& error) {
    std::string text = error.what();
    std::replace(text.begin(), text.end(), '\n', ' ');
    const CLI::App* command = &app;
    while (!command->get_subcommands().empty()) {
        command = command->get_subcommands().front();
    }
    if (command == &app) {
        return text + "; see quiver --help";
    }
    const std::string name = full_name(*command);
    return fmt::format("{}: {}; see quiver {} --help", name, text, name);
}

int run(int argc, char** argv, const Comm& comm) {
    require_equal_arguments(comm, argc, argv);
    Action chosen;
    CLI::App app("quiver: eigenpairs of large sparse matrices on CPUs and NVIDIA GPUs over MPI",
                 "quiver");
    app.set_version_flag("--version", fmt::format("quiver {}", config::version));
    app.footer(examples);
    app.require_subcommand(1);
    add_bench(app, chosen);
    add_ed(app, chosen);
    add_eigs(app, chosen);
    add_embed(app, chosen);
    add_info(app, chosen);
    add_gen(app, chosen);
    add_kmeans(app, chosen);
    add_modes(app, chosen);
    add_qr(app, chosen);
    add_solve(app, chosen);
    add_svd(app, chosen);
    add_tune(app, chosen);
    add_warm(app, chosen);
    require_known_subcommand(app, argc, argv);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() != 0) {
            throw_collective(ErrorKind::input, one_line(app, error));
        }
        std::ostringstream asked_for;
        app.exit(error, asked_for, asked_for);
        print(comm, asked_for.str());
        return success;
    }
    return chosen(comm);
}

int guarded_run(int argc, char** argv) {
    const Comm comm(MPI_COMM_WORLD);
    try {
        return run(argc, argv, comm);
    } catch (const Error& error) {
        return report(comm, error.collective(), status_of(error.kind()), error.what());
    } catch (const std::bad_alloc&) {
        return report(comm, false, failed, "out of host memory");
    } catch (const std::exception& error) {
        return report(comm, false, failed, error.what());
    }
}

/// While an object of this class exists, environment variables tell Open MPI that this process runs
/// alone, unless a launcher has started it. Without them MPI_Init takes 0.3 s to start a daemon and
/// to search for networks. The destructor removes the variables, because a child process, such as
/// an mpirun, must not inherit them.
class AloneSettings {
  public:
    AloneSettings() {
        const char* const launched[] = {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PMI_FD",
                                        "SLURM_PROCID"};
        if (std::any_of(std::begin(launched), std::end(launched),
                        [](const char* name) { return std::getenv(name) != nullptr; })) {
            return;
        }
        constexpr std::pair<const char*, const char*> settings[] = {
            {"OMPI_MCA_ess_singleton_isolated", "1"},
            {"OMPI_MCA_orte_create_session_dirs", "0"},  // processes would share one
            {"OMPI_MCA_pml", "ob1"},
            {"OMPI_MCA_btl", "self"}};
        for (const auto& [name, value] : settings) {
            if (std::getenv(name) == nullptr) {
                ::setenv(name, value, 1);
                names_.push_back(name);
            }
        }
    }
    AloneSettings(const AloneSettings&) = delete;
    AloneSettings& operator=(const AloneSettings&) = delete;
    ~AloneSettings() {
        for (const char* name : names_) {
            ::unsetenv(name);
        }
    }

  private:
    std::vector<const char*> names_;
};

int run_on_ranks(int argc, char** argv) {
    {
        const AloneSettings settings;
        int provided = 0;
        MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    }
    const int status = guarded_run(argc, argv);
    MPI_Finalize();
    return status;
}

}  // namespace
}  // namespace quiver::apps

int main(int argc, char** argv) {
    quiver::apps::restart_with_fitting_blas_kernels(argv);
    return quiver::apps::run_on_ranks(argc, argv);
}
