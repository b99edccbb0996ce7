// SPDX-License-Identifier: BSD-3-Clause
// One bit of an index array of the matrix flips at a random time of a solve. No solver crashes;
// `correct` repairs the memory and never claims that a wrong result is right; `detect` never claims
// that a result is right.
#include <cstdlib>
#include <functional>

#include "blockvec/error.hpp"
#include "kernels/block_policy.hpp"
#include "kernels/checksum.hpp"
#include "kernels/tsmm.hpp"
#include "kernels/tsmm_gram.hpp"
#include "solvers/eigen/eigensolver.hpp"
#include "solvers/linear/linear_solve.hpp"
#include "tests/solvers/abft_support.hpp"
#include "tests/support/eigen_checks.hpp"

namespace quiver::test {
namespace {

/// Counts calls and flips a bit of memory at one of them, independently of the checksums.
class Flipper {
  public:
    Flipper(Context& ctx, void* byte, int bit, std::int64_t call)
        : ctx_(ctx), byte_(byte), bit_(bit), call_(call) {}
    void count() {
        if (++calls_ == call_) {
            flip();
        }
    }
    void flip() {
        const unsigned char mask[] = {static_cast<unsigned char>(1U << bit_)};
        if (byte_ != nullptr) {
            flip_bits(ctx_, byte_, mask);
            flipped_ = true;
        }
    }
    bool flipped() const { return flipped_; }
    std::int64_t calls() const { return calls_; }

  private:
    Context& ctx_;
    void* byte_;
    int bit_;
    std::int64_t call_;
    std::int64_t calls_ = 0;
    bool flipped_ = false;
};

/// Counts the products of a solver.
class CountedOperator final : public Operator<double> {
  public:
    CountedOperator(Operator<double>& a, Flipper& flipper) : a_(a), flipper_(flipper) {}
    const RowMap& row_map() const override { return a_.row_map(); }
    void apply(Context& ctx, BlockView<const double> x, BlockView<double> y) override {
        flipper_.count();
        a_.apply(ctx, x, y);
    }
    void apply_fused(Context& ctx, BlockView<const double> x, BlockView<double> y,
                     const ApplyOptions<double>& options) override {
        flipper_.count();
        a_.apply_fused(ctx, x, y, options);
    }
    void audit(Context& ctx) override { a_.audit(ctx); }
    OperatorFaults faults() const override { return a_.faults(); }

  private:
    Operator<double>& a_;
    Flipper& flipper_;
};

/// Counts the products and updates of blocks. Block Lanczos needs this, because it checks its steps
/// only if its operator is the protected matrix itself, not a wrapper.
class CountedBlocks final : public BlockOperations<double> {
  public:
    explicit CountedBlocks(Flipper& flipper) : flipper_(flipper) {}
    template <class Call>
    void counted(Context& ctx, Call&& call) {
        flipper_.count();
        const ScopedPolicy kernels(ctx, nullptr);
        call();
    }
    void tsmm(Context& ctx, double alpha, BlockView<const double> x, BlockView<const double> c,
              double beta, BlockView<double> y) override {
        counted(ctx, [&] { quiver::tsmm<double>(ctx, alpha, x, c, beta, y); });
    }
    void tsmm(Context& ctx, double alpha, BlockView<const double> x, BlockView<const double> c,
              double beta, BlockView<double> y, BlockView<const double> d) override {
        counted(ctx, [&] { quiver::tsmm<double>(ctx, alpha, x, c, beta, y, d); });
    }
    void tsmttsm(Context& ctx, double alpha, BlockView<const double> a, BlockView<const double> b,
                 double beta, BlockView<double> c, Reduce reduce) override {
        counted(ctx, [&] { quiver::tsmttsm<double>(ctx, alpha, a, b, beta, c, reduce); });
    }
    void tsmm_gram(Context& ctx, double alpha, BlockView<const double> v, BlockView<const double> h,
                   double beta, BlockView<double> w, BlockView<double> g, Reduce reduce) override {
        counted(ctx, [&] { quiver::tsmm_gram<double>(ctx, alpha, v, h, beta, w, g, reduce); });
    }
    void axpby(Context& ctx, double alpha, BlockView<const double> x, double beta,
               BlockView<double> y) override {
        counted(ctx, [&] { quiver::axpby<double>(ctx, alpha, x, beta, y); });
    }
    void axpby(Context& ctx, std::span<const double> alpha, BlockView<const double> x,
               std::span<const double> beta, BlockView<double> y) override {
        counted(ctx, [&] { quiver::axpby<double>(ctx, alpha, x, beta, y); });
    }

  private:
    Flipper& flipper_;
};

constexpr int edge[] = {9, 8, 7};
constexpr int wanted = 2;

/// The outcome of a solve: whether it claims to be right, and whether it is.
struct Outcome {
    bool claims = false;
    bool right = false;
    std::string message;
};
using Solve = std::function<Outcome(Context&, ProtectedMatrix<double>&, Flipper&)>;

Outcome find_pairs(Context& ctx, ProtectedMatrix<double>& guarded, Flipper& flipper,
                   Method method) {
    CountedOperator counted(guarded, flipper);
    CountedBlocks blocks(flipper);
    BlockPolicy policy;
    policy.operations.get<double>() = &blocks;
    const bool lanczos = method == Method::lanczos;
    const ScopedPolicy scoped(ctx, lanczos ? &policy : ctx.policy());
    EigenProblem<double> problem{lanczos ? static_cast<Operator<double>&>(guarded) : counted};
    problem.protection = &guarded;
    EigenOptions options;
    options.method = method;
    options.k = wanted;
    options.max_iterations = 300;
    if (method == Method::filter) {
        options.window = Window{0.2, 0.62};
    }
    const EigenResult<double> result = eigensolve(ctx, problem, options);
    Outcome outcome{result.converged && result.multiplicity == Multiplicity::verified, true,
                    result.message};
    const std::vector<double> spectrum = laplace3d_spectrum(edge[0], edge[1], edge[2]);
    std::size_t expected = wanted;
    if (options.window) {
        expected = 0;
        for (const double value : spectrum) {
            expected += value <= options.window->high ? 1 : 0;
        }
    }
    outcome.right = result.eigenvalues.size() == expected;
    for (std::size_t j = 0; outcome.right && j < expected; ++j) {
        outcome.right =
            std::abs(result.eigenvalues[j] - spectrum[j]) <= result.tolerance * spectrum.back();
    }
    return outcome;
}

Outcome solve_system(Context& ctx, ProtectedMatrix<double>& guarded, Flipper& flipper,
                     LinearMethod method) {
    CountedOperator counted(guarded, flipper);
    BlockVector<double> exact(ctx, guarded.row_map(), wanted);
    BlockVector<double> b(ctx, guarded.row_map(), wanted);
    BlockVector<double> x(ctx, guarded.row_map(), wanted);
    fill_random(ctx, 5, exact);
    guarded.apply(ctx, exact.view(), b.view());  // before the flip
    LinearOptions options;
    options.max_iterations = 300;
    const LinearResult result =
        linear_solve(ctx, method, LinearProblem<double>{counted, b.view()}, x.view(), options);
    axpby(ctx, -1.0, BlockView<const double>(exact.view()), 1.0, x.view());
    std::vector<double> errors(wanted), sizes(wanted);
    norms(ctx, BlockView<const double>(x.view()), std::span<double>(errors));
    norms(ctx, BlockView<const double>(b.view()), std::span<double>(sizes));
    Outcome outcome{result.converged, true, result.message};
    const double least = laplace3d_spectrum(edge[0], edge[1], edge[2]).front();
    for (std::size_t j = 0; j < errors.size(); ++j) {
        // ||x - A^-1 b|| <= ||r|| / lambda_min, and rounding of the residual.
        outcome.right = outcome.right && errors[j] <= 1.01 * options.tol * sizes[j] / least;
    }
    return outcome;
}

std::vector<char> bytes_of(Context& ctx, const MatrixArray& array) {
    const auto size = static_cast<int>(array.bytes);
    std::vector<char> bytes(array.bytes);
    // Copies the array as floats without interpreting them; the size of every array is a multiple
    // of 4 bytes.
    const int floats = size / static_cast<int>(sizeof(float));
    copy(ctx,
         BlockView<const float>(static_cast<const float*>(array.data), 1, floats, floats,
                                ctx.place()),
         BlockView<float>(reinterpret_cast<float*>(bytes.data()), 1, floats, floats));
    return bytes;
}

struct NamedSolve {
    std::string name;
    Solve run;
    std::int64_t calls = 0;  // of a solve without a fault
};

std::vector<NamedSolve> all_solves() {
    std::vector<NamedSolve> solves;
    for (const Method method : {Method::lanczos, Method::chebyshev, Method::lobpcg,
                                Method::jacobi_davidson, Method::filter}) {
        solves.push_back({to_string(method),
                          [method](Context& ctx, ProtectedMatrix<double>& a, Flipper& flipper) {
                              return find_pairs(ctx, a, flipper, method);
                          }});
    }
    for (const LinearMethod method :
         {LinearMethod::cg, LinearMethod::minres, LinearMethod::gmres, LinearMethod::bicgstab}) {
        solves.push_back({to_string(method),
                          [method](Context& ctx, ProtectedMatrix<double>& a, Flipper& flipper) {
                              return solve_system(ctx, a, flipper, method);
                          }});
    }
    return solves;
}

/// The distance of the bit positions that are tried.
std::size_t bit_step() {
    return std::getenv("QUIVER_TEST_ALL_CASES") != nullptr ? 1 : 5;
}

/// For every bit_step()-th bit position of a word, and for each index array: flips this bit of a
/// random word at a random time of a solve. The first position differs from array to array. The
/// solvers take turns.
void flip_indices(AbftMode mode) {
    Context ctx = make_context();
    std::mt19937_64 generator = make_generator();
    std::vector<NamedSolve> solves = all_solves();
    int flips = 0, reported = 0;
    for (const SparseFormat& format :
         {SparseFormat{.kind = SparseFormat::compressed_rows},
          SparseFormat{.kind = SparseFormat::sell, .chunk = 8, .sigma = 64}}) {
        SparseMatrix<double> a = laplace3d<double>(ctx, edge[0], edge[1], edge[2], format);
        ProtectedMatrix<double> guarded(ctx, a, {mode, {}, 12});
        for (NamedSolve& solve : solves) {
            Flipper none(ctx, nullptr, 0, 0);
            const Outcome outcome = solve.run(ctx, guarded, none);
            EXPECT_TRUE(outcome.claims && outcome.right) << solve.name << ": " << outcome.message;
            solve.calls = none.calls();
            ASSERT_GT(solve.calls, 5) << solve.name;
        }
        const std::vector<MatrixArray> arrays = a.arrays();
        std::size_t turn = 0;
        for (std::size_t which = 1; which < arrays.size(); ++which) {
            const MatrixArray& array = arrays[which];
            for (std::size_t bit = which % bit_step(); bit < 64; bit += bit_step()) {
                const NamedSolve& solve = solves[turn++ % solves.size()];
                const auto call = static_cast<std::int64_t>(
                    1 + generator() % static_cast<std::uint64_t>(solve.calls));
                const std::size_t words = std::max<std::size_t>(array.bytes / 8, 1);
                const std::size_t at = 8 * (generator() % words) + bit / 8;
                void* const byte = at < array.bytes ? static_cast<char*>(array.data) + at : nullptr;
                if (ctx.comm().max(std::int64_t{byte != nullptr}) == 0) {
                    continue;
                }
                SCOPED_TRACE(solve.name + ", " + array.name + " bit " + std::to_string(bit) +
                             ", call " + std::to_string(call) + " of " +
                             std::to_string(solve.calls));
                ProtectedMatrix<double> protection(ctx, a, {mode, {}, 12});
                Flipper flipper(ctx, byte, static_cast<int>(bit % 8), call);
                const std::vector<char> before = bytes_of(ctx, array);
                Outcome outcome;
                try {
                    outcome = solve.run(ctx, protection, flipper);
                } catch (const Error& error) {
                    outcome.message = error.what();
                }
                const bool flipped = ctx.comm().max(std::int64_t{flipper.flipped()}) > 0;
                EXPECT_TRUE(flipped);
                EXPECT_TRUE(!outcome.claims || outcome.right) << outcome.message;
                if (mode == AbftMode::correct) {
                    // A fault in a halo plan gives another rank wrong rows, which its checksums
                    // cannot detect: the solve may end with an error, but must not claim to be
                    // right.
                    EXPECT_TRUE(outcome.claims || array.name == std::string("halo plan"))
                        << outcome.message;
                    EXPECT_TRUE(bytes_of(ctx, array) == before);
                    EXPECT_EQ(protection.counts().failed, 0);
                } else {
                    EXPECT_FALSE(outcome.claims);
                    reported += outcome.message.find("silent fault") != std::string::npos ||
                                outcome.message.find("had found") != std::string::npos;
                    if (flipper.flipped()) {
                        flipper.flip();
                    }
                    EXPECT_TRUE(bytes_of(ctx, array) == before);
                }
                EXPECT_EQ(protection.counts().faults > 0, flipper.flipped());
                flips += flipped ? 1 : 0;
            }
        }
    }
    // Both formats have columns and offsets; one has rows and, on the host, lengths.
    EXPECT_GE(flips, (ctx.place() == Place::host ? 6 : 5) * (64 / static_cast<int>(bit_step())));
    if (mode == AbftMode::detect) {
        EXPECT_GE(reported, flips / 2);
    }
}

TEST(AbftIndices, FlipsAreRepaired) {
    flip_indices(AbftMode::correct);
}
TEST(AbftIndices, FlipsAreReported) {
    flip_indices(AbftMode::detect);
}

}  // namespace
}  // namespace quiver::test
