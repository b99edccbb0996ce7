// SPDX-License-Identifier: BSD-3-Clause
// Compares sizes and norms of real matrices with published ones. A test is skipped if its matrix is
// not in the folder QUIVER_TEST_DATA, or else ../shared/data relative to the source tree.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <regex>

#include "blockvec/block_vector.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/sparse/matrix_market.hpp"
#include "tests/kernels/sparse/sparse_support.hpp"
#include "tests/support/data_folder.hpp"
#include "tests/support/test_context.hpp"

namespace quiver::test {
namespace {

/// The number after "key": in a flat JSON text; NaN if there is none.
double json_number(const std::string& json, const std::string& key) {
    std::smatch found;
    const std::regex pattern("\"" + key + "\":\\s*([-+0-9.eE]+)");
    return std::regex_search(json, found, pattern) ? std::stod(found[1]) : std::nan("");
}

struct Facts {
    const char* name;
    std::int64_t rows;
    std::int64_t nonzeros;
    bool complex;
    Symmetry symmetry;
};

const Facts collection[] = {
    {"lund_a", 147, 2449, false, Symmetry::symmetric},
    {"lund_b", 147, 2441, false, Symmetry::symmetric},
    {"bcsstk09", 1083, 18437, false, Symmetry::symmetric},
    {"1138_bus", 1138, 4054, false, Symmetry::symmetric},
    {"bcsstk13", 2003, 83883, false, Symmetry::symmetric},
    {"mhd4800b", 4800, 27520, false, Symmetry::symmetric},
    {"mhd1280b", 1280, 22778, true, Symmetry::hermitian},
    {"wathen7400", 7400, 113632, false, Symmetry::symmetric},
    {"maxwell_M1", 3630, 103230, false, Symmetry::symmetric},
    {"fe_4elt2_lap", 11143, 76779, false, Symmetry::symmetric},
    {"bcsstk33_lap", 8738, 591904, false, Symmetry::symmetric},
    {"brack2_lap", 62631, 795749, false, Symmetry::symmetric},
    {"NotreDame_www_adj", 325729, 1514730, false, Symmetry::symmetric},
    {"cryg2500", 2500, 12349, false, Symmetry::general},
    {"young1c", 841, 4089, true, Symmetry::general},
    {"add32", 4960, 19848, false, Symmetry::general},
};

class Collection : public ::testing::TestWithParam<Facts> {};

TEST_P(Collection, HasThePublishedSizesAndNorms) {
    const Facts& facts = GetParam();
    const auto path = data_folder() / (std::string(facts.name) + ".mtx.gz");
    if (!std::filesystem::exists(path)) {
        GTEST_SKIP() << path << " does not exist";
    }
    Context ctx = make_context();
    const Comm& comm = ctx.comm();
    using T = std::complex<double>;
    const MatrixMarketHeader header = read_matrix_market_header(comm, path.string());
    EXPECT_EQ(header.rows, facts.rows);
    EXPECT_EQ(header.is_complex(), facts.complex);
    EXPECT_EQ(header.symmetry, facts.symmetry);
    const CsrRows<T> rows = read_matrix_market<T>(comm, path.string());
    EXPECT_EQ(comm.sum(rows.nonzeros()), facts.nonzeros);

    double square = 0;
    std::vector<double> column_sums(static_cast<std::size_t>(facts.rows));
    for (std::size_t k = 0; k < rows.column.size(); ++k) {
        square += std::norm(rows.value[k]);
        column_sums[static_cast<std::size_t>(rows.column[k])] += std::abs(rows.value[k]);
    }
    comm.sum(std::span<double>(&square, 1));
    comm.sum(std::span<double>(column_sums));
    const double norm_1 = *std::max_element(column_sums.begin(), column_sums.end());
    std::ifstream file(data_folder() / (std::string(facts.name) + ".eigs.json"));
    const std::string json(std::istreambuf_iterator<char>(file), {});
    const double bound = 4 * epsilon_v<double> * std::sqrt(static_cast<double>(facts.nonzeros));
    if (!json.empty()) {
        EXPECT_NEAR(norm_1 / json_number(json, "norm1"), 1, bound);
        EXPECT_NEAR(std::sqrt(square) / json_number(json, "normF"), 1, bound);
    }

    // A times the vector of ones gives the sums of the rows.
    SparseMatrix<T> a(ctx, rows);
    BlockVector<T> x(ctx, a.row_map(), 1), y(ctx, a.row_map(), 1);
    fill(ctx, T(1), x.view());
    a.apply(ctx, x.view(), y.view());
    std::vector<T> result(static_cast<std::size_t>(y.rows()));
    copy(ctx, BlockView<const T>(y.view()), BlockView<T>(result.data(), y.rows(), 1, 1));
    for (std::size_t i = 0; i < result.size(); ++i) {
        T sum = 0;
        double size = 0;
        double terms = 0;
        for (auto k = static_cast<std::size_t>(rows.row_start[i]);
             k < static_cast<std::size_t>(rows.row_start[i + 1]); ++k) {
            sum += rows.value[k];
            size += std::abs(rows.value[k]);
            ++terms;
        }
        ASSERT_LE(std::abs(result[i] - sum), 4 * epsilon_v<double> * (std::sqrt(terms) + 2) * size);
    }
}

INSTANTIATE_TEST_SUITE_P(Files, Collection, ::testing::ValuesIn(collection),
                         [](const auto& test) { return "m_" + std::string(test.param.name); });

}  // namespace
}  // namespace quiver::test
