// SPDX-License-Identifier: BSD-3-Clause
// Tests the loops of the host on several threads, also with a thread sanitizer. The blocks are
// large enough to be divided, because a thread gets at least 64 KiB of rows. The elements are small
// integers, so that all results are exact in any order of the sums.
#include <numeric>

#include <gtest/gtest.h>
#include <omp.h>

#include "kernels/random.hpp"
#include "kernels/reference/reference_kernels.hpp"
#include "kernels/tsmm.hpp"
#include "kernels/tsmttsm.hpp"
#include "tests/support/bounds.hpp"
#include "tests/support/fixtures.hpp"

namespace quiver::test {
namespace {

template <class T>
class ParallelRows : public ::testing::Test {
  protected:
    void SetUp() override {
        if (Comm(MPI_COMM_WORLD).size() > 1) {
            GTEST_SKIP() << "each process would do the same as one";
        }
    }

    std::mt19937_64 generator = make_generator();

    /// The number of rows of a block of slightly more than 256 KiB.
    static std::int64_t rows_of(int width) {
        return (std::int64_t{256} << 10) / (static_cast<std::int64_t>(sizeof(T)) * width) + 7;
    }

    Global<T> integers(std::int64_t rows, int cols) {
        return integer_global<T>(generator, rows, cols);
    }

    /// Calls check(ctx, width, layout) for 2, 3 and 5 threads.
    template <class Check>
    void for_threads(const Check& check) {
        for (const int threads : {2, 3, 5}) {
            Context ctx(Comm(), Device::host(threads));
            for (const int width : {1, 5, 16, 33}) {
                for (const Layout layout : {layouts[0], layouts[2]}) {
                    SCOPED_TRACE(std::to_string(threads) + " threads, width " +
                                 std::to_string(width) + ", padding " +
                                 std::to_string(layout.padding));
                    check(ctx, width, layout);
                }
            }
        }
    }
};
TYPED_TEST_SUITE(ParallelRows, Scalars, ScalarName);

TYPED_TEST(ParallelRows, AxpbyAndScale) {
    using T = TypeParam;
    this->for_threads([&](Context& ctx, int width, Layout layout) {
        const std::int64_t rows = this->rows_of(width);
        const auto x = this->integers(rows, width);
        const auto alpha = this->integers(1, width);
        const auto beta = this->integers(1, width);
        auto expected = this->integers(rows, width);
        TestBlock<T> x_block(ctx, x, layout, Place::host);
        TestBlock<T> y_block(ctx, expected, layout, Place::host);
        AxpbyArgs<T> args{rows,    width,           T(2),
                          nullptr, x.values.data(), width,
                          T(-1),   nullptr,         expected.values.data(),
                          width};

        axpby(ctx, args.alpha, x_block.view(), args.beta, y_block.view());
        reference::axpby<wide_t<T>>(args);
        expect_equal(y_block.result(), expected);

        axpby(ctx, alpha.values, x_block.view(), beta.values, y_block.view());
        args.alphas = alpha.values.data();
        args.betas = beta.values.data();
        reference::axpby<wide_t<T>>(args);
        expect_equal(y_block.result(), expected);

        scale(ctx, beta.values, y_block.view());
        args.alpha = T(0);
        args.alphas = nullptr;
        reference::axpby<wide_t<T>>(args);
        expect_equal(y_block.result(), expected);
        x_block.expect_unchanged();
    });
}

TYPED_TEST(ParallelRows, DotsAndNorms) {
    using T = TypeParam;
    this->for_threads([&](Context& ctx, int width, Layout layout) {
        const std::int64_t rows = this->rows_of(width);
        const auto x = this->integers(rows, width);
        const auto y = this->integers(rows, width);
        TestBlock<T> x_block(ctx, x, layout, Place::host);
        TestBlock<T> y_block(ctx, y, layout, Place::host);
        const auto size = static_cast<std::size_t>(width);
        std::vector<T> actual(size);
        std::vector<real_t<T>> lengths(size);
        dots<T>(ctx, x_block.view(), y_block.view(), actual);
        norms(ctx, x_block.view(), std::span(lengths));
        std::vector<T> expected(size);
        reference::dots<wide_t<T>>(DotsArgs<T>{rows, width, x.values.data(), width, y.values.data(),
                                               width, expected.data()});
        EXPECT_EQ(actual, expected);
        reference::dots<wide_t<T>>(DotsArgs<T>{rows, width, x.values.data(), width, x.values.data(),
                                               width, expected.data()});
        for (std::size_t j = 0; j < size; ++j) {
            ASSERT_EQ(lengths[j], std::sqrt(real_part(expected[j])));
        }
    });
}

TYPED_TEST(ParallelRows, CopyFillAndRandom) {
    using T = TypeParam;
    using Other = std::conditional_t<is_complex_v<T>,
                                     std::conditional_t<std::is_same_v<T, std::complex<float>>,
                                                        std::complex<double>, std::complex<float>>,
                                     std::conditional_t<std::is_same_v<T, float>, double, float>>;
    this->for_threads([&](Context& ctx, int width, Layout layout) {
        const std::int64_t rows = this->rows_of(width);
        const auto x = this->integers(rows, width);
        TestBlock<T> block(ctx, x, layout, Place::host);
        TestBlock<Other> other(ctx, poisoned_global<Other>(rows, width), layout, Place::host);
        copy(ctx, block.view(), other.view());
        fill(ctx, T(5), block.view());
        expect_equal(block.result(), Global<T>(rows, width, [] { return T(5); }));
        copy(ctx, other.view(), block.view());
        expect_equal(block.result(), x);

        Global<T> random(rows, width);
        reference::fill_random(RandomArgs<T>{rows, width, 9, 3, 1, random.values.data(), width});
        fill_random(ctx, 9, 3, 1, block.view());
        expect_same_bits(block.result(), random);
    });
}

TYPED_TEST(ParallelRows, GatherColumnsAsideAndInPlace) {
    using T = TypeParam;
    this->for_threads([&](Context& ctx, int width, Layout layout) {
        const std::int64_t rows = this->rows_of(width);
        const auto x = this->integers(rows, width);
        std::vector<int> reversed(static_cast<std::size_t>(width));
        std::iota(reversed.rbegin(), reversed.rend(), 0);
        Global<T> expected(rows, width);
        reference::gather_columns(GatherColumnsArgs<T>{rows, width, width, x.values.data(), width,
                                                       reversed.data(), expected.values.data(),
                                                       width});
        TestBlock<T> x_block(ctx, x, layout, Place::host);
        TestBlock<T> y_block(ctx, poisoned_global<T>(rows, width), layout, Place::host);
        gather_columns<T>(ctx, x_block.view(), reversed, y_block.view());
        x_block.expect_unchanged();
        expect_same_bits(y_block.result(), expected);
        gather_columns<T>(ctx, x_block.view(), reversed, x_block.view());
        expect_same_bits(x_block.result(), expected);
    });
}

TYPED_TEST(ParallelRows, Tsmttsm) {
    using T = TypeParam;
    this->for_threads([&](Context& ctx, int width, Layout layout) {
        const std::int64_t rows = this->rows_of(width);
        for (const int n : {width, std::max(1, width - 2)}) {
            const auto a = this->integers(rows, width);
            const auto b = this->integers(rows, n);
            auto expected = this->integers(width, n);
            TestBlock<T> a_block(ctx, a, layout, Place::host);
            TestBlock<T> b_block(ctx, b, layout, Place::host);
            TestBlock<T> c_block(ctx, expected, layout, Place::host);
            tsmttsm(ctx, T(2), a_block.view(), b_block.view(), T(-1), c_block.view());
            reference::tsmttsm<wide_t<T>>(TsmttsmArgs<T>{rows, width, n, T(2), a.values.data(),
                                                         width, b.values.data(), n, T(-1),
                                                         expected.values.data(), n});
            expect_equal(c_block.result(), expected);
        }
    });
}

TYPED_TEST(ParallelRows, TsmmAsideAndInPlace) {
    using T = TypeParam;
    this->for_threads([&](Context& ctx, int width, Layout layout) {
        const std::int64_t rows = this->rows_of(width);
        const auto x = this->integers(rows, width);
        const auto c = this->integers(width, width);
        auto expected = this->integers(rows, width);
        TestBlock<T> x_block(ctx, x, layout, Place::host);
        TestBlock<T> y_block(ctx, expected, layout, Place::host);
        TsmmArgs<T> args{rows,  width,           width, T(2),  x.values.data(),
                         width, c.values.data(), width, T(-1), expected.values.data(),
                         width};
        const BlockView<const T> c_view(c.values.data(), width, width, width);

        tsmm(ctx, args.alpha, x_block.view(), c_view, args.beta, y_block.view());
        reference::tsmm<wide_t<T>>(args);
        x_block.expect_unchanged();
        expect_equal(y_block.result(), expected);

        tsmm(ctx, args.alpha, x_block.view(), c_view, T(0), x_block.view());
        args.beta = T(0);
        reference::tsmm<wide_t<T>>(args);
        expect_equal(x_block.result(), expected);
    });
}

// In LLVM's OpenMP, a num_threads clause that its region does not use applies to the next region.
TYPED_TEST(ParallelRows, LeaveTheCallersThreadsAlone) {
    using T = TypeParam;
    const int before = omp_get_max_threads();
    omp_set_num_threads(2);
    const auto team = [] {
        int threads = 0;
#pragma omp parallel
        {
#pragma omp single
            threads = omp_get_num_threads();
        }
        return threads;
    };
    ASSERT_EQ(team(), 2);
    Context ctx(Comm(), Device::host(3));
    TestBlock<T> block(ctx, Global<T>(9, 2), layouts[1], Place::host);
    axpby(ctx, T(1), block.view(), T(1), block.view());
    EXPECT_EQ(team(), 2);
    fill(ctx, T(1), block.view());
    EXPECT_EQ(team(), 2);
    gather_columns<T>(ctx, block.view(), std::vector<int>{1, 0}, block.view());
    EXPECT_EQ(team(), 2);
    omp_set_num_threads(before);
}

}  // namespace
}  // namespace quiver::test
