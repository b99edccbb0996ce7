// SPDX-License-Identifier: BSD-3-Clause
// Products with HamiltonianOperator against dense matrices made of Kronecker products, spectra of
// all sectors against the full spectrum, and the messages of wrong terms.
#include <algorithm>
#include <cmath>
#include <complex>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "blockvec/error.hpp"
#include "kernels/hamiltonian/hamiltonian_operator.hpp"
#include "kernels/hamiltonian/words.hpp"
#include "tests/support/dense_oracle.hpp"
#include "tests/support/fixtures.hpp"
#include "tests/support/test_context.hpp"

namespace quiver::test {
namespace {

using Z = std::complex<double>;
using Eigen::MatrixXcd;

MatrixXcd kronecker(const MatrixXcd& a, const MatrixXcd& b) {
    MatrixXcd c(a.rows() * b.rows(), a.cols() * b.cols());
    for (Eigen::Index i = 0; i < a.rows(); ++i) {
        for (Eigen::Index j = 0; j < a.cols(); ++j) {
            c.block(i * b.rows(), j * b.cols(), b.rows(), b.cols()) = a(i, j) * b;
        }
    }
    return c;
}

/// An operator of one site on all states; bit 0 is the last factor. Fermions get signs of Jordan
/// and Wigner from the lower bits.
MatrixXcd dense_operator(const HamiltonianModel& model, const SiteOperator& one) {
    MatrixXcd m = MatrixXcd::Zero(2, 2);
    const bool spins = model.particles == Particles::spins;
    switch (one.action) {
        case '+':
            m(1, 0) = 1;
            break;
        case '-':
            m(0, 1) = 1;
            break;
        case 'x':
            m(1, 0) = m(0, 1) = 0.5;
            break;
        case 'y':  // (S+ - S-) / 2i
            m(1, 0) = Z(0, -0.5);
            m(0, 1) = Z(0, 0.5);
            break;
        case 'z':
            m(1, 1) = 0.5;
            m(0, 0) = -0.5;
            break;
        default:
            m(1, 1) = 1;
    }
    MatrixXcd string = MatrixXcd::Identity(2, 2);
    if (!spins && one.action != 'n') {
        string(1, 1) = -1;
    }
    const int at =
        model.particles == Particles::fermions && one.up ? model.sites + one.site : one.site;
    MatrixXcd all = MatrixXcd::Identity(1, 1);
    for (int bit = model.bits() - 1; bit >= 0; --bit) {
        all = kronecker(all, bit == at  ? m
                             : bit < at ? string
                                        : MatrixXcd(MatrixXcd::Identity(2, 2)));
    }
    return all;
}

MatrixXcd dense_hamiltonian(const HamiltonianModel& model) {
    const Eigen::Index n = Eigen::Index{1} << model.bits();
    MatrixXcd sum = MatrixXcd::Zero(n, n);
    for (const HamiltonianTerm& term : model.terms) {
        MatrixXcd all = MatrixXcd::Identity(n, n) * term.coefficient;
        for (const SiteOperator& one : term.operators) {
            all = oracle::product(all, dense_operator(model, one));
        }
        sum += all;
    }
    return sum;
}

/// The matrix of an operator, from products with the columns of the identity.
template <class T>
MatrixXcd matrix_of(Context& ctx, Operator<T>& op) {
    const RowMap& map = op.row_map();
    const auto n = static_cast<int>(map.global_rows());
    Global<T> identity(n, n);
    for (int i = 0; i < n; ++i) {
        identity(i, i) = T(1);
    }
    TestBlock<T> x(ctx, identity, map, {});
    TestBlock<T> y(ctx, poisoned_global<T>(n, n), map, {});
    op.apply(ctx, x.const_view(), y.view());
    const Global<T> local = y.result();
    std::vector<Z> all(static_cast<std::size_t>(n) * static_cast<std::size_t>(n));
    for (std::int64_t i = 0; i < local.rows; ++i) {
        for (int j = 0; j < n; ++j) {
            all[static_cast<std::size_t>((map.first_row() + i) * n + j)] = Z(local(i, j));
        }
    }
    ctx.comm().sum(std::span<Z>(all));
    return Eigen::Map<const Eigen::Matrix<Z, -1, -1, Eigen::RowMajor>>(all.data(), n, n);
}

HamiltonianModel parsed(const std::string& text) {
    return parse_hamiltonian(text, "test");
}

std::string number(std::mt19937_64& random) {
    return std::to_string(std::uniform_real_distribution<double>(-1, 1)(random));
}

/// Random terms of up to four operators, made Hermitian.
std::string random_terms(std::mt19937_64& random, const std::string& head, int sites,
                         const std::vector<std::string>& names, int terms, bool is_complex) {
    std::string text = head + " " + std::to_string(sites) + "\n";
    for (int t = 0; t < terms; ++t) {
        const int count = t == 0 ? 0 : 1 + static_cast<int>(random() % 4);
        std::string operators;
        std::string places;
        for (int i = 0; i < count; ++i) {
            operators += " " + names[random() % names.size()];
            places += " " + std::to_string(random() % static_cast<unsigned>(sites));
        }
        const std::string value =
            is_complex ? "(" + number(random) + "," + number(random) + ")" : number(random);
        text += "term " + value + operators + places + " hc\n";
    }
    return text;
}

struct RandomCase {
    const char* head;
    int sites;
    std::vector<std::string> names;
};
const std::vector<RandomCase>& random_cases() {
    static const std::vector<RandomCase> cases{
        {"spins", 5, {"+", "-", "z", "x"}},
        {"spinless", 5, {"+", "-", "n"}},
        {"fermions", 3, {"+u", "-u", "nu", "+d", "-d", "nd"}}};
    return cases;
}

template <class T>
void expect_product(Context& ctx, std::mt19937_64& random, Operator<T>& h, const MatrixXcd& dense,
                    int width) {
    const RowMap& map = h.row_map();
    const std::int64_t n = map.global_rows();
    const auto x = random_global<T>(random, n, width);
    const auto y = random_global<T>(random, n, width);
    std::vector<T> shifts(static_cast<std::size_t>(width));
    for (T& shift : shifts) {
        shift = random_value<T>(random);
    }
    std::vector<T> yy(shifts.size());
    std::vector<T> xy(shifts.size());
    const T alpha = random_value<T>(random);
    const T beta = random_value<T>(random);
    TestBlock<T> x_block(ctx, x, map, any_layout(random));
    TestBlock<T> y_block(ctx, y, map, any_layout(random));
    h.apply_fused(ctx, x_block.const_view(), y_block.view(),
                  {alpha, beta, std::span<const T>(shifts), yy, xy});
    x_block.expect_unchanged();
    const Global<T> result = y_block.result();
    std::vector<Z> expected_yy(shifts.size());
    for (std::int64_t i = 0; i < n; ++i) {
        for (int j = 0; j < width; ++j) {
            const Z shift = Z(shifts[static_cast<std::size_t>(j)]);
            Z sum = -shift * Z(x(i, j));
            double size = std::abs(sum);
            for (std::int64_t k = 0; k < n; ++k) {
                sum += dense(i, k) * Z(x(k, j));
                size += std::abs(dense(i, k)) * std::abs(Z(x(k, j)));
            }
            const Z expected = Z(alpha) * sum + Z(beta) * Z(y(i, j));
            expected_yy[static_cast<std::size_t>(j)] += std::norm(expected);
            const std::int64_t local = i - map.first_row();
            if (local >= 0 && local < map.local_rows()) {
                // Entries of a row and of its diagonal are sums of up to 100 terms.
                const double bound = 100 * static_cast<double>(epsilon_v<T>) * (size + 10);
                EXPECT_LE(std::abs(Z(result(local, j)) - expected), bound) << i << ", " << j;
            }
        }
    }
    for (std::size_t j = 0; j < yy.size(); ++j) {
        EXPECT_LE(std::abs(Z(yy[j]) - expected_yy[j]),
                  200 * static_cast<double>(epsilon_v<T>) * (std::abs(expected_yy[j]) + 100));
    }
}

template <class T>
class HamiltonianProduct : public ::testing::Test {};
using Scalars = ::testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(HamiltonianProduct, Scalars);

TYPED_TEST(HamiltonianProduct, OfRandomTermsIsThatOfTheirKroneckerProducts) {
    using T = TypeParam;
    Context ctx = make_context();
    auto random = make_generator();
    for (const RandomCase& one : random_cases()) {
        for (const int width : {1, 3, 8, 13}) {
            const HamiltonianModel model =
                parsed(random_terms(random, one.head, one.sites, one.names, 9, is_complex_v<T>));
            HamiltonianOperator<T> h(ctx, model);
            ASSERT_EQ(h.row_map().global_rows(), std::int64_t{1} << model.bits());
            expect_product<T>(ctx, random, h, dense_hamiltonian(model), width);
        }
    }
}

/// The words of a sector select rows and columns of the full matrix.
TYPED_TEST(HamiltonianProduct, OfASectorIsABlockOfTheWholeMatrix) {
    using T = TypeParam;
    Context ctx = make_context();
    auto random = make_generator();
    const std::string bonds =
        "term 0.7 + - 0 3 hc\nterm -0.4 + - 1 2 hc\nterm 1.3 + - 0 1 hc\nterm 0.2 + - 4 0 hc\n";
    const std::string spins = "spins 6\n" + bonds + "term 0.3 z z 0 2\nterm -0.8 z 5\n" +
                              "term 0.9 + - z 2 4 3 hc\nterm 0.6 z z z 0 1 4\n";
    const std::string spinless = "spinless 6\n" + bonds + "term 0.5 n n 0 3\nterm 2 n 1\n" +
                                 "term 0.25 + + - - 0 1 5 3 hc\n";
    for (const std::string& text : {spins, spinless}) {
        const MatrixXcd whole = dense_hamiltonian(parsed(text));
        for (int ones = 0; ones <= 6; ++ones) {
            HamiltonianModel model = parsed(text);
            model.sector.ones = ones;
            std::vector<Eigen::Index> words;
            for (Eigen::Index word = 0; word < whole.rows(); ++word) {
                if (count_ones(static_cast<std::uint64_t>(word)) == ones) {
                    words.push_back(word);
                }
            }
            HamiltonianOperator<T> h(ctx, model);
            expect_product<T>(ctx, random, h, whole(words, words), 4);
        }
    }
    const std::string hubbard =
        "fermions 3\nring -1 +u -u 0 1 hc\nring -0.7 +d -d 0 1 hc\n"
        "ring 3 nu nd 0 0\nterm 0.4 nu nd 0 2\nterm 0.3 +u -u nd 0 2 1 hc\n";
    const MatrixXcd whole = dense_hamiltonian(parsed(hubbard));
    for (int up = 0; up <= 3; ++up) {
        for (int down = 0; down <= 3; ++down) {
            HamiltonianModel model = parsed(hubbard);
            model.sector.up = up;
            model.sector.down = down;
            std::vector<Eigen::Index> words;
            for (Eigen::Index word = 0; word < whole.rows(); ++word) {
                const auto bits = static_cast<std::uint64_t>(word);
                if (count_ones(bits >> 3) == up && count_ones(bits & 7) == down) {
                    words.push_back(word);
                }
            }
            HamiltonianOperator<T> h(ctx, model);
            expect_product<T>(ctx, random, h, whole(words, words), 2);
        }
    }
}

/// A bond of two sites: coefficient (S+ S- + S- S+) / 2 + zz Sz Sz.
struct Bond {
    int first, second;
    double exchange, zz;
};

/// A sector so large that whole runs of rows are added. The expected product is a sum over bonds of
/// the words, which are found by a search in their sorted list.
TYPED_TEST(HamiltonianProduct, OfManyRowsIsTheSumOverTheirBonds) {
    using T = TypeParam;
    Context ctx = make_context();
    auto random = make_generator();
    constexpr int sites = 17;
    constexpr int ones = 8;
    std::uniform_real_distribution<double> any(-1, 1);
    std::vector<Bond> bonds;
    std::string text = "spins 17\nsector sz -0.5\nterm 0.75 z 3\n";
    for (int b = 0; b < 25; ++b) {
        const int first = static_cast<int>(random() % sites);
        const int second = (first + 1 + static_cast<int>(random() % (sites - 1))) % sites;
        // Numbers of which the text has all digits.
        bonds.push_back(
            {first, second, std::round(16 * any(random)) / 16, std::round(16 * any(random)) / 16});
        const std::string places = std::to_string(first) + " " + std::to_string(second);
        text += "term " + std::to_string(bonds.back().exchange / 2) + " + - " + places + " hc\n";
        text += "term " + std::to_string(bonds.back().zz) + " z z " + places + "\n";
    }
    std::vector<std::uint32_t> words;
    for (std::uint32_t word = 0; word < 1U << sites; ++word) {
        if (count_ones(word) == ones) {
            words.push_back(word);
        }
    }
    HamiltonianOperator<T> h(ctx, parsed(text));
    const RowMap& map = h.row_map();
    ASSERT_EQ(map.global_rows(), std::ssize(words));
    const auto bit = [](std::uint32_t word, int at) { return (word >> at & 1) != 0; };
    for (const int width : {1, 2, 7, 8}) {
        SCOPED_TRACE(width);
        const auto x = random_global<T>(random, map.global_rows(), width);
        const auto y = random_global<T>(random, map.global_rows(), width);
        std::vector<T> shifts(static_cast<std::size_t>(width));
        for (T& shift : shifts) {
            shift = random_value<T>(random);
        }
        const T alpha = random_value<T>(random);
        const T beta = random_value<T>(random);
        TestBlock<T> x_block(ctx, x, map, any_layout(random));
        TestBlock<T> y_block(ctx, y, map, any_layout(random));
        h.apply_fused(ctx, x_block.const_view(), y_block.view(),
                      {alpha, beta, std::span<const T>(shifts), {}, {}});
        x_block.expect_unchanged();
        const Global<T> result = y_block.result();
        double worst = 0;
        for (std::int64_t local = 0; local < map.local_rows(); ++local) {
            const std::int64_t row = map.first_row() + local;
            const std::uint32_t word = words[static_cast<std::size_t>(row)];
            double diagonal = bit(word, 3) ? 0.375 : -0.375;
            std::vector<Z> sum(static_cast<std::size_t>(width));
            for (const Bond& bond : bonds) {
                const bool differ = bit(word, bond.first) != bit(word, bond.second);
                diagonal += differ ? -bond.zz / 4 : bond.zz / 4;
                if (!differ) {
                    continue;
                }
                const std::uint32_t other = word ^ 1U << bond.first ^ 1U << bond.second;
                const auto from =
                    std::lower_bound(words.begin(), words.end(), other) - words.begin();
                for (int j = 0; j < width; ++j) {
                    sum[static_cast<std::size_t>(j)] += bond.exchange / 2 * Z(x(from, j));
                }
            }
            for (int j = 0; j < width; ++j) {
                const auto at = static_cast<std::size_t>(j);
                const Z product = sum[at] + (diagonal - Z(shifts[at])) * Z(x(row, j));
                const Z expected = Z(alpha) * product + Z(beta) * Z(y(row, j));
                worst = std::max(worst, std::abs(Z(result(local, j)) - expected));
            }
        }
        // A row is a sum of at most 27 products of numbers below some units.
        EXPECT_LE(worst, 500 * static_cast<double>(epsilon_v<T>));
    }
}

/// Appends the spectrum of the sectors to `all`; a sector may have no states.
void append_spectrum(Context& ctx, const HamiltonianModel& model, std::vector<double>& all) {
    try {
        MatrixXcd matrix;
        if (model.is_complex()) {
            HamiltonianOperator<Z> h(ctx, model);
            matrix = matrix_of(ctx, h);
        } else {
            HamiltonianOperator<double> h(ctx, model);
            matrix = matrix_of(ctx, h);
        }
        EXPECT_LE((matrix - matrix.adjoint()).norm(), 1e-13 * (1 + matrix.norm()));
        const Eigen::VectorXd values = oracle::eigenvalues(matrix);
        all.insert(all.end(), values.begin(), values.end());
    } catch (const InputError& error) {
        EXPECT_NE(std::string(error.what()).find("no state"), std::string::npos) << error.what();
    }
}

void expect_full_spectrum(const HamiltonianModel& model, std::vector<double> all) {
    const Eigen::VectorXd expected = oracle::eigenvalues(dense_hamiltonian(model));
    std::sort(all.begin(), all.end());
    ASSERT_EQ(all.size(), static_cast<std::size_t>(expected.size()));
    for (std::size_t i = 0; i < all.size(); ++i) {
        EXPECT_NEAR(all[i], expected[static_cast<Eigen::Index>(i)],
                    1e-12 * (1 + expected.cwiseAbs().maxCoeff()));
    }
}

/// Rings without reflection symmetry, with complex terms.
TEST(HamiltonianSectors, OfAllMomentaMakeTheFullSpectrum) {
    Context ctx = make_context();
    const std::vector<std::string> texts{
        std::string("spins 6\nring (0.4,0.9) + - 0 1 hc\nring 0.7 z z 0 2\nring 0.3 z 0\n"
                    "ring (0.2,0.1) + - z 0 2 1 hc\n"),
        std::string("spins 5\nring 0.8 x z 0 1\nring 0.5 y y 0 2\nring 0.35 x 0\n"),
        std::string(
            "spinless 6\nring (-1,0.3) + - 0 1 hc\nring 1.7 n n 0 1\nring 0.2 + - n 0 2 1 hc\n"),
        std::string("spinless 5\nring -1 + - 0 1 hc\nring 0.4 + + 0 1 hc\nring 0.6 n n 0 2\n"),
        std::string(
            "fermions 3\nring (-1,0.2) +u -u 0 1 hc\nring -0.8 +d -d 0 1 hc\nring 4 nu nd 0 0\n"
            "ring 0.3 nu nd 0 1\n")};
    for (const std::string& text : texts) {
        const HamiltonianModel whole = parsed(text);
        std::vector<double> all;
        for (int k = 0; k < whole.sites; ++k) {
            HamiltonianModel model = whole;
            model.sector.momentum = k;
            append_spectrum(ctx, model, all);
        }
        expect_full_spectrum(whole, all);
    }
}

/// Momentum, reflection, inversion and the conserved numbers together.
TEST(HamiltonianSectors, OfAllSymmetriesMakeTheFullSpectrum) {
    Context ctx = make_context();
    const std::vector<std::string> texts{
        "spins 6\nring 0.5 + - 0 1 hc\nring 1.3 z z 0 1\nring 0.4 z z 0 2\nring 0.2 + - 0 3 hc\n",
        "fermions 4\nring -1 +u -u 0 1 hc\nring -1 +d -d 0 1 hc\nring 4 nu nd 0 0\n"
        "ring 0.5 nu nu 0 1\nring 0.5 nd nd 0 1\n"};
    for (const std::string& text : texts) {
        if (&text != texts.data() && case_step() > 1) {
            break;  // many small products; one process makes them all
        }
        const HamiltonianModel whole = parsed(text);
        const int bits = whole.bits();
        std::vector<double> all;
        for (int ones = 0; ones <= bits; ++ones) {
            for (int k = 0; k < whole.sites; ++k) {
                const bool reflects = k == 0 || 2 * k == whole.sites;
                const bool inverts = whole.particles == Particles::fermions || 2 * ones == bits;
                for (const int p : reflects ? std::vector<int>{1, -1} : std::vector<int>{0}) {
                    for (const int z : inverts ? std::vector<int>{1, -1} : std::vector<int>{0}) {
                        HamiltonianModel model = whole;
                        model.sector = {
                            .ones = ones, .momentum = k, .reflection = p, .inversion = z};
                        append_spectrum(ctx, model, all);
                    }
                }
            }
        }
        expect_full_spectrum(whole, all);
    }
}

/// An open chain has a reflection only.
TEST(HamiltonianSectors, OfAReflectionMakeTheFullSpectrum) {
    Context ctx = make_context();
    for (const std::string text :
         {"spins 6\nchain 1 + - 0 1 hc\nchain 0.3 z z 0 1\nchain 0.7 x 0\n",
          "spinless 5\nchain -1 + - 0 1 hc\nchain 2 n n 0 1\nchain 0.4 + - 0 3 hc\n",
          "fermions 3\nchain -1 +u -u 0 1 hc\nchain -1 +d -d 0 1 hc\nchain 3 nu nd 0 0\n"}) {
        std::vector<double> all;
        for (const int p : {1, -1}) {
            HamiltonianModel model = parsed(text);
            model.sector.reflection = p;
            append_spectrum(ctx, model, all);
        }
        expect_full_spectrum(parsed(text), all);
    }
}

TEST(HamiltonianBits, DoNotDependOnRanksAndThreads) {
    Context ctx = make_context();
    Context alone(Comm(), ctx.place() == Place::host ? Device::host(3) : ctx.device());
    auto random = make_generator();
    // One rank adds whole runs of the last one, except those that two threads share.
    for (const std::string& text :
         {model_text("heisenberg,L=10,Delta=0.7") + "sector sz 1\n",
          model_text("heisenberg,L=10,Delta=0.7") +
              "sector sz 0\nsector momentum 0\nsector inversion 1\n",
          model_text("heisenberg,L=16,Delta=0.7") + "ring -0.2 + - 0 3 hc\nsector sz 0\n"}) {
        SCOPED_TRACE(text);
        const HamiltonianModel model = parsed(text);
        HamiltonianOperator<double> h(ctx, model);
        HamiltonianOperator<double> whole(alone, model);
        const std::int64_t n = h.row_map().global_rows();
        const auto x = random_global<double>(random, n, 3);
        const auto zero = Global<double>(n, 3);
        TestBlock<double> x_part(ctx, x, h.row_map(), {});
        TestBlock<double> y_part(ctx, zero, h.row_map(), {});
        TestBlock<double> x_all(alone, x, whole.row_map(), {});
        TestBlock<double> y_all(alone, zero, whole.row_map(), {});
        h.apply(ctx, x_part.const_view(), y_part.view());
        whole.apply(alone, x_all.const_view(), y_all.view());
        const Global<double> part = y_part.result();
        const Global<double> all = y_all.result();
        Global<double> mine(part.rows, 3);
        for (std::int64_t i = 0; i < part.rows; ++i) {
            for (int j = 0; j < 3; ++j) {
                mine(i, j) = all(h.row_map().first_row() + i, j);
            }
        }
        expect_same_bits(part, mine);
    }
}

TEST(WordList, RanksAndWordsAreInverse) {
    for (const int bits : {1, 6, 20, 45, 62}) {
        for (const int ones : {0, 1, bits / 2, bits}) {
            WordList list = word_list(bits, ones);
            const std::int64_t step = std::max<std::int64_t>(1, list.count / 1000);
            for (std::int64_t rank = 0; rank < list.count; rank += step) {
                const std::uint64_t word = list.word(rank);
                ASSERT_EQ(count_ones(word), ones);
                ASSERT_EQ(list.rank(word), rank);
                if (rank + 1 < list.count) {
                    ASSERT_EQ(list.next(word), list.word(rank + 1));
                }
            }
        }
    }
}

/// The text of the error of `run`; empty if there is none.
template <class Run>
std::string error_of(const Run& run) {
    try {
        run();
    } catch (const InputError& error) {
        return error.what();
    }
    return "";
}

TEST(HamiltonianText, NamesTheLineAndTheWord) {
    const std::vector<std::pair<std::string, std::string>> cases{
        {"", "no statement"},
        {"term 1 z 0\n", "test:1: `term` before the sites"},
        {"spins 4\nspins 5\n", "test:2: a second `spins`"},
        {"spins 63\n", "test:1: `63` is not a whole number from 1 to 62"},
        {"fermions 32\n", "`32` is not a whole number from 1 to 31"},
        {"spins 4\nfoo 1\n", "test:2: `foo` is none of"},
        {"spins 4\n\n# x\nterm 1 q 0\n", "test:4: `q` is not an operator of spins: + - x y z"},
        {"fermions 4\nterm 1 z 0\n", "`z` is not an operator of fermions: +u -u nu +d -d nd"},
        {"spins 4\nterm 1 z z 0\n", "test:2: 2 operators, but 1 sites"},
        {"spins 4\nterm 1 z 4\n", "test:2: `4` is not a whole number from 0 to 3"},
        {"spins 4\nterm one z 1\n", "test:2: `one` is not a finite number"},
        {"spins 4\nterm (1,2 z 1\n", "`(1,2` is not a number or (re,im)"},
        {"spins 4\nterm\n", "`term` without a coefficient"},
        {"spins 4\nring 1\n", "`ring` without operators"},
        {"spins 4\nsector sz 0.5\n", "test:2: sector sz 0.5: 4 spins have a total Sz of -2, -1"},
        {"spins 4\nsector up 2\n", "sector `up` is none of those of spins"},
        {"spins 4\nsector momentum 4\n", "`4` is not a whole number from 0 to 3"},
        {"spins 4\nsector reflection 0\n", "the eigenvalue is 1 or -1"},
        {"spins 4\nsector momentum 1\nsector reflection 1\n", "omit one of the two"},
        {"spins 4\nsector sz 1\nsector inversion 1\n", "omit one of the two"},
        {"fermions 4\nsector up 2\n", "sector up without sector down"},
        {"fermions 4\nsector up 1\nsector down 2\nsector inversion 1\n", "different numbers"},
        {"spins 4 5\n", "the form is `spins N`"}};
    for (const auto& one : cases) {
        const auto& [text, message] = one;
        const std::string error = error_of([&] { parsed(one.first); });
        EXPECT_NE(error.find(message), std::string::npos) << text << error;
        EXPECT_EQ(error.find('\n'), std::string::npos);
    }
    EXPECT_NE(error_of([] { model_text("heisenberg,L=8,K=1"); }).find("`K=1`"), std::string::npos);
    EXPECT_NE(error_of([] { model_text("potts,L=8"); }).find("`potts`"), std::string::npos);
    EXPECT_NE(error_of([] { model_text("ising,boundary=odd"); }).find("odd"), std::string::npos);
}

TEST(HamiltonianOperator, RefusesTermsThatDoNotFitTheSector) {
    Context ctx = make_context();
    const std::vector<std::pair<std::string, std::string>> cases{
        {"spins 4\nterm 1 + - 0 1\n", "not Hermitian"},
        {"spins 4\nterm (0,1) z 0\n", "not Hermitian"},
        {"spins 4\nsector sz 0\nring 1 x 0\n", "number of up spins (sz), at sites 0"},
        {"fermions 2\nsector up 1\nsector down 1\nterm 1 +u -d 0 0 hc\n", "down fermions"},
        {"spins 4\nsector momentum 0\nchain 1 z z 0 1\n", "translation by one site"},
        {"spins 4\nsector reflection 1\nterm 1 z 0\n", "reflection of the sites"},
        {"spins 4\nsector inversion 1\nring 1 z 0\n", "exchange of up and down"},
        {"spinless 4\nsector particles 0\nring 1 n 0\nsector momentum 1\n", "no state of 1"},
        {"spins 45\nring 1 x 0\n", "45 spins have more than 2^44 states"},
        {"spins 3\nterm (0,1) + - 0 1 hc\n", "complex scalar"}};
    for (const auto& one : cases) {
        const auto& [text, message] = one;
        const std::string error =
            error_of([&] { HamiltonianOperator<double>(ctx, parsed(one.first)); });
        EXPECT_NE(error.find(message), std::string::npos) << text << error;
    }
    // x x + y y conserves Sz although neither part does.
    HamiltonianOperator<double>(ctx, parsed("spins 4\nsector sz 0\nring 1 x x 0 1\n"
                                            "ring 1 y y 0 1\n"));
}

}  // namespace
}  // namespace quiver::test
