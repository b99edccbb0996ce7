// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/precond/sparse_ldlt.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

#include <Eigen/SparseCholesky>

#include "blockvec/error.hpp"
#include "blockvec/scalar_list.hpp"

namespace quiver {
namespace {

template <class T>
using Wide = std::conditional_t<is_complex_v<T>, std::complex<double>, double>;

/// Calls visit(i, j, value) for all entries with local rows and columns; i is the local row index.
template <class T, class Visit>
void visit_block(const CsrRows<T>& rows, Visit&& visit) {
    const std::int64_t first = rows.map.first_row();
    const std::int64_t n = rows.map.local_rows();
    for (std::int64_t i = 0; i < n; ++i) {
        const auto row = static_cast<std::size_t>(i);
        for (auto e = static_cast<std::size_t>(rows.row_start[row]);
             e < static_cast<std::size_t>(rows.row_start[row + 1]); ++e) {
            const std::int64_t j = rows.column[e] - first;
            if (j >= 0 && j < n) {
                visit(static_cast<int>(i), static_cast<int>(j),
                      static_cast<Wide<T>>(rows.value[e]));
            }
        }
    }
}

/// The diagonal and the entries below it of A - shift B, of this rank's rows.
template <class T>
Eigen::SparseMatrix<Wide<T>> lower_part(const CsrRows<T>& rows, const CsrRows<T>* b, double shift) {
    const std::int64_t n = rows.map.local_rows();
    if (n > most_ldlt_rows) {
        throw InputError("sparse factorisation: " + std::to_string(n) +
                         " rows on this rank; at most " + std::to_string(most_ldlt_rows) +
                         " are possible");
    }
    std::vector<Eigen::Triplet<Wide<T>>> entries;
    entries.reserve(static_cast<std::size_t>(rows.nonzeros() + n));
    const auto add_lower = [&](const CsrRows<T>& from, double factor) {
        visit_block(from, [&](int i, int j, const Wide<T>& value) {
            if (j <= i) {
                entries.emplace_back(i, j, factor * value);
            }
        });
    };
    add_lower(rows, 1);
    if (b != nullptr) {
        add_lower(*b, -shift);
    } else {
        for (int i = 0; i < static_cast<int>(n); ++i) {
            entries.emplace_back(i, i, Wide<T>(-shift));
        }
    }
    Eigen::SparseMatrix<Wide<T>> lower(static_cast<int>(n), static_cast<int>(n));
    lower.setFromTriplets(entries.begin(), entries.end());
    return lower;
}

/// to[c] -= factor from[c], without the tests for NaN of a complex product.
template <class W>
void subtract_product(W factor, const W* from, int count, W* to) {
    for (int c = 0; c < count; ++c) {
        if constexpr (is_complex_v<W>) {
            to[c] -= W(factor.real() * from[c].real() - factor.imag() * from[c].imag(),
                       factor.real() * from[c].imag() + factor.imag() * from[c].real());
        } else {
            to[c] -= factor * from[c];
        }
    }
}

/// The rows of a block, contiguous and in double precision.
template <class W>
struct WideRows {
    WideRows(int cols, std::int64_t rows)
        : width(cols), values(static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols)) {}

    W* row(int i) {
        return values.data() + static_cast<std::size_t>(i) * static_cast<std::size_t>(width);
    }
    /// Row places[i] <- row i of X; null: row i.
    template <class T>
    void load(BlockView<T> x, const int* places) {
        for (int i = 0; i < static_cast<int>(x.rows); ++i) {
            W* const to = row(places == nullptr ? i : places[i]);
            for (int c = 0; c < width; ++c) {
                to[c] = static_cast<W>(x.data[i * x.ld + c]);
            }
        }
    }
    /// Row i of X <- row places[i]; null: row i.
    template <class T>
    void store(BlockView<T> x, const int* places) {
        for (int i = 0; i < static_cast<int>(x.rows); ++i) {
            const W* const from = row(places == nullptr ? i : places[i]);
            for (int c = 0; c < width; ++c) {
                x.data[i * x.ld + c] = static_cast<T>(from[c]);
            }
        }
    }
    /// Divides row i by the real number divisors[i].
    template <class Divisors>
    void divide(const Divisors& divisors) {
        for (int i = 0; i < static_cast<int>(divisors.size()); ++i) {
            const double divisor = std::real(divisors[i]);
            for (int c = 0; c < width; ++c) {
                row(i)[c] /= divisor;
            }
        }
    }

    int width;
    std::vector<W> values;
};

// In the following functions `lower` is L without its unit diagonal, by columns.

/// Y <- L^-1 Y.
template <class W>
void solve_with_lower(const Eigen::SparseMatrix<W>& lower, WideRows<W>& y) {
    for (int j = 0; j < static_cast<int>(lower.cols()); ++j) {
        const W* const from = y.row(j);
        for (int e = lower.outerIndexPtr()[j]; e < lower.outerIndexPtr()[j + 1]; ++e) {
            subtract_product(lower.valuePtr()[e], from, y.width, y.row(lower.innerIndexPtr()[e]));
        }
    }
}

/// Y <- L^-H Y.
template <class W>
void solve_with_upper(const Eigen::SparseMatrix<W>& lower, WideRows<W>& y) {
    for (int j = static_cast<int>(lower.cols()) - 1; j >= 0; --j) {
        for (int e = lower.outerIndexPtr()[j]; e < lower.outerIndexPtr()[j + 1]; ++e) {
            subtract_product(conjugate(lower.valuePtr()[e]), y.row(lower.innerIndexPtr()[e]),
                             y.width, y.row(j));
        }
    }
}

/// Y <- L^H Y.
template <class W>
void multiply_by_upper(const Eigen::SparseMatrix<W>& lower, WideRows<W>& y) {
    for (int j = 0; j < static_cast<int>(lower.cols()); ++j) {
        for (int e = lower.outerIndexPtr()[j]; e < lower.outerIndexPtr()[j + 1]; ++e) {
            subtract_product(-conjugate(lower.valuePtr()[e]), y.row(lower.innerIndexPtr()[e]),
                             y.width, y.row(j));
        }
    }
}

}  // namespace

template <class T>
struct SparseLdlt<T>::Data {
    Eigen::SimplicialLDLT<Eigen::SparseMatrix<Wide<T>>> factor;
};

template <class T>
SparseLdlt<T>::SparseLdlt(const CsrRows<T>& rows, const CsrRows<T>* b, double shift)
    : map_(rows.map), norm_(std::abs(shift)), data_(std::make_unique<Data>()) {
    visit_block(rows, [&](int, int, const Wide<T>& value) {
        norm_ = std::max(norm_, static_cast<double>(std::abs(value)));
    });
    data_->factor.compute(lower_part(rows, b, shift));
}

template <class T>
SparseLdlt<T>::~SparseLdlt() = default;

template <class T>
bool SparseLdlt<T>::complete() const {
    return data_->factor.info() == Eigen::Success;
}

template <class T>
std::vector<double> SparseLdlt<T>::pivots() const {
    std::vector<double> result;
    for (const Wide<T>& pivot : data_->factor.vectorD()) {
        result.push_back(std::real(pivot));
    }
    return result;
}

template <class T>
double SparseLdlt<T>::error() const {
    using Column = typename Eigen::SparseMatrix<Wide<T>>::InnerIterator;
    const auto& lower = data_->factor.matrixL().nestedExpression();  // strictly lower
    const std::vector<double> d = pivots();
    std::vector<double> sum(d.size(), 0);
    std::vector<int> entries(d.size(), 1);
    for (int j = 0; j < lower.outerSize(); ++j) {
        const auto column = static_cast<std::size_t>(j);
        double length = 1;
        for (Column entry(lower, j); entry; ++entry) {
            length += std::abs(entry.value());
        }
        const double scale = std::abs(d[column]) * length;
        sum[column] += scale;
        for (Column entry(lower, j); entry; ++entry) {
            const auto row = static_cast<std::size_t>(entry.row());
            sum[row] += std::abs(entry.value()) * scale;
            ++entries[row];
        }
    }
    double largest = 0;
    int most = 0;
    for (std::size_t i = 0; i < d.size(); ++i) {
        // NaN becomes the largest, and stays it.
        largest = sum[i] <= largest || std::isnan(largest) ? largest : sum[i];
        most = std::max(most, entries[i]);
    }
    return std::numeric_limits<double>::epsilon() * (std::sqrt(static_cast<double>(most)) + 4) *
           largest;
}

template <class T>
std::vector<std::int64_t> SparseLdlt<T>::places() const {
    const auto& indices = data_->factor.permutationP().indices();
    return {indices.data(), indices.data() + indices.size()};
}

template <class T>
void SparseLdlt<T>::solve(BlockView<T> x) const {
    const auto& lower = data_->factor.matrixL().nestedExpression();
    const int* const places = data_->factor.permutationP().indices().data();
    WideRows<Wide<T>> y(x.cols, map_.local_rows());
    y.load(x, places);
    solve_with_lower(lower, y);
    y.divide(data_->factor.vectorD());
    solve_with_upper(lower, y);
    y.store(x, places);
}

template <class T>
void SparseLdlt<T>::solve_lower_half(BlockView<T> x) const {
    WideRows<Wide<T>> y(x.cols, map_.local_rows());
    y.load(x, data_->factor.permutationP().indices().data());
    solve_with_lower(data_->factor.matrixL().nestedExpression(), y);
    y.divide(data_->factor.vectorD().cwiseSqrt());
    y.store(x, nullptr);
}

template <class T>
void SparseLdlt<T>::solve_upper_half(BlockView<T> x) const {
    WideRows<Wide<T>> y(x.cols, map_.local_rows());
    y.load(x, nullptr);
    y.divide(data_->factor.vectorD().cwiseSqrt());
    solve_with_upper(data_->factor.matrixL().nestedExpression(), y);
    y.store(x, data_->factor.permutationP().indices().data());
}

template <class T>
void SparseLdlt<T>::multiply_upper_half(BlockView<T> x) const {
    WideRows<Wide<T>> y(x.cols, map_.local_rows());
    y.load(x, data_->factor.permutationP().indices().data());
    multiply_by_upper(data_->factor.matrixL().nestedExpression(), y);
    y.divide(data_->factor.vectorD().cwiseSqrt().cwiseInverse());
    y.store(x, nullptr);
}

template <class T>
CsrRows<T> SparseLdlt<T>::factors(double least, bool absolute) const {
    using Real = real_t<T>;
    const auto& lower = data_->factor.matrixL().nestedExpression();  // by columns, strictly lower
    const auto n = static_cast<std::size_t>(map_.local_rows());
    const std::int64_t first = map_.first_row();
    CsrRows<T> result;
    result.map = map_;
    result.global_cols = map_.global_rows();
    std::vector<std::int64_t> length(n + 1, 0);
    for (int j = 0; j < lower.outerSize(); ++j) {
        for (typename Eigen::SparseMatrix<Wide<T>>::InnerIterator entry(lower, j); entry; ++entry) {
            ++length[static_cast<std::size_t>(entry.row())];
            ++length[static_cast<std::size_t>(j)];
        }
        ++length[static_cast<std::size_t>(j)];
    }
    result.row_start.resize(n + 1);
    for (std::size_t i = 0; i < n; ++i) {
        result.row_start[i + 1] = result.row_start[i] + length[i];
    }
    const auto total = static_cast<std::size_t>(result.row_start[n]);
    result.column.resize(total);
    result.value.resize(total);
    std::vector<std::int64_t> next(result.row_start.begin(), result.row_start.end() - 1);
    const auto put = [&](std::size_t row, std::size_t column, Wide<T> value) {
        const auto at = static_cast<std::size_t>(next[row]++);
        result.column[at] = first + static_cast<std::int64_t>(column);
        result.value[at] = static_cast<T>(value);
    };
    const std::vector<double> d = pivots();
    // Columns are processed in ascending order: when column j is reached, row j already has all its
    // entries left of the diagonal.
    for (std::size_t j = 0; j < n; ++j) {
        const double size = std::max(std::abs(d[j]), least);
        const double pivot = absolute || d[j] > 0 ? size : -size;
        put(j, j, Wide<T>(static_cast<double>(static_cast<Real>(pivot))));
        for (typename Eigen::SparseMatrix<Wide<T>>::InnerIterator entry(lower, static_cast<int>(j));
             entry; ++entry) {
            const auto i = static_cast<std::size_t>(entry.row());
            put(i, j, entry.value());
            put(j, i, pivot * conjugate(entry.value()));
        }
    }
    return result;
}

template <class T>
LdltFill predict_fill(const CsrRows<T>& rows, const CsrRows<T>* b, std::int64_t most) {
    using Matrix = Eigen::SparseMatrix<Wide<T>>;
    const Matrix lower = lower_part(rows, b, 0);
    const Matrix whole = lower.template selfadjointView<Eigen::Lower>();
    Eigen::PermutationMatrix<Eigen::Dynamic, Eigen::Dynamic, int> inverse;
    Eigen::AMDOrdering<int>()(whole, inverse);
    Matrix ordered(lower.rows(), lower.cols());
    ordered.template selfadjointView<Eigen::Upper>() =
        lower.template selfadjointView<Eigen::Lower>().twistedBy(inverse.inverse());
    const auto n = static_cast<std::size_t>(lower.rows());
    std::vector<int> parent(n, -1);
    std::vector<int> visited(n, -1);
    std::vector<std::int64_t> below(n, 0);
    LdltFill fill;
    for (int k = 0; k < static_cast<int>(n) && fill.entries <= most; ++k) {
        // Row k of L has an entry in column i for every i on the paths of the elimination tree
        // from the entries of A to k.
        visited[static_cast<std::size_t>(k)] = k;
        for (typename Matrix::InnerIterator entry(ordered, k); entry; ++entry) {
            for (int i = static_cast<int>(entry.row());
                 i < k && visited[static_cast<std::size_t>(i)] != k;) {
                const auto at = static_cast<std::size_t>(i);
                parent[at] = parent[at] < 0 ? k : parent[at];
                visited[at] = k;
                ++below[at];
                ++fill.entries;
                i = parent[at];
            }
        }
    }
    for (const std::int64_t count : below) {
        fill.products += 0.5 * static_cast<double>(count) * static_cast<double>(count + 1);
    }
    return fill;
}

template <class T>
double hermitian_defect(const CsrRows<T>& rows) {
    const int n = static_cast<int>(rows.map.local_rows());
    std::vector<Eigen::Triplet<Wide<T>>> entries;
    visit_block(rows, [&](int i, int j, const Wide<T>& value) {
        entries.emplace_back(i, j, value);
        entries.emplace_back(j, i, -conjugate(value));
    });
    Eigen::SparseMatrix<Wide<T>> defect(n, n);
    defect.setFromTriplets(entries.begin(), entries.end());
    double largest = 0;
    for (Eigen::Index e = 0; e < defect.nonZeros(); ++e) {
        largest = std::max(largest, static_cast<double>(std::abs(defect.valuePtr()[e])));
    }
    return largest;
}

#define QUIVER_INSTANTIATE(T)                                                           \
    template class SparseLdlt<T>;                                                       \
    template LdltFill predict_fill(const CsrRows<T>&, const CsrRows<T>*, std::int64_t); \
    template double hermitian_defect(const CsrRows<T>&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
