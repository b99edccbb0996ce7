// SPDX-License-Identifier: BSD-3-Clause
// Tests of the C interface beyond problems.txt: options, errors, threads, ranks, memory of a GPU.
#include <atomic>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/doors/c_interface_support.hpp"

namespace quiver::test {
namespace {

const quiver_scalar one = quiver_real(1), zero = quiver_real(0);

TEST_F(CInterface, SolvesNearATargetByAnInverse) {
    const auto a = tridiagonal(200, 2, -1);
    const auto b = tridiagonal(200, 2, 0);
    const double target = exact(200, 2, -1, 70) / 2 + 1e-4;
    const auto inverse = make<quiver_operator>([&](quiver_operator** made) {
        return quiver_inverse_create(ctx(), a.get(), target, b.get(), made);
    });
    quiver_eigen_options options = eigen_options(3);
    options.which = QUIVER_TARGET;
    options.target = target;
    options.method = QUIVER_JACOBI_DAVIDSON;
    options.mass = b.get();
    options.inverse = inverse.get();
    const auto result = solve(a.get(), options);
    const quiver_eigen_info info = info_of(result);
    ASSERT_EQ(info.count, 3);
    EXPECT_EQ(info.method, QUIVER_JACOBI_DAVIDSON);
    for (int j = 0; j < 3; ++j) {
        // ||A|| + |lambda| ||B|| is below 4 + 2 * 2.
        EXPECT_NEAR(info.values[j], exact(200, 2, -1, 69 + j) / 2, 8e-10);
    }
}

TEST_F(CInterface, JacobiDavidsonTakesEachInnerSolver) {
    const auto a = tridiagonal(200, 2, -1);
    quiver_eigen_options options = eigen_options(3);
    options.method = QUIVER_JACOBI_DAVIDSON;
    std::vector<std::int64_t> products;
    for (const std::int32_t inner :
         {QUIVER_INNER_MINRES, QUIVER_INNER_CG, QUIVER_INNER_GMRES, QUIVER_INNER_JDQMR}) {
        options.inner = inner;
        const auto result = solve(a.get(), options);
        const quiver_eigen_info info = info_of(result);
        ASSERT_EQ(info.count, 3);
        for (int j = 0; j < 3; ++j) {
            EXPECT_NEAR(info.values[j], exact(200, 2, -1, j), 4e-10);
        }
        products.push_back(info.operator_applications);
    }
    EXPECT_NE(products[0], products[1]);
    options.inner = QUIVER_INNER_CG;
    options.which = QUIVER_TARGET;
    options.target = 1;
    quiver_eigen_result* none = nullptr;
    EXPECT_EQ(quiver_eigensolve(ctx(), a.get(), &options, &none), QUIVER_ERROR_INPUT);
    options.inner = 4;
    EXPECT_EQ(quiver_eigensolve(ctx(), a.get(), &options, &none), QUIVER_ERROR_INPUT);
}

TEST_F(CInterface, SolvesAnEndWithAMassMatrixThatIsFactorised) {
    const auto a = tridiagonal(200, 2, -1);
    const auto b = tridiagonal(200, 2, 0);
    quiver_eigen_options options = eigen_options(3);
    options.method = QUIVER_LANCZOS;
    options.mass = b.get();
    const auto result = solve(a.get(), options);
    const quiver_eigen_info info = info_of(result);
    ASSERT_EQ(info.count, 3);
    EXPECT_EQ(info.method, QUIVER_LANCZOS);
    for (int j = 0; j < 3; ++j) {
        EXPECT_NEAR(info.values[j], exact(200, 2, -1, j) / 2, 4e-10);
    }
}

TEST_F(CInterface, FindsAWindowWithPreconditionerOptionsAndChecksums) {
    const int n = 300;
    const auto a = tridiagonal(n, 2, -1);
    quiver_eigen_options options = eigen_options(1);
    options.use_window = 1;
    options.window_low = exact(n, 2, -1, 40) - 1e-5;
    options.window_high = exact(n, 2, -1, 44) + 1e-5;
    options.tol = 1e-9;
    for (const int method : {QUIVER_FILTER, QUIVER_DENSE, QUIVER_EIGEN_AUTO}) {
        options.method = method;
        const auto window = solve(a.get(), options);
        const quiver_eigen_info found = info_of(window);
        ASSERT_EQ(found.count, 5);
        EXPECT_EQ(found.method, method == QUIVER_FILTER ? QUIVER_FILTER : QUIVER_DENSE);
        for (int j = 0; j < 5; ++j) {
            EXPECT_NEAR(found.values[j], exact(n, 2, -1, 40 + j), 4e-9);
        }
    }

    options = eigen_options(2);
    options.method = QUIVER_LANCZOS;
    options.abft = QUIVER_ABFT_DETECT;
    options.block = 2;
    options.max_basis = 40;
    options.seed = 7;
    const auto result = solve(a.get(), options);
    const quiver_eigen_info info = info_of(result);
    EXPECT_EQ(info.faults, 0);
    EXPECT_EQ(info.verified, 1);
    EXPECT_EQ(info.cluster_cut, 0);
    EXPECT_LE(info.norm_estimate, 4);
    EXPECT_EQ(info.tolerance, 1e-10);
    EXPECT_GT(info.operator_applications, info.iterations);
    EXPECT_STREQ(info.message, "");
    EXPECT_NEAR(info.values[1], exact(n, 2, -1, 1), 4e-10);
    for (int j = 0; j < 2; ++j) {
        EXPECT_LE(info.residuals[j], 4e-10);
    }
}

TEST_F(CInterface, CopiesVectorsAndTakesThemAsStartAndConstraints) {
    const int n = 150;
    const auto a = tridiagonal(n, 2, -1);
    quiver_eigen_options options = eigen_options(2);
    options.method = QUIVER_LANCZOS;
    const auto first = solve(a.get(), options);
    const quiver_eigen_info info = info_of(first);
    options.constraints = &info.vectors;
    const auto second = solve(a.get(), options);
    const quiver_eigen_info next = info_of(second);
    EXPECT_NEAR(next.values[0], exact(n, 2, -1, 2), 4e-10);

    options = eigen_options(2);
    options.method = QUIVER_LANCZOS;
    options.start = &info.vectors;
    const quiver_eigen_info again = info_of(solve(a.get(), options));
    EXPECT_LE(again.operator_applications, info.operator_applications);

    // Copies into a wider block of float on the host; its other columns must stay unchanged.
    std::vector<float> copy(static_cast<std::size_t>(5 * info.vectors.rows), 9.0F);
    quiver_block to = quiver_host_block(QUIVER_S, copy.data() + 1, info.vectors.rows, 2);
    to.ld = 5;
    ASSERT_EQ(quiver_copy(ctx(), &info.vectors, &to), QUIVER_OK) << quiver_last_message();
    const auto start = static_cast<double>(RowMap::by_rows(cpp.comm(), n).first_row());
    for (std::int64_t i = 0; i < to.rows; ++i) {
        const auto at = static_cast<std::size_t>(5 * i);
        const double wave =
            std::sqrt(2.0 / (n + 1)) *
            std::sin((start + static_cast<double>(i) + 1) * std::numbers::pi / (n + 1));
        // The gap 3 (pi / 151)^2 turns a residual of 4e-10 into an angle below 4e-7.
        EXPECT_NEAR(std::abs(static_cast<double>(copy[at + 1])), wave, 1e-6);
        EXPECT_EQ(copy[at], 9.0F);
        EXPECT_EQ(copy[at + 3], 9.0F);
    }
}

/// An operator that calls the library's own product and fails after `fail_after` calls.
struct Diagonal {
    quiver_context* context = nullptr;
    const quiver_operator* inner = nullptr;
    int calls = 0;
    int fail_after = 1 << 20;
    std::vector<void*> streams = {};

    static int apply(void* user, const quiver_block* x, const quiver_block* y, void* stream) {
        auto* self = static_cast<Diagonal*>(user);
        self->streams.push_back(stream);
        // The product communicates, so all ranks must call it before one of them may fail.
        const quiver_status status = quiver_spmm(self->context, self->inner, one, x, zero, y);
        return ++self->calls > self->fail_after ? 7 : status;
    }
};

TEST_F(CInterface, OperatorsOfTheCallerMayCallTheLibraryAndFail) {
    const int n = 60;
    const auto inner = tridiagonal(n, 1, 0, 1);
    Diagonal diagonal{ctx(), inner.get()};
    const std::int64_t rows = RowMap::by_rows(cpp.comm(), n).local_rows();
    const auto op = make<quiver_operator>([&](quiver_operator** made) {
        return quiver_operator_create(ctx(), QUIVER_D, rows, &Diagonal::apply, &diagonal, made);
    });
    quiver_eigen_options options = eigen_options(3);
    options.method = QUIVER_LANCZOS;
    const auto result = solve(op.get(), options);
    for (int j = 0; j < 3; ++j) {
        EXPECT_NEAR(info_of(result).values[j], j + 1, n * 1e-10);
    }
    for (void* stream : diagonal.streams) {
        EXPECT_EQ(stream, test_place() == Place::host ? nullptr : cpp.stream());
    }
    // The failing rank throws its own error; the others report NaN.
    diagonal.fail_after = diagonal.calls + 3 + 100 * cpp.comm().rank();
    const quiver_status expected =
        cpp.comm().rank() == 0 ? QUIVER_ERROR_OTHER : QUIVER_ERROR_NUMERICAL;
    EXPECT_EQ(solve(op.get(), options, expected), nullptr);
    if (cpp.comm().rank() == 0) {
        EXPECT_STREQ(quiver_last_message(), "the function of an operator returned 7");
    }
}

int stop_after_three(void* user, const quiver_progress* progress) {
    EXPECT_EQ(progress->struct_size, sizeof(quiver_progress));
    EXPECT_EQ(progress->wanted, 2);
    EXPECT_STREQ(progress->stage, "search");
    return ++*static_cast<int*>(user) == 3 ? 1 : 0;
}

TEST_F(CInterface, ProgressStopsASolveWhichKeepsItsResult) {
    const auto a = tridiagonal(5000, 2, -1);
    int calls = 0;
    quiver_eigen_options options = eigen_options(2);
    options.method = QUIVER_LANCZOS;
    options.progress = &stop_after_three;
    options.progress_user = &calls;
    const auto result = solve(a.get(), options, QUIVER_NOT_CONVERGED);
    ASSERT_NE(result, nullptr);
    const std::string reason = quiver_last_message();
    EXPECT_EQ(calls, 3);
    const quiver_eigen_info info = info_of(result);
    EXPECT_EQ(info.interrupted, 1);
    EXPECT_EQ(info.converged, 0);
    EXPECT_EQ(info.message, reason);
    EXPECT_NE(reason, "");
}

TEST_F(CInterface, LinearSolvesTakeShiftsGuessesAndOneToleranceAColumn) {
    const int n = 120;
    const auto a = tridiagonal(n, 5, -1);
    const std::int64_t rows = RowMap::by_rows(cpp.comm(), n).local_rows();
    const Placed<double> b_there(cpp, std::vector<double>(static_cast<std::size_t>(2 * rows), 1));
    const Placed<double> x_there(cpp, std::vector<double>(static_cast<std::size_t>(2 * rows), 7));
    const quiver_block b = quiver_block_of(place(), QUIVER_D, b_there.data(), rows, 2);
    const quiver_block x = quiver_block_of(place(), QUIVER_D, x_there.data(), rows, 2);
    const double tolerances[] = {1e-4, 1e-12};
    quiver_linear_options options;
    quiver_linear_options_init(&options);
    options.method = QUIVER_MINRES;
    options.column_tol = tolerances;
    options.shift = 1;
    const auto result = make<quiver_linear_result>([&](quiver_linear_result** made) {
        return quiver_linear_solve(ctx(), a.get(), &b, &x, &options, made);
    });
    quiver_linear_info info;
    quiver_linear_info_init(&info);
    ASSERT_EQ(quiver_linear_result_get(result.get(), &info), QUIVER_OK);
    EXPECT_EQ(info.count, 2);
    EXPECT_LT(info.column_iterations[0], info.column_iterations[1]);
    EXPECT_NEAR(info.b_norms[0], std::sqrt(n), 1e-12);
    EXPECT_LE(info.residuals[1], 1e-12 * info.b_norms[1]);
    // (A - I) x = 1 has x = 1/2 far from the ends; at the middle up to (2 - sqrt(3))^60.
    const std::vector<double> found = x_there.read(cpp);
    const std::int64_t middle = n / 2 - RowMap::by_rows(cpp.comm(), n).first_row();
    if (middle >= 0 && middle < rows) {
        EXPECT_NEAR(found[static_cast<std::size_t>(2 * middle + 1)], 0.5, 1e-11);
    }

    options.x_is_guess = 1;
    options.max_iterations = 1;
    ASSERT_EQ(quiver_linear_solve(ctx(), a.get(), &b, &x, &options, nullptr), QUIVER_OK)
        << "the guess is the solution: " << quiver_last_message();
    options.x_is_guess = 0;
    EXPECT_EQ(quiver_linear_solve(ctx(), a.get(), &b, &x, &options, nullptr), QUIVER_NOT_CONVERGED);
    EXPECT_NE(std::string(quiver_last_message()), "");
}

TEST_F(CInterface, BlocksMayHaveGapsAndBeUpdatedInPlace) {
    const std::int64_t rows = 200;
    const double gap = std::nan("");
    std::vector<double> x;
    for (std::int64_t i = 0; i < rows; ++i) {
        x.insert(x.end(), {1, static_cast<double>(i % 4), gap});
    }
    const Placed<double> x_there(cpp, x);
    quiver_block block = quiver_block_of(place(), QUIVER_D, x_there.data(), rows, 2);
    block.ld = 3;
    double gram[4] = {1, 1, 1, 1};
    const quiver_block c = quiver_host_block(QUIVER_D, gram, 2, 2);
    ASSERT_EQ(quiver_tsmttsm(ctx(), quiver_real(2), &block, &block, quiver_real(3), &c), QUIVER_OK)
        << quiver_last_message();
    const double ranks = cpp.comm().size();
    EXPECT_EQ(gram[0], 400 * ranks + 3);
    EXPECT_EQ(gram[1], 600 * ranks + 3);
    EXPECT_EQ(gram[3], 1400 * ranks + 3);

    const double swap[4] = {0, 1, 1, 0};
    const quiver_block small = quiver_host_block(QUIVER_D, swap, 2, 2);
    ASSERT_EQ(quiver_tsmm(ctx(), one, &block, &small, zero, &block), QUIVER_OK);
    const std::vector<double> swapped = x_there.read(cpp);
    EXPECT_EQ(swapped[3 * 7], 3);
    EXPECT_EQ(swapped[3 * 7 + 1], 1);
    EXPECT_TRUE(std::isnan(swapped[3 * 7 + 2]));

    // The second column repeats the first one, so W adds one direction to V.
    const Placed<double> v_there(
        cpp, std::vector<double>(static_cast<std::size_t>(rows), 1 / std::sqrt(200 * ranks)));
    std::vector<double> repeated;
    for (std::int64_t i = 0; i < rows; ++i) {
        const auto value = static_cast<double>(i % 3);
        repeated.insert(repeated.end(), {value, value});
    }
    const Placed<double> w_there(cpp, repeated);
    const quiver_block v = quiver_block_of(place(), QUIVER_D, v_there.data(), rows, 1);
    quiver_block w = quiver_block_of(place(), QUIVER_D, w_there.data(), rows, 2);
    std::int32_t rank = -1;
    ASSERT_EQ(quiver_orthonormalise(ctx(), &v, &w, &rank), QUIVER_OK) << quiver_last_message();
    ASSERT_EQ(rank, 1);
    w.cols = 1;
    double products[2] = {};
    const quiver_block vw = quiver_host_block(QUIVER_D, products, 1, 1);
    const quiver_block ww = quiver_host_block(QUIVER_D, products + 1, 1, 1);
    ASSERT_EQ(quiver_tsmttsm(ctx(), one, &v, &w, zero, &vw), QUIVER_OK);
    ASSERT_EQ(quiver_tsmttsm(ctx(), one, &w, &w, zero, &ww), QUIVER_OK);
    EXPECT_NEAR(products[0], 0, 1e-14);
    EXPECT_NEAR(products[1], 1, 1e-14);
}

TEST_F(CInterface, NullPointersAreRefusedByName) {
    const auto a = tridiagonal(10, 2, -1);
    double data[100] = {};
    const quiver_block x = quiver_host_block(QUIVER_D, data, 10, 1);
    quiver_operator* op = nullptr;
    quiver_eigen_result* eigen = nullptr;
    quiver_eigen_info eigen_info;
    quiver_eigen_info_init(&eigen_info);
    quiver_csr csr;
    quiver_csr_init(&csr);
    csr.index_bits = 32;
    csr.rows = 1;
    const struct {
        const char* name;
        std::function<quiver_status()> call;
    } rows[] = {
        {"context", [] { return quiver_context_create(nullptr, nullptr); }},
        {"context", [] { return quiver_context_synchronize(nullptr); }},
        {"csr", [&] { return quiver_matrix_create(ctx(), nullptr, &op); }},
        {"a is", [&] { return quiver_matrix_create(ctx(), &csr, nullptr); }},
        {"csr.row_start", [&] { return quiver_matrix_create(ctx(), &csr, &op); }},
        {"adjoint", [&] { return quiver_adjoint_create(ctx(), a.get(), nullptr); }},
        {"A is", [&] { return quiver_adjoint_create(ctx(), nullptr, &op); }},
        {"function",
         [&] { return quiver_operator_create(ctx(), QUIVER_D, 1, nullptr, nullptr, &op); }},
        {"name",
         [&] { return quiver_preconditioner_create(ctx(), a.get(), nullptr, nullptr, &op); }},
        {"A is", [&] { return quiver_preconditioner_create(ctx(), nullptr, "ic", nullptr, &op); }},
        {"inverse", [&] { return quiver_inverse_create(ctx(), a.get(), 0, nullptr, nullptr); }},
        {"A is", [&] { return quiver_eigensolve(ctx(), nullptr, nullptr, &eigen); }},
        {"result", [&] { return quiver_eigensolve(ctx(), a.get(), nullptr, nullptr); }},
        {"result", [&] { return quiver_eigen_result_get(nullptr, &eigen_info); }},
        {"result", [&] { return quiver_linear_result_get(nullptr, nullptr); }},
        {"B is",
         [&] { return quiver_linear_solve(ctx(), a.get(), nullptr, &x, nullptr, nullptr); }},
        {"X is",
         [&] { return quiver_linear_solve(ctx(), a.get(), &x, nullptr, nullptr, nullptr); }},
        {"A is", [&] { return quiver_tsmttsm(ctx(), one, nullptr, &x, zero, &x); }},
        {"C is", [&] { return quiver_tsmttsm(ctx(), one, &x, &x, zero, nullptr); }},
        {"Y is", [&] { return quiver_tsmm(ctx(), one, &x, &x, zero, nullptr); }},
        {"A is", [&] { return quiver_spmm(ctx(), nullptr, one, &x, zero, &x); }},
        {"R is", [&] { return quiver_qr(ctx(), &x, &x, nullptr); }},
        {"W is", [&] { return quiver_orthonormalise(ctx(), nullptr, nullptr, nullptr); }},
        {"to is", [&] { return quiver_copy(ctx(), &x, nullptr); }},
    };
    for (const auto& row : rows) {
        expect_error(row.call(), QUIVER_ERROR_INPUT, row.name);
        EXPECT_NE(std::string(quiver_last_message()).find("null pointer"), std::string::npos);
    }
    quiver_context_free(nullptr);
    quiver_operator_free(nullptr);
    quiver_eigen_result_free(nullptr);
    quiver_linear_result_free(nullptr);
}

TEST_F(CInterface, StructsOfOtherSizesAreRefusedOrCompleted) {
    const auto a = tridiagonal(30, 2, -1);
    for (const std::size_t size : {std::size_t{0}, sizeof(quiver_eigen_options) + 1}) {
        quiver_eigen_options options = eigen_options(2);
        options.struct_size = size;
        quiver_eigen_result* result = nullptr;
        expect_error(quiver_eigensolve(ctx(), a.get(), &options, &result), QUIVER_ERROR_INPUT,
                     "quiver_eigen_options.struct_size");
        EXPECT_EQ(result, nullptr);
        quiver_linear_options linear;
        quiver_linear_options_init(&linear);
        linear.struct_size = size == 0 ? 0 : sizeof linear + 1;
        expect_error(quiver_linear_solve(ctx(), a.get(), nullptr, nullptr, &linear, nullptr),
                     QUIVER_ERROR_INPUT, "quiver_linear_options.struct_size");
        quiver_context_options context_options;
        quiver_context_options_init(&context_options);
        context_options.struct_size = size == 0 ? 0 : sizeof context_options + 1;
        quiver_context* other = nullptr;
        expect_error(quiver_context_create(&context_options, &other), QUIVER_ERROR_INPUT,
                     "quiver_context_options.struct_size");
    }
    // A caller compiled with a header that ended before `target` and the fields after it.
    quiver_eigen_options options = eigen_options(2);
    options.struct_size = offsetof(quiver_eigen_options, target);
    options.tol = 17;
    options.progress = reinterpret_cast<quiver_progress_function>(1);
    const auto result = solve(a.get(), options);
    // A caller whose info ended before `residuals`: the library must not write beyond its end.
    quiver_eigen_info info;
    std::memset(&info, 0x5a, sizeof info);
    info.struct_size = offsetof(quiver_eigen_info, residuals);
    ASSERT_EQ(quiver_eigen_result_get(result.get(), &info), QUIVER_OK);
    EXPECT_EQ(info.count, 2);
    EXPECT_NEAR(info.values[0], exact(30, 2, -1, 0), 4e-10);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(info.residuals), 0x5a5a5a5a5a5a5a5aU);
    info.struct_size = sizeof info + 8;
    expect_error(quiver_eigen_result_get(result.get(), &info), QUIVER_ERROR_INPUT,
                 "quiver_eigen_info.struct_size");
}

TEST_F(CInterface, EveryStatusHasACause) {
    const auto a = tridiagonal(40, 2, -1);
    const std::int64_t rows = RowMap::by_rows(cpp.comm(), 40).local_rows();
    std::vector<double> values(static_cast<std::size_t>(3 * rows), 1);
    const Placed<double> there(cpp, values);
    const quiver_block x = quiver_block_of(place(), QUIVER_D, there.data(), rows, 1);
    quiver_block bad = x;
    bad.type = QUIVER_Z;
    expect_error(quiver_spmm(ctx(), a.get(), one, &x, zero, &bad), QUIVER_ERROR_SHAPE,
                 "scalar type z");
    bad = x;
    bad.ld = -1;
    expect_error(quiver_spmm(ctx(), a.get(), one, &x, zero, &bad), QUIVER_ERROR_SHAPE, "ld -1");
    bad = x;
    bad.place = 2;
    expect_error(quiver_copy(ctx(), &bad, &x), QUIVER_ERROR_INPUT, "place = 2");
    bad = x;
    bad.rows = rows - 1;
    expect_error(quiver_copy(ctx(), &bad, &x), QUIVER_ERROR_SHAPE, "");
    expect_error(quiver_tsmttsm(ctx(), quiver_complex(1, 1), &x, &x, zero, &x), QUIVER_ERROR_INPUT,
                 "imaginary");
    quiver_eigen_options options = eigen_options(2);
    options.which = 6;
    EXPECT_EQ(solve(a.get(), options, QUIVER_ERROR_INPUT), nullptr);
    options = eigen_options(2);
    options.tol = -1;
    EXPECT_EQ(solve(a.get(), options, QUIVER_ERROR_INPUT), nullptr);
    quiver_operator* made = nullptr;
    expect_error(quiver_preconditioner_create(ctx(), a.get(), "magic", nullptr, &made),
                 QUIVER_ERROR_INPUT, "magic");

    quiver_context_options device;
    quiver_context_options_init(&device);
    device.place = QUIVER_DEVICE;
    device.device = 4096;
    quiver_context* none = nullptr;
    expect_error(quiver_context_create(&device, &none), QUIVER_ERROR_UNSUPPORTED, "");

    values.assign(values.size(), std::nan(""));
    const Placed<double> nan_there(cpp, values);
    const quiver_block nan = quiver_block_of(place(), QUIVER_D, nan_there.data(), rows, 1);
    double r = 0;
    const quiver_block triangle = quiver_host_block(QUIVER_D, &r, 1, 1);
    const quiver_block other = quiver_block_of(place(), QUIVER_D, there.data() + rows, rows, 1);
    const quiver_block wide = quiver_block_of(place(), QUIVER_D, there.data() + rows, rows, 2);
    expect_error(quiver_qr(ctx(), &x, &wide, &triangle), QUIVER_ERROR_SHAPE,
                 "qr: Q must have the shape of X");
    expect_error(quiver_qr(ctx(), &x, &other, &wide), QUIVER_ERROR_SHAPE,
                 "qr: R must be square with the columns of X");
    expect_error(quiver_qr(ctx(), &x, &x, &triangle), QUIVER_ERROR_SHAPE, "qr: X and Q overlap");
    expect_error(quiver_qr(ctx(), &nan, &x, &triangle), QUIVER_ERROR_NUMERICAL, "");

    Diagonal diagonal;
    const auto huge = make<quiver_operator>([&](quiver_operator** op) {
        return quiver_operator_create(ctx(), QUIVER_D, std::int64_t{1} << 50, &Diagonal::apply,
                                      &diagonal, op);
    });
    EXPECT_EQ(solve(huge.get(), eigen_options(1), QUIVER_ERROR_MEMORY), nullptr);
    EXPECT_EQ(quiver_status_name(17), std::string("an unknown status"));
    EXPECT_EQ(quiver_context_synchronize(ctx()), QUIVER_OK);
    EXPECT_STREQ(quiver_last_message(), "");
}

TEST_F(CInterface, HandlesOfAnotherContextAreRefusedAndOutliveTheirOwn) {
    const auto a = tridiagonal(20, 2, -1);
    quiver_context* other = nullptr;
    ASSERT_EQ(quiver_context_create(nullptr, &other), QUIVER_OK);
    quiver_eigen_result* result = nullptr;
    expect_error(quiver_eigensolve(other, a.get(), nullptr, &result), QUIVER_ERROR_INPUT,
                 "another context");
    quiver_context_free(other);
    auto found = solve(a.get(), eigen_options(1));
    context.reset();
    EXPECT_NEAR(info_of(found).values[0], exact(20, 2, -1, 0), 4e-10);
}

TEST_F(CInterface, ThreadsHaveTheirOwnMessagesAndMayShareAContext) {
    if (cpp.comm().size() > 1) {
        return;  // ranks need the same order of calls, which threads do not have
    }
    const auto a = tridiagonal(400, 2, -1);
    std::atomic<int> right = 0;
    const auto work = [&](bool shared, int bad_type) {
        quiver_context* own = nullptr;
        EXPECT_EQ(quiver_context_create(nullptr, &own), QUIVER_OK);
        double value = 0;
        const quiver_block wrong = quiver_host_block(bad_type, &value, 1, 1);
        for (int round = 0; round < 5; ++round) {
            EXPECT_EQ(quiver_copy(own, &wrong, &wrong), QUIVER_ERROR_INPUT);
            const std::string message = quiver_last_message();
            right += message.find("type = " + std::to_string(bad_type)) == 0 ? 1 : 0;
            quiver_eigen_options options = eigen_options(2);
            options.method = QUIVER_LANCZOS;
            quiver_eigen_result* result = nullptr;
            EXPECT_EQ(quiver_eigensolve(shared ? ctx() : own, a.get(), &options, &result),
                      shared ? QUIVER_OK : QUIVER_ERROR_INPUT);
            if (result != nullptr) {
                const Handle<quiver_eigen_result> handle(result);
                EXPECT_NEAR(info_of(handle).values[1], exact(400, 2, -1, 1), 4e-10);
            }
        }
        quiver_context_free(own);
    };
    std::thread first(work, true, 11), second(work, true, 22), third(work, false, 33);
    first.join();
    second.join();
    third.join();
    EXPECT_EQ(right, 15);
}

}  // namespace
}  // namespace quiver::test
