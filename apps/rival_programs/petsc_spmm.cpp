// SPDX-License-Identifier: BSD-3-Clause
// Compares PETSc's products of an AIJ matrix with a vector or a dense block with
// SparseMatrix::apply. Both use one process and one thread, run in interleaved samples, and get the
// same matrix and the same block.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>
#include <mpi.h>
#include <petscmat.h>

#include "apps/problem.hpp"
#include "apps/rival_programs/petsc.hpp"
#include "blockvec/block_vector.hpp"
#include "blockvec/config.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/random.hpp"
#include "kernels/sparse/sparse_matrix.hpp"

namespace quiver::rivals {
namespace {

struct Options {
    std::vector<std::string> matrices{"gen:laplace3d,nx=100", "gen:spinSZ,L=18",
                                      "gen:graphene,W=512"};
    std::vector<int> widths{1, 2, 4, 8, 16, 32};
    double seconds = 0.2;
};

/// A sample has several calls if one takes less than this.
constexpr double least_sample_seconds = 1e-3;
constexpr std::size_t fewest_samples = 7;

/// PETSc's matrix and blocks; with width 1, vectors.
class PetscProduct {
  public:
    PetscProduct(const CsrRows<double>& rows, BlockView<const double> x)
        : start_(rows.row_start.begin(), rows.row_start.end()),
          column_(rows.column.begin(), rows.column.end()),
          value_(rows.value),
          rows_(static_cast<PetscInt>(x.rows)),
          width_(x.cols) {
        check(MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, rows_, rows_, start_.data(),
                                        column_.data(), value_.data(), &matrix_));
        PetscScalar* entries = nullptr;
        if (width_ == 1) {
            check(MatCreateVecs(matrix_, &x_, &y_));
            check(VecGetArrayWrite(x_, &entries));
            put(x, entries);
            check(VecRestoreArrayWrite(x_, &entries));
            return;
        }
        check(MatCreateSeqDense(PETSC_COMM_SELF, rows_, width_, nullptr, &x_block_));
        check(MatDenseGetArrayWrite(x_block_, &entries));
        put(x, entries);
        check(MatDenseRestoreArrayWrite(x_block_, &entries));
        check(MatMatMult(matrix_, x_block_, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &y_block_));
    }
    PetscProduct(const PetscProduct&) = delete;
    PetscProduct& operator=(const PetscProduct&) = delete;
    ~PetscProduct() {
        VecDestroy(&x_);
        VecDestroy(&y_);
        MatDestroy(&x_block_);
        MatDestroy(&y_block_);
        MatDestroy(&matrix_);
    }

    /// Runs the product; for a block only its numeric phase.
    void run() {
        check(width_ == 1
                  ? MatMult(matrix_, x_, y_)
                  : MatMatMult(matrix_, x_block_, MAT_REUSE_MATRIX, PETSC_DEFAULT, &y_block_));
    }

    /// Overwrites Y, so that only a product can restore it.
    void forget() {
        change([](PetscScalar* entries, std::size_t count) {
            std::fill_n(entries, count, std::numeric_limits<double>::quiet_NaN());
        });
    }
    /// Y by columns.
    std::vector<double> result() {
        std::vector<double> y;
        change(
            [&](PetscScalar* entries, std::size_t count) { y.assign(entries, entries + count); });
        return y;
    }

  private:
    /// Copies a row-major block to column-major entries.
    static void put(BlockView<const double> x, PetscScalar* entries) {
        for (std::int64_t i = 0; i < x.rows; ++i) {
            for (int j = 0; j < x.cols; ++j) {
                entries[j * x.rows + i] = x(i, j);
            }
        }
    }
    template <class Use>
    void change(Use&& use) {
        const auto count = static_cast<std::size_t>(rows_) * static_cast<std::size_t>(width_);
        PetscScalar* entries = nullptr;
        check(width_ == 1 ? VecGetArray(y_, &entries) : MatDenseGetArray(y_block_, &entries));
        use(entries, count);
        check(width_ == 1 ? VecRestoreArray(y_, &entries)
                          : MatDenseRestoreArray(y_block_, &entries));
    }

    /// PETSc's matrix uses these arrays without copying them.
    std::vector<PetscInt> start_;
    std::vector<PetscInt> column_;
    std::vector<PetscScalar> value_;
    PetscInt rows_;
    PetscInt width_;
    Mat matrix_ = nullptr;
    Vec x_ = nullptr;
    Vec y_ = nullptr;
    Mat x_block_ = nullptr;
    Mat y_block_ = nullptr;
};

/// Whether |ours - theirs| <= 2 (terms + 1) eps sum_k |a_ik| |x_kj| everywhere: each of the two
/// sums has at most half of that error. Source: Higham, Accuracy and Stability, section 3.1.
bool agree(const CsrRows<double>& rows, BlockView<const double> x, BlockView<const double> ours,
           const std::vector<double>& theirs) {
    for (std::int64_t i = 0; i < x.rows; ++i) {
        const auto begin = static_cast<std::size_t>(rows.row_start[static_cast<std::size_t>(i)]);
        const auto end = static_cast<std::size_t>(rows.row_start[static_cast<std::size_t>(i) + 1]);
        const double factor =
            2 * static_cast<double>(end - begin + 1) * std::numeric_limits<double>::epsilon();
        for (int j = 0; j < x.cols; ++j) {
            double size = 0;
            for (std::size_t k = begin; k < end; ++k) {
                size += std::abs(rows.value[k] * x(rows.column[k], j));
            }
            const double other = theirs[static_cast<std::size_t>(j * x.rows + i)];
            if (!(std::abs(ours(i, j) - other) <= factor * size)) {
                return false;
            }
        }
    }
    return true;
}

/// Seconds of one call, each a median.
struct Times {
    double ours = 0;
    double theirs = 0;
};

template <class Work>
double seconds_of(int calls, Work&& work) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) {
        work();
    }
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
    return passed.count();
}

template <class Ours, class Theirs>
Times in_turn(double least_seconds, Ours&& ours, Theirs&& theirs) {
    const auto calls_of = [](auto&& work) {
        work();
        return static_cast<int>(
            std::clamp(std::ceil(least_sample_seconds / seconds_of(1, work)), 1.0, 1e4));
    };
    const int our_calls = calls_of(ours);
    const int their_calls = calls_of(theirs);
    std::vector<double> our_samples;
    std::vector<double> their_samples;
    Times spent;
    while (our_samples.size() < fewest_samples || spent.ours < least_seconds ||
           spent.theirs < least_seconds) {
        const double our_time = seconds_of(our_calls, ours);
        const double their_time = seconds_of(their_calls, theirs);
        spent.ours += our_time;
        spent.theirs += their_time;
        our_samples.push_back(our_time / our_calls);
        their_samples.push_back(their_time / their_calls);
    }
    const auto median = [](std::vector<double>& samples) {
        const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
        std::nth_element(samples.begin(), middle, samples.end());
        return *middle;
    };
    return {median(our_samples), median(their_samples)};
}

void compare(Context& ctx, const std::string& name, const Options& options) {
    const apps::Problem problem = apps::inspect_problem(ctx.comm(), name);
    if (apps::choose_scalar(problem, "auto") != Dtype::d) {
        throw InputError(name + ": a complex matrix; this PETSc computes with real numbers");
    }
    const auto rows = apps::load_problem<double>(ctx.comm(), problem, ctx.threads());
    const std::int64_t most = std::numeric_limits<PetscInt>::max();
    if (rows.global_cols != rows.map.global_rows() || rows.nonzeros() > most) {
        throw InputError(fmt::format(
            "{}: {} rows, {} columns, {} nonzeros; it must be square, of at most {} nonzeros", name,
            rows.map.global_rows(), rows.global_cols, rows.nonzeros(), most));
    }
    for (const int width : options.widths) {
        BlockVector<double> x(ctx, rows.map, width);
        BlockVector<double> y(ctx, rows.map, width);
        fill_random(ctx, 11, x);
        fill(ctx, std::numeric_limits<double>::quiet_NaN(), y.view());
        SparseMatrix<double> matrix(ctx, rows, {.width = width});
        PetscProduct petsc(rows, x.view());
        petsc.forget();
        const Times times = in_turn(
            options.seconds, [&] { matrix.apply(ctx, x, y); }, [&] { petsc.run(); });
        const bool same = agree(rows, x.view(), y.view(), petsc.result());
        const double ratio = times.theirs / times.ours;
        fmt::print("| {} | {} | {} | {} | {:.1f} | {:.1f} | {} |\n", name, rows.map.global_rows(),
                   rows.nonzeros(), width, 1e6 * times.ours, 1e6 * times.theirs,
                   ratio < 0.98 ? fmt::format("**{:.2f}**", ratio) : fmt::format("{:.2f}", ratio));
        std::fflush(stdout);
        if (!same) {
            throw NumericalError(fmt::format(
                "{}, width {}: the two products differ by more than rounding", name, width));
        }
    }
}

void compare_all(const Options& options) {
    Context ctx(Comm(MPI_COMM_WORLD), Device::host(1));
    if (ctx.comm().size() != 1) {
        throw InputError(
            fmt::format("{} ranks; this program compares products on one: start it without mpirun",
                        ctx.comm().size()));
    }
    fmt::print(
        "quiver {}, PETSc {}.{}.{}, one rank, one thread. Medians of interleaved calls; "
        "PETSc's "
        "blocks\nare column-major, quiver's row-major. Width 1: MatMult, else MatMatMult into an "
        "existing block.\n**Bold**: quiver is slower (ratio below 0.98).\n\n"
        "| matrix | rows | nonzeros | width | quiver us | PETSc us | PETSc/quiver |\n"
        "|---|---|---|---|---|---|---|\n",
        config::version, PETSC_VERSION_MAJOR, PETSC_VERSION_MINOR, PETSC_VERSION_SUBMINOR);
    for (const std::string& matrix : options.matrices) {
        compare(ctx, matrix, options);
    }
}

constexpr const char* examples =
    R"(MATRIX is a Matrix Market file, plain or .gz, or gen:NAME,key=value,...

Examples:
  quiver_rival_petsc_spmm                                      the three matrices of docs/results
  quiver_rival_petsc_spmm gen:laplace3d,nx=60 --widths 1,8     another size, two widths
  quiver_rival_petsc_spmm A.mtx.gz --seconds 1 > A.md          a file, more samples

Exit status: 0; 1 the results differ by more than rounding; 2 bad usage or input; 3 another failure.)";

}  // namespace
}  // namespace quiver::rivals

int main(int argc, char** argv) {
    using namespace quiver;
    rivals::Options options;
    CLI::App app("Times A X of PETSc (AIJ) and of quiver on this host; prints a Markdown table");
    app.add_option("MATRIX", options.matrices, "matrices to multiply by");
    app.add_option("--widths", options.widths, "columns of X (1,2,4,8,16,32)")
        ->delimiter(',')
        ->check(CLI::Range(1, 1024));
    app.add_option("--seconds", options.seconds, "least time of each library at each width (0.2)")
        ->check(CLI::Range(0.0, 3600.0));
    app.footer(rivals::examples);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : 2;
    }
    MPI_Init(&argc, &argv);
    int status = 0;
    try {
        rivals::check(PetscInitializeNoArguments());
        rivals::compare_all(options);
        rivals::check(PetscFinalize());
    } catch (const std::exception& error) {
        std::fprintf(stderr, "quiver_rival_petsc_spmm: %s\n", error.what());
        status = dynamic_cast<const NumericalError*>(&error) != nullptr ? 1
                 : dynamic_cast<const InputError*>(&error) != nullptr   ? 2
                                                                        : 3;
    }
    MPI_Finalize();
    return status;
}
