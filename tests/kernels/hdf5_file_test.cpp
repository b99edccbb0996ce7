// SPDX-License-Identifier: BSD-3-Clause
// Writes block vectors to HDF5 files and reads them back, on all ranks and with h5py.
#include "kernels/hdf5_file.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "blockvec/config.hpp"
#include "tests/support/file_size_limit.hpp"
#include "tests/support/fixtures.hpp"
#include "tests/support/shared_folder.hpp"

namespace quiver::test {
namespace {

namespace fs = std::filesystem;

/// This rank's rows of `values`, in a block that has room for one more column.
template <class T>
BlockVector<T> deal(Context& ctx, const Global<T>& values, const RowMap& map) {
    BlockVector<T> x(ctx, map, values.cols, values.cols + 1);
    copy(ctx,
         BlockView<const T>(values.values.data() + map.first_row() * values.cols, map.local_rows(),
                            values.cols, values.cols),
         x.view());
    return x;
}

/// Checks that every element of this rank's rows equals the converted element of `values`.
template <class T, class U>
void expect_rows(Context& ctx, const BlockVector<T>& x, const Global<U>& values) {
    ASSERT_EQ(x.row_map().global_rows(), values.rows);
    ASSERT_EQ(x.width(), values.cols);
    Global<T> local(x.rows(), x.width());
    copy(ctx, x.view(), BlockView<T>(local.values.data(), x.rows(), x.width(), x.width()));
    for (std::int64_t i = 0; i < x.rows(); ++i) {
        for (int j = 0; j < x.width(); ++j) {
            ASSERT_EQ(local(i, j), static_cast<T>(values(x.row_map().first_row() + i, j)))
                << i << ' ' << j;
        }
    }
}

class Hdf5 : public ::testing::Test {
  protected:
    void SetUp() override {
        if (!config::have_hdf5) {
            GTEST_SKIP() << "built without HDF5";
        }
    }
    Context ctx = make_context();
    std::mt19937_64 generator = make_generator();
    SharedFolder folder{ctx.comm()};
};

template <class T>
class Hdf5Scalar : public Hdf5 {};
TYPED_TEST_SUITE(Hdf5Scalar, Scalars, ScalarName);

TYPED_TEST(Hdf5Scalar, RoundTripKeepsEveryBitOnAnyDealOfRows) {
    using T = TypeParam;
    const std::string path = this->folder.path("x.h5");
    for (const auto& [rows, width] : {std::pair{1, 1}, {2, 5}, {103, 7}, {0, 3}, {4, 0}}) {
        const auto values = random_global<T>(this->generator, rows, width);
        const RowMap uneven = uneven_map(this->ctx, rows);
        write_block_vector(this->ctx, path, deal(this->ctx, values, uneven));
        expect_rows(this->ctx, read_block_vector<T>(this->ctx, path), values);
        expect_rows(this->ctx, read_block_vector<T>(this->ctx, path, uneven), values);
        EXPECT_EQ(this->folder.files(), 1);
    }
}

TYPED_TEST(Hdf5Scalar, ChunksOfSeveralRowsJoinWithoutASeam) {
    using T = TypeParam;
    // 9 rows of 3 MiB, in chunks of at most two rows.
    const int width = static_cast<int>((std::size_t{3} << 20) / sizeof(T));
    const auto values = integer_global<T>(this->generator, 9, width);
    const std::string path = this->folder.path("wide.h5");
    write_block_vector(this->ctx, path,
                       deal(this->ctx, values, RowMap::by_rows(this->ctx.comm(), 9)));
    expect_rows(this->ctx, read_block_vector<T>(this->ctx, path), values);
}

TEST_F(Hdf5, ReadsOtherPrecisionsAndRealNumbersIntoComplexScalars) {
    const auto values = random_global<double>(generator, 20, 3);
    const std::string path = folder.path("x.h5");
    const RowMap map = RowMap::by_rows(ctx.comm(), 20);
    write_block_vector(ctx, path, deal(ctx, values, map));
    expect_rows(ctx, read_block_vector<float>(ctx, path), values);
    expect_rows(ctx, read_block_vector<std::complex<double>>(ctx, path), values);
    const auto complex_values = random_global<std::complex<double>>(generator, 20, 3);
    write_block_vector(ctx, path, deal(ctx, complex_values, map));
    expect_rows(ctx, read_block_vector<std::complex<float>>(ctx, path), complex_values);
    EXPECT_THROW(read_block_vector<double>(ctx, path), InputError);
}

TEST_F(Hdf5, ReadsTheNumbersBesideTheBlockAsAColumn) {
    const auto values = random_global<float>(generator, 5, 2);
    const std::string path = folder.path("x.h5");
    const std::vector<double> numbers{0.1, -2, 1e300};
    write_block_vector(ctx, path, deal(ctx, values, RowMap::by_rows(ctx.comm(), 5)),
                       {.numbers = {{"eigenvalues", numbers}, {"none", {}}},
                        .texts = {{"matrix", "gen:x"}, {"empty", ""}}});
    Global<double> expected(3, 1);
    expected.values = numbers;
    expect_rows(ctx, read_block_vector<double>(ctx, path, std::nullopt, "eigenvalues"), expected);
    EXPECT_EQ(read_block_vector<double>(ctx, path, std::nullopt, "none").row_map().global_rows(),
              0);
}

TEST_F(Hdf5, ReadsTheMatricesBesideTheBlockAndSaysWhatTheyAre) {
    const auto values = random_global<float>(generator, 5, 2);
    const std::string path = folder.path("x.h5");
    SmallMatrix<std::complex<double>> small(2, 3);
    Global<std::complex<double>> complex_expected(2, 3);
    Global<double> real_expected(2, 3);
    for (int i = 0; i < 2; ++i) {
        for (int j = 0; j < 3; ++j) {
            small(i, j) = complex_expected(i, j) = {i + 0.1, j - 0.7};
            real_expected(i, j) = i + 0.1;
        }
    }
    write_block_vector(ctx, path, deal(ctx, values, RowMap::by_rows(ctx.comm(), 5)),
                       {.matrices = {{"R", small, false}, {"H", small, true}, {"empty", {}}}});
    expect_rows(ctx, read_block_vector<double>(ctx, path, std::nullopt, "R"), real_expected);
    expect_rows(ctx, read_block_vector<std::complex<double>>(ctx, path, std::nullopt, "H"),
                complex_expected);
    const BlockFileInfo block = inspect_block_file(path);
    EXPECT_EQ(block.rows, 5);
    EXPECT_EQ(block.cols, 2);
    EXPECT_FALSE(block.complex);
    EXPECT_TRUE(inspect_block_file(path, "H").complex);
    EXPECT_EQ(inspect_block_file(path, "empty").rows, 0);
    EXPECT_THROW(inspect_block_file(folder.path("no.h5")), InputError);
}

TEST_F(Hdf5, BadPathsAndFilesAreInputErrorsOnAllRanks) {
    const auto values = random_global<double>(generator, 6, 2);
    const RowMap map = RowMap::by_rows(ctx.comm(), 6);
    const auto x = deal(ctx, values, map);
    const auto expect_input_error = [](auto&& act, const std::string& part) {
        try {
            act();
            ADD_FAILURE() << "no error; expected " << part;
        } catch (const InputError& error) {
            EXPECT_TRUE(error.collective());
            EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
            EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
        }
    };
    const std::string missing = folder.path("no/such/x.h5");
    expect_input_error([&] { write_block_vector(ctx, folder.path(""), x); }, "directory");
    expect_input_error([&] { write_block_vector(ctx, "-", x); }, "needs a regular file");
    expect_input_error([&] { read_block_vector<double>(ctx, missing); }, missing);
    EXPECT_EQ(folder.files(), 0);

    const std::string path = folder.path("x.h5");
    write_block_vector(ctx, path, x);
    expect_input_error([&] { write_block_vector(ctx, path + "/y.h5", x); }, path + "/y.h5");
    EXPECT_EQ(folder.files(), 1);
    expect_input_error([&] { read_block_vector<double>(ctx, path, std::nullopt, "y"); },
                       "no dataset y");
    expect_input_error(
        [&] { read_block_vector<double>(ctx, path, RowMap::by_rows(ctx.comm(), 7)); }, "6 rows");
    ctx.comm().barrier();
    if (ctx.comm().rank() == 0) {
        fs::resize_file(path, fs::file_size(path) / 2);
    }
    ctx.comm().barrier();
    expect_input_error([&] { read_block_vector<double>(ctx, path); }, path);
    ctx.comm().barrier();
    if (ctx.comm().rank() == 0) {
        std::ofstream(path) << "not HDF5 at all";
    }
    ctx.comm().barrier();
    expect_input_error([&] { read_block_vector<double>(ctx, path); }, path);
}

TEST_F(Hdf5, RefusesNumbersThatAreNotFinite) {
    auto values = random_global<double>(generator, 30, 4);
    values(29, 2) = std::numeric_limits<double>::quiet_NaN();
    const std::string path = folder.path("x.h5");
    write_block_vector(ctx, path, deal(ctx, values, RowMap::by_rows(ctx.comm(), 30)));
    try {
        read_block_vector<double>(ctx, path);
        ADD_FAILURE() << "read NaN";
    } catch (const InputError& error) {
        EXPECT_NE(std::string(error.what()).find("row 29, column 2"), std::string::npos)
            << error.what();
    }
}

TEST_F(Hdf5, RefusesABlockOfOtherRanks) {
    BlockVector<double> alone(
        ctx,
        RowMap(0, std::vector<std::int64_t>(static_cast<std::size_t>(ctx.comm().size()) + 2, 0)),
        1);
    EXPECT_THROW(write_block_vector(ctx, folder.path("x.h5"), alone), ShapeError);
    EXPECT_EQ(folder.files(), 0);
}

TEST_F(Hdf5, AFullDiskIsOneErrorOnAllRanksAndLeavesTheOldFile) {
    const auto values = random_global<double>(generator, 300, 4);
    const RowMap map = RowMap::by_rows(ctx.comm(), 300);
    const std::string path = folder.path("x.h5");
    write_block_vector(ctx, path, deal(ctx, values, map));
    const auto larger = random_global<double>(generator, 600000, 4);
    const auto x = deal(ctx, larger, RowMap::by_rows(ctx.comm(), 600000));
    for (const rlim_t bytes : {0U, 1U << 16, 4U << 20, 16U << 20}) {
        ctx.comm().barrier();
        // Only rank 0 writes the file. On the other ranks the limit would apply to the shared
        // memory of MPI.
        std::optional<FileSizeLimit> limit;
        if (ctx.comm().rank() == 0) {
            limit.emplace(bytes);
        }
        try {
            write_block_vector(ctx, path, x);
            ADD_FAILURE() << "no error with " << bytes << " bytes";
        } catch (const Error& error) {
            EXPECT_TRUE(error.collective());
            EXPECT_EQ(error.kind(), ErrorKind::other) << error.what();
            EXPECT_NE(std::string(error.what()).find("File too large"), std::string::npos)
                << error.what();
        }
        limit.reset();
        EXPECT_EQ(folder.files(), 1);
        expect_rows(ctx, read_block_vector<double>(ctx, path), values);
    }
}

/// Runs a script with the first Python that has h5py. Returns its exit status, or 77 if no Python
/// has h5py.
int run_python(const std::string& script, const std::string& arguments) {
    const std::string command =
        "for p in python3 /usr/bin/python3; do $p -c 'import h5py' 2>/dev/null && exec $p " +
        script + " " + arguments + "; done; exit 77";
    const int raw = std::system(command.c_str());
    return WIFEXITED(raw) ? WEXITSTATUS(raw) : -1;
}

TEST_F(Hdf5, H5pyReadsWhatIsWrittenAndIsRead) {
    const RowMap map = RowMap::by_rows(ctx.comm(), 11);
    const auto element = [](std::int64_t i, int j) {
        return std::complex(static_cast<double>(i) + 0.25, j - 0.5);
    };
    Global<std::complex<float>> values(11, 3);
    for (std::int64_t i = 0; i < 11; ++i) {
        for (int j = 0; j < 3; ++j) {
            values(i, j) = std::complex<float>(element(i, j));
        }
    }
    const std::string path = folder.path("x.h5");
    const std::string back = folder.path("back.h5");
    write_block_vector(ctx, path, deal(ctx, values, map),
                       {.numbers = {{"eigenvalues", {1, 2, 3}}}, .texts = {{"matrix", "gen:x"}}});
    std::int64_t status = 0;
    if (ctx.comm().rank() == 0) {
        const std::string script = folder.path("check.py");
        std::ofstream(script) << R"(
import sys, h5py, numpy
with h5py.File(sys.argv[1]) as f:
    x = f["vectors"][:]
    assert x.dtype == numpy.complex64 and x.shape == (11, 3), (x.dtype, x.shape)
    i, j = numpy.indices(x.shape)
    assert (x == i + 0.25 + 1j * (j - 0.5)).all(), x
    assert (f["eigenvalues"][:] == [1, 2, 3]).all()
    assert f.attrs["matrix"] in ("gen:x", b"gen:x"), f.attrs["matrix"]
with h5py.File(sys.argv[2], "w") as f:
    f["b"] = numpy.arange(20, dtype=numpy.int32).reshape(10, 2)
    f["z"] = x.astype(numpy.complex128)
)";
        status = run_python(script, path + " " + back);
    }
    status = ctx.comm().max(status);
    if (status == 77) {
        GTEST_SKIP() << "no Python with h5py";
    }
    ASSERT_EQ(status, 0);
    Global<double> counted(10, 2);
    for (std::size_t i = 0; i < counted.values.size(); ++i) {
        counted.values[i] = static_cast<double>(i);
    }
    expect_rows(ctx, read_block_vector<double>(ctx, back, std::nullopt, "b"), counted);
    expect_rows(ctx, read_block_vector<std::complex<double>>(ctx, back, std::nullopt, "z"), values);
}

TEST(Hdf5Missing, IsSaidWithItsCure) {
    if (config::have_hdf5) {
        EXPECT_NO_THROW(require_hdf5());
        return;
    }
    Context ctx = make_context();
    EXPECT_THROW(require_hdf5(), UnsupportedError);
    EXPECT_THROW(read_block_vector<double>(ctx, "x.h5"), UnsupportedError);
    BlockVector<double> x(ctx, RowMap::by_rows(ctx.comm(), 3), 1);
    EXPECT_THROW(write_block_vector(ctx, "x.h5", x), UnsupportedError);
}

}  // namespace
}  // namespace quiver::test
