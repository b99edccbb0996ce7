// SPDX-License-Identifier: BSD-3-Clause
// The output file of `quiver qr` holds an orthonormal basis and the factors that reproduce X.
#include <cmath>
#include <complex>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "blockvec/config.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/hdf5_file.hpp"
#include "kernels/random.hpp"
#include "tests/apps/run_command.hpp"

namespace quiver::test {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t rows = 57;
constexpr double eps = epsilon_v<double>;

class Qr : public ::testing::Test {
  protected:
    void SetUp() override {
        if (!config::have_hdf5) {
            GTEST_SKIP() << "built without HDF5";
        }
    }
    template <class T>
    BlockVector<T> random_block(int cols) {
        BlockVector<T> x(ctx, RowMap::by_rows(ctx.comm(), rows), cols);
        std::uniform_real_distribution<double> uniform(-1, 1);
        for (std::int64_t i = 0; i < rows; ++i) {
            for (int j = 0; j < cols; ++j) {
                if constexpr (is_complex_v<T>) {
                    x.view()(i, j) = T(uniform(generator), uniform(generator));
                } else {
                    x.view()(i, j) = uniform(generator);
                }
            }
        }
        return x;
    }
    template <class T>
    std::string write(const std::string& name, const BlockVector<T>& x) {
        write_block_vector(ctx, folder.path(name), x);
        return folder.path(name);
    }
    template <class T>
    BlockVector<T> read(const std::string& path, const std::string& dataset = "vectors") {
        return read_block_vector<T>(ctx, path, std::nullopt, dataset);
    }
    /// max |A^H B - I| if `identity`, else max |A^H B|
    template <class T>
    static double defect(const BlockVector<T>& a, const BlockVector<T>& b, bool identity) {
        double most = 0;
        for (int i = 0; i < a.width(); ++i) {
            for (int j = 0; j < b.width(); ++j) {
                T sum = identity && i == j ? T(-1) : T(0);
                for (std::int64_t row = 0; row < rows; ++row) {
                    sum += conjugate(a.view()(row, i)) * b.view()(row, j);
                }
                most = std::max(most, std::abs(sum));
            }
        }
        return most;
    }
    /// max |X - V H - Q R|
    template <class T>
    static double residual(const BlockVector<T>& x, const BlockVector<T>& q,
                           const BlockVector<T>& r, const BlockVector<T>* v = nullptr,
                           const BlockVector<T>* h = nullptr) {
        double most = 0;
        for (std::int64_t row = 0; row < rows; ++row) {
            for (int j = 0; j < x.width(); ++j) {
                T value = x.view()(row, j);
                for (int k = 0; k < q.width(); ++k) {
                    value -= q.view()(row, k) * r.view()(k, j);
                }
                for (int k = 0; v != nullptr && k < v->width(); ++k) {
                    value -= v->view()(row, k) * h->view()(k, j);
                }
                most = std::max(most, std::abs(value));
            }
        }
        return most;
    }
    nlohmann::json report() const {
        return nlohmann::json::parse(read_file(folder.path("report.json")));
    }

    Folder folder;
    Context ctx;
    std::mt19937_64 generator{20};
};

TEST_F(Qr, EveryMethodWritesQAndRForAnyNumberOfRanks) {
    const auto x = random_block<double>(6);
    const std::string input = write("x.h5", x);
    for (const char* method : {"robust", "cholesky-qr", "cholesky-qr2", "shifted-cholesky-qr3",
                               "svqb", "tsqr", "mixed-cholesky-qr"}) {
        // On three ranks: one method with all-reduces, and TSQR with its tree.
        const std::string name = method;
        for (const int ranks : {1, 3}) {
            if (ranks == 3 && name != "robust" && name != "tsqr") {
                continue;
            }
            const std::string output = folder.path("q.h5");
            const Outcome outcome =
                run_command("qr " + input + " -o " + output + " --device host --method " + method +
                                " --json " + folder.path("report.json"),
                            ranks);
            ASSERT_EQ(outcome.status, 0) << outcome.err;
            EXPECT_NE(outcome.out.find(method), std::string::npos) << outcome.out;
            const auto q = read<double>(output);
            ASSERT_EQ(q.width(), 6);
            // Random columns have a condition number of about 3.
            EXPECT_LE(defect(q, q, true), 100 * 6 * eps) << method;
            EXPECT_LE(residual(x, q, read<double>(output, "R")), 100 * 6 * eps) << method;
            EXPECT_EQ(report()["method"], method);
            EXPECT_EQ(report()["columns_found"], 6);
            EXPECT_LE(report()["loss_of_orthogonality"].get<double>(), 100 * 6 * eps);
            EXPECT_LE(report()["residual"].get<double>(), 100 * 6 * eps);
            EXPECT_TRUE(report()["breakdown"].is_null());
            EXPECT_EQ(report()["ranks"], ranks);
            fs::remove(output);
        }
    }
}

TEST_F(Qr, AgainstABasisOfComplexColumns) {
    using T = std::complex<double>;
    const auto x = random_block<T>(4);
    const std::string input = write("x.h5", x);
    const std::string basis = folder.path("v.h5");
    const std::string output = folder.path("q.h5");
    const std::string device = " --device host ";
    const Outcome first =
        run_command("qr " + write("y.h5", random_block<T>(5)) + " -o " + basis + device);
    ASSERT_EQ(first.status, 0) << first.err;
    for (const char* projection : {"classical-once", "classical-twice", "modified --panel 2"}) {
        const Outcome outcome = run_command("qr " + input + " -o " + output + " --against " +
                                                basis + device + "--projection " + projection,
                                            2);
        ASSERT_EQ(outcome.status, 0) << outcome.err;
        const auto v = read<T>(basis);
        const auto q = read<T>(output);
        const auto h = read<T>(output, "H");
        EXPECT_LE(defect(q, q, true), 100 * 9 * eps);
        EXPECT_LE(defect(v, q, false), 100 * 9 * eps);
        EXPECT_LE(residual(x, q, read<T>(output, "R"), &v, &h), 100 * 9 * eps);
    }
    const Outcome real = run_command("qr " + input + " -o " + output + device + "--scalar d");
    EXPECT_EQ(real.status, 2);
    EXPECT_NE(real.err.find("is complex"), std::string::npos) << real.err;
}

TEST_F(Qr, DependentColumnsAreDroppedReplacedOrReported) {
    auto x = random_block<double>(5);
    for (std::int64_t i = 0; i < rows; ++i) {
        x.view()(i, 3) = x.view()(i, 1);
    }
    const std::string output = folder.path("q.h5");
    const std::string command = "qr " + write("x.h5", x) + " -o " + output +
                                " --device host --json " + folder.path("report.json");
    const Outcome broken = run_command(command + " --method cholesky-qr", 2);
    EXPECT_EQ(broken.status, 1) << broken.err;
    EXPECT_NE(broken.out.find("BREAKDOWN   at column 3"), std::string::npos) << broken.out;
    EXPECT_EQ(report()["breakdown"], 3);
    EXPECT_TRUE(report()["residual"].is_null());
    EXPECT_FALSE(fs::exists(output));

    ASSERT_EQ(run_command(command, 2).status, 0);
    EXPECT_EQ(report()["rank"], 4);
    EXPECT_EQ(read<double>(output).width(), 4);
    EXPECT_LE(residual(x, read<double>(output), read<double>(output, "R")), 500 * eps);

    ASSERT_EQ(run_command(command + " --replace", 2).status, 0);
    const auto q = read<double>(output);
    EXPECT_EQ(report()["rank"], 4);
    ASSERT_EQ(q.width(), 5);
    EXPECT_LE(defect(q, q, true), 500 * eps);
    EXPECT_LE(residual(x, q, read<double>(output, "R")), 500 * eps);
}

TEST_F(Qr, ColumnsWhoseSquaresUnderflowAreFactored) {
    for (const bool all : {false, true}) {
        auto x = random_block<double>(3);
        for (std::int64_t i = 0; i < rows; ++i) {
            for (int j = 0; j < (all ? 3 : 1); ++j) {
                x.view()(i, j) *= 1e-290;
            }
        }
        const std::string input = write("tiny.h5", x);
        const std::string output = folder.path("q.h5");
        for (const char* arguments :
             {"robust", "cholesky-qr", "cholesky-qr2", "shifted-cholesky-qr3", "svqb", "tsqr",
              "mixed-cholesky-qr", "robust --abft correct"}) {
            const Outcome outcome =
                run_command("qr " + input + " -o " + output + " --device host --method " +
                                arguments + " --json " + folder.path("report.json"),
                            !all && std::string(arguments) == "tsqr" ? 2 : 1);
            ASSERT_EQ(outcome.status, 0) << arguments << outcome.out << outcome.err;
            const auto q = read<double>(output);
            ASSERT_EQ(q.width(), 3) << arguments;
            EXPECT_LE(defect(q, q, true), 300 * eps) << arguments;
            auto r = read<double>(output, "R");
            auto scaled = random_block<double>(3);  // X and R with columns of ordinary size
            for (int j = 0; j < 3; ++j) {
                const double factor = j < (all ? 3 : 1) ? 1e290 : 1;
                for (std::int64_t i = 0; i < rows; ++i) {
                    scaled.view()(i, j) = x.view()(i, j) * factor;
                }
                for (int i = 0; i < 3; ++i) {
                    r.view()(i, j) *= factor;
                }
            }
            EXPECT_LE(residual(scaled, q, r), 300 * eps) << arguments;
            // A residual of 0 would show that the squares underflowed.
            EXPECT_GT(report()["residual"].get<double>(), 0) << arguments;
            EXPECT_LE(report()["residual"].get<double>(), 300 * eps) << arguments;
        }
        // Against the Q of the last run, which spans X.
        const Outcome outcome = run_command("qr " + input + " -o " + folder.path("rest.h5") +
                                            " --device host --against " + output +
                                            " --replace --json " + folder.path("report.json"));
        ASSERT_EQ(outcome.status, 0) << outcome.out << outcome.err;
        EXPECT_EQ(report()["rank"], 0);
        EXPECT_LE(report()["residual"].get<double>(), 300 * eps);
        EXPECT_LE(report()["overlap"].get<double>(), 300 * eps);
    }
}

TEST_F(Qr, BadInputIsOneLine) {
    const std::string good = write("x.h5", random_block<double>(3));
    const std::string half = folder.path("half.h5");
    fs::copy_file(good, half);
    fs::resize_file(half, fs::file_size(half) / 2);
    const std::string output = folder.path("q.h5");
    const std::string to = " -o " + output;
    BlockVector<double> wide(ctx, RowMap::by_rows(ctx.comm(), 2), 3);
    for (int i = 0; i < 6; ++i) {
        wide.view().data[i] = i % 4;
    }
    const std::string flat = write("wide.h5", wide);
    const auto scaled = [&](const char* name, int column, double factor) {
        BlockVector<double> x = random_block<double>(3);
        for (std::int64_t i = 0; i < rows; ++i) {
            x.view()(i, column) *= factor;
        }
        return write(name, x);
    };
    const std::string huge = scaled("huge.h5", 2, 1e200);
    BlockVector<double> many(ctx, RowMap::by_rows(ctx.comm(), 2), 2049);
    fill(ctx, 1.0, many.view());
    const std::string too_many = write("many.h5", many);
    const auto of_four_rows = [&](const char* name, int columns) {
        BlockVector<double> x(ctx, RowMap::by_rows(ctx.comm(), 4), columns);
        fill_random(ctx, 7 + static_cast<std::uint64_t>(columns), x);
        return write(name, x);
    };
    const std::string pair = of_four_rows("pair.h5", 2);
    const std::string three = folder.path("three.h5");
    ASSERT_EQ(run_command("qr " + of_four_rows("raw.h5", 3) + " -o " + three).status, 0);
    struct Row {
        std::string arguments;
        std::string text;
        int ranks = 1;
    };
    const Row cases[] = {
        {pair + to + " --method cholesky-qr2 --against " + three,
         "2 columns in a space of 4 dimensions, of which --against spans 3, cannot all be", 2},
        {folder.path("none.h5") + to, "none.h5: No such file", 2},
        {folder.write("text.h5", "columns") + to, "text.h5: ", 2},
        {half + to, "half.h5"},
        {good + to + " --dataset basis", "has no dataset basis"},
        {good + " -o " + good, "a file that is read"},
        {good + to + " --json " + output, "the same file"},
        {good + " -o " + good + "/q.h5", "-o: cannot write"},
        {good + " -o -", "an HDF5 file needs a regular file"},
        {"- -o " + folder.path("q.h5"), "cannot be read from standard input"},
        {good + to + " --against " + good, "columns are not orthonormal", 2},
        {good + to + " --against " + flat, "2 rows"},
        {flat + to, "wide.h5: 3 columns but only 2 rows", 2},
        {too_many + to, "many.h5: 2049 columns, but at most 2048 are allowed"},
        {huge + to, "huge.h5: the squares of column 2 (counted from 0) overflow in double", 2},
        {good + to + " --panel 0", "--panel 0"},
        {good + to + " --method householder", "householder"},
        {good, "--output is required"},
    };
    for (const auto& [arguments, text, ranks] : cases) {
        const Outcome outcome = run_command("qr " + arguments, ranks);
        EXPECT_EQ(outcome.status, 2) << arguments << '\n' << outcome.err;
        EXPECT_EQ(outcome.err.rfind("quiver: ", 0), 0u) << outcome.err;
        const std::string line = outcome.err.substr(0, outcome.err.find('\n'));
        EXPECT_NE(line.find(text), std::string::npos) << line;
        EXPECT_EQ(outcome.out, "");
        EXPECT_FALSE(fs::exists(output));
    }
}

TEST(QrMissing, HelpShowsExamplesAndABuildWithoutHdf5SaysSo) {
    const Outcome help = run_command("qr --help");
    EXPECT_EQ(help.status, 0);
    EXPECT_NE(help.out.find("quiver qr X.h5 -o Q.h5"), std::string::npos);
    if (!config::have_hdf5) {
        const Outcome outcome = run_command("qr x.h5 -o q.h5", 2);
        EXPECT_EQ(outcome.status, 2);
        EXPECT_NE(outcome.err.find("libhdf5-dev"), std::string::npos) << outcome.err;
    }
}

}  // namespace
}  // namespace quiver::test
