// SPDX-License-Identifier: BSD-3-Clause
// Tests that a sparse product whose kernel is not compiled yet uses kernels of the pack, and gives
// the same bits as with its own kernel.
#include <cmath>
#include <complex>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "kernels/cuda/expressions.hpp"
#include "kernels/cuda/kernel_pack.hpp"
#include "kernels/sparse/assemble.hpp"
#include "kernels/sparse/sparse_matrix.hpp"
#include "tests/kernels/sparse/grid.hpp"
#include "tests/support/fixtures.hpp"
#include "tests/support/shared_folder.hpp"

namespace quiver::test {
namespace {

/// Sets QUIVER_CACHE in a scope.
class CacheFolder {
  public:
    explicit CacheFolder(const std::string& folder) {
        if (const char* before = std::getenv("QUIVER_CACHE")) {
            before_ = before;
        }
        ::setenv("QUIVER_CACHE", folder.c_str(), 1);
    }
    CacheFolder(const CacheFolder&) = delete;
    CacheFolder& operator=(const CacheFolder&) = delete;
    ~CacheFolder() { ::setenv("QUIVER_CACHE", before_.c_str(), 1); }

  private:
    std::string before_;
};

/// True if a file of the folder contains the text.
bool holds(const std::string& folder, const std::string& text) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
        std::ifstream file(entry.path(), std::ios::binary);
        const std::string content{std::istreambuf_iterator<char>(file), {}};
        if (content.find(text) != std::string::npos) {
            return true;
        }
    }
    return false;
}

template <class T>
class SparseStandIns : public ::testing::Test {};
TYPED_TEST_SUITE(SparseStandIns, Scalars, ScalarName);

TYPED_TEST(SparseStandIns, HaveTheBitsOfTheKernelThatIsCompiledMeanwhile) {
    using T = TypeParam;
    if (test_place() == Place::host || cuda::KernelPack::installed("sm_90").empty()) {
        GTEST_SKIP() << "needs a GPU and the pack that the build makes for sm_90";
    }
    const SharedFolder shared(make_context().comm());
    const CacheFolder cache(shared.path(""));
    std::mt19937_64 generator = make_generator();
    Context ctx = make_context();
    int waits = 0;
    ctx.set_event_sink([&](const Event& event) {
        waits += std::holds_alternative<KernelWaitEvent>(event) ? 1 : 0;
    });
    const Grid grid(17);
    const RowMap map = RowMap::by_rows(ctx.comm(), grid.rows());
    std::vector<T> value(grid.column.size());
    for (T& entry : value) {
        entry = random_value<T>(generator);
    }
    SparseMatrix<T> a(ctx, rows_from_csr<T, std::int64_t>(ctx.comm(), map, Symmetry::general,
                                                          grid.row_start, grid.column, value));
    // Each of these widths is one panel in every precision.
    for (const int width : {15, 17, 23}) {
        SCOPED_TRACE(std::to_string(width) + " columns");
        TestBlock<T> x(ctx, random_global<T>(generator, grid.rows(), width), map, Layout{});
        const auto product = [&] {
            TestBlock<T> y(ctx, poisoned_global<T>(grid.rows(), width), map, Layout{});
            a.apply(ctx, x.view(), y.view());
            return y.result().values;
        };

        const auto first = product();

        EXPECT_EQ(waits, 0);
        // The beginning of the kernel's name in the stored program.
        const std::string arguments =
            "<" + std::string(cuda::device_name<T>()) + ",int," + std::to_string(width) + ",";
        const auto is_compiled = [&] {
            return holds(shared.path(""), "spmmv" + arguments) ||
                   holds(shared.path(""), "spmmv_ahead" + arguments);
        };
        for (int turn = 0; turn < 600 && !is_compiled(); ++turn) {
            std::this_thread::sleep_for(std::chrono::milliseconds(100));
        }
        EXPECT_TRUE(is_compiled());
        const auto second = product();
        EXPECT_EQ(waits, 0);
        ASSERT_EQ(first.size(), second.size());
        for (std::size_t i = 0; i < first.size(); ++i) {
            ASSERT_TRUE(std::isfinite(std::abs(first[i])) && same_bits(first[i], second[i])) << i;
        }
    }
}

}  // namespace
}  // namespace quiver::test
