// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/graph/spectral_embedding.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <utility>

#include "blockvec/error.hpp"
#include "blockvec/number_text.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/tsmm.hpp"
#include "kernels/tsmttsm.hpp"
#include "solvers/dense/projected_eigen.hpp"
#include "solvers/eigen/eigensolver.hpp"
#include "solvers/equal_options.hpp"
#include "solvers/graph/components.hpp"
#include "solvers/graph/laplacian.hpp"

namespace quiver {

const char* to_string(LaplacianKind kind) {
    switch (kind) {
        case LaplacianKind::random_walk:
            return "random-walk";
        case LaplacianKind::combinatorial:
            return "combinatorial";
        default:
            return "symmetric";
    }
}

const char* to_string(EmbeddingScale scale) {
    return scale == EmbeddingScale::pyg ? "pyg" : "scikit-learn";
}

namespace {

void require_equal_embedding(const Comm& comm, const SpectralEmbeddingOptions& options) {
    EqualOptions equal("spectral embedding");
    equal.add("k", options.k);
    equal.add_choice("laplacian", static_cast<int>(options.laplacian),
                     [](int kind) { return to_string(static_cast<LaplacianKind>(kind)); });
    equal.add_choice("scale", static_cast<int>(options.scale),
                     [](int scale) { return to_string(static_cast<EmbeddingScale>(scale)); });
    equal.add("drop_first", options.drop_first);
    equal.add("symmetrise", options.symmetrise);
    equal.require(comm);
}

void check_embedding(const SpectralEmbeddingOptions& options, std::int64_t nodes) {
    const std::int64_t most = std::min<std::int64_t>(nodes, max_pairs) - options.drop_first;
    if (options.k < 1 || options.k > most) {
        throw_collective(
            ErrorKind::input,
            "spectral embedding: k = " + std::to_string(options.k) +
                (options.k < 1 ? ", but at least one vector is needed"
                               : " vectors, but at most " + std::to_string(most) + " for " +
                                     std::to_string(nodes) + (nodes == 1 ? " node" : " nodes")) +
                (options.k > most && options.drop_first ? "; the first vector is dropped" : ""));
    }
}

/// The eigenvectors u of L for the embedding: null vectors first, then the others.
template <class T>
class GraphVectors {
  public:
    GraphVectors(Context& ctx, const SpectralEmbeddingOptions& options,
                 GraphLaplacian<T>& laplacian, const GraphComponents& components)
        : ctx_(ctx),
          options_(options),
          map_(laplacian.rows.map),
          norm_(laplacian.norm),
          wanted_(options.k + (options.drop_first ? 1 : 0)),
          components_(std::ssize(components.sizes)),
          nulls_(make_null_vectors(laplacian.root_degree, components.labels)),
          matrix_(ctx, std::move(laplacian.rows)) {}

    EigenResult<T> find() {
        EigenResult<T> result;
        if (components_ >= wanted_) {
            result.converged = true;
            result.multiplicity = Multiplicity::verified;
            result.norm_estimate = norm_;
            result.tolerance = attainable_tolerance<T>(options_.solver.tol);
            result.method_reason = "there are at least as many components as vectors";
            result.vectors = BlockVector<T>(ctx_, map_, 0);
        } else {
            result = find_others();
        }
        result.cluster_cut = result.cluster_cut || components_ > wanted_;
        prepend_null_vectors(result);
        return result;
    }

  private:
    /// The first components' null vectors of length 1, at most as many as are wanted.
    BlockVector<T> make_null_vectors(const std::vector<double>& root_degree,
                                     const std::vector<std::int64_t>& labels) {
        const int count = static_cast<int>(std::min<std::int64_t>(wanted_, components_));
        BlockVector<T> host, result;
        std::vector<double> squares(static_cast<std::size_t>(count));
        const auto each_node = [&](auto&& use) {
            for (std::size_t i = 0; i < labels.size(); ++i) {
                if (labels[i] < count) {
                    use(i, static_cast<std::size_t>(labels[i]));
                }
            }
        };
        each_node(
            [&](std::size_t i, std::size_t j) { squares[j] += root_degree[i] * root_degree[i]; });
        ctx_.comm().sum(std::span<double>(squares));
        ctx_.comm().agree([&] {
            host = BlockVector<T>(ctx_, map_, count, 0, Place::host);
            result = BlockVector<T>(ctx_, map_, count);
        });
        const BlockView<T> x = host.view();
        std::fill_n(x.data, x.rows * x.ld, T(0));
        each_node([&](std::size_t i, std::size_t j) {
            x.data[i * static_cast<std::size_t>(x.ld) + j] =
                static_cast<T>(root_degree[i] / std::sqrt(squares[j]));
        });
        copy(ctx_, x, result.view());
        return result;
    }

    EigenResult<T> find_others() {
        EigenOptions options = options_.solver;
        options.window.reset();
        options.which = Which::smallest;
        EigenProblem<T> problem{matrix_};
        if (options.method == Method::lanczos) {
            // The products of a first block of null vectors would be rounding noise.
            options.k = wanted_ - nulls_.width();
            problem.constraints = std::as_const(nulls_).view();
            return eigensolve(ctx_, problem, options);
        }
        // Known vectors in the start block cost less than constraints, which most methods would
        // apply after each product, and direct methods do not take.
        options.k = wanted_;
        problem.start = std::as_const(nulls_).view();
        return without_null_vectors(eigensolve(ctx_, problem, options));
    }

    /// Removes the null vectors N from a result that contains them, in any mixture with
    /// eigenvectors of eigenvalues near 0: the eigenvectors of V^T (L + lift N N^T) V with the
    /// smallest eigenvalues are orthogonal to N.
    EigenResult<T> without_null_vectors(EigenResult<T> result) {
        const int found = result.vectors.width();
        const int kept = std::max(found - nulls_.width(), 0);
        SmallMatrix<T> share(nulls_.width(), found);
        tsmttsm(ctx_, T(1), std::as_const(nulls_).view(), std::as_const(result.vectors).view(),
                T(0), share);
        const T lift = static_cast<T>(4 * norm_);
        SmallMatrix<T> projected(found, found);
        for (int i = 0; i < found; ++i) {
            for (int j = 0; j < found; ++j) {
                T sum = T(0);
                for (int c = 0; c < share.rows(); ++c) {
                    sum += share(c, i) * share(c, j);
                }
                projected(i, j) =
                    lift * sum +
                    (i == j ? static_cast<T>(result.eigenvalues[static_cast<std::size_t>(i)])
                            : T(0));
            }
        }
        const HermitianEigen<T> eigen = projected_eigen(ctx_, projected);
        SmallMatrix<T> chosen(found, kept);
        for (int i = 0; i < found; ++i) {
            std::copy_n(&eigen.vectors(i, 0), kept, chosen.data() + i * kept);
        }
        BlockVector<T> others;
        ctx_.comm().agree([&] { others = BlockVector<T>(ctx_, map_, kept); });
        if (kept > 0) {
            tsmm(ctx_, T(1), std::as_const(result.vectors).view(), chosen.view(), T(0),
                 others.view());
        }
        result.vectors = std::move(others);
        result.eigenvalues.assign(eigen.values.begin(), eigen.values.begin() + kept);
        return result;
    }

    /// Puts the null vectors in front, and computes all residuals.
    void prepend_null_vectors(EigenResult<T>& result) {
        const int nulls = nulls_.width();
        const int found = nulls + result.vectors.width();
        BlockVector<T> all, images;
        ctx_.comm().agree([&] {
            all = BlockVector<T>(ctx_, map_, found);
            images = BlockVector<T>(ctx_, map_, found);
        });
        copy(ctx_, nulls_.view(), all.columns(0, nulls));
        copy(ctx_, result.vectors.view(), all.columns(nulls, found - nulls));
        result.eigenvalues.insert(result.eigenvalues.begin(), static_cast<std::size_t>(nulls), 0);
        std::vector<T> shift(result.eigenvalues.begin(), result.eigenvalues.end());
        std::vector<T> squares(shift.size());
        ApplyOptions<T> product;
        product.shift = shift;
        product.dot_yy = squares;
        matrix_.apply_fused(ctx_, std::as_const(all).view(), images.view(), product);
        result.residuals.clear();
        for (const T square : squares) {
            result.residuals.push_back(std::sqrt(static_cast<double>(square)));
        }
        result.vectors = std::move(all);
    }

    Context& ctx_;
    const SpectralEmbeddingOptions& options_;
    RowMap map_;
    double norm_;
    int wanted_;
    std::int64_t components_;
    BlockVector<T> nulls_;
    SparseMatrix<T> matrix_;
};

/// The length of a column over all ranks, and its element of largest magnitude.
struct ColumnFacts {
    double square = 0;
    double largest = 0;
    std::int64_t row = std::numeric_limits<std::int64_t>::max();
    bool negative = false;

    void add(double value, std::int64_t at) {
        square += value * value;
        if (std::abs(value) > largest || row == std::numeric_limits<std::int64_t>::max()) {
            largest = std::abs(value);
            row = at;
            negative = value < 0;
        }
    }
};

/// The factor of each column that makes its largest element positive and, if `unit`, its length 1.
/// Collective.
template <class T>
std::vector<double> column_factors(const Comm& comm, std::int64_t first_row, BlockView<const T> x,
                                   bool unit) {
    const auto columns = static_cast<std::size_t>(x.cols);
    std::vector<ColumnFacts> facts(columns);
    for (std::int64_t i = 0; i < x.rows; ++i) {
        for (std::size_t j = 0; j < columns; ++j) {
            facts[j].add(static_cast<double>(x.data[i * x.ld + static_cast<std::int64_t>(j)]),
                         first_row + i);
        }
    }
    std::vector<double> largest(columns), square(columns);
    for (std::size_t j = 0; j < columns; ++j) {
        largest[j] = facts[j].largest;
        square[j] = facts[j].square;
    }
    comm.max(std::span<double>(largest));
    comm.sum(std::span<double>(square));
    // The first row with the largest element wins: 2 row + 1 for a negative element, negated.
    std::vector<std::int64_t> key(columns, std::numeric_limits<std::int64_t>::min());
    for (std::size_t j = 0; j < columns; ++j) {
        if (x.rows > 0 && facts[j].largest == largest[j]) {
            key[j] = -(2 * facts[j].row + (facts[j].negative ? 1 : 0));
        }
    }
    comm.max(std::span<std::int64_t>(key));
    std::vector<double> factors(columns);
    for (std::size_t j = 0; j < columns; ++j) {
        factors[j] = (key[j] % 2 != 0 ? -1 : 1) / (unit ? std::sqrt(square[j]) : 1);
    }
    return factors;
}

/// Makes the embedding of the eigenvectors u: drops the first, and sets scale and signs.
template <class T>
void scale_vectors(Context& ctx, const SpectralEmbeddingOptions& options,
                   const std::vector<double>& root_degree, EigenResult<T>& pairs) {
    const int drop = options.drop_first ? 1 : 0;
    const int kept = pairs.vectors.width() - drop;
    BlockVector<T> host, result;
    ctx.comm().agree([&] {
        host = BlockVector<T>(ctx, pairs.vectors.row_map(), kept, 0, Place::host);
        result = BlockVector<T>(ctx, pairs.vectors.row_map(), kept);
    });
    const BlockView<T> x = host.view();
    copy(ctx, pairs.vectors.columns(drop, kept), x);
    const bool divides = options.laplacian != LaplacianKind::combinatorial &&
                         (options.scale == EmbeddingScale::scikit_learn ||
                          options.laplacian == LaplacianKind::random_walk);
    const auto scale_rows = [&](auto&& factor) {
#pragma omp parallel for num_threads(ctx.threads()) schedule(static)
        for (std::int64_t i = 0; i < x.rows; ++i) {
            for (int j = 0; j < kept; ++j) {
                T& value = x.data[i * x.ld + j];
                value = static_cast<T>(static_cast<double>(value) * factor(i, j));
            }
        }
    };
    if (divides) {
        scale_rows(
            [&](std::int64_t i, int) { return 1 / root_degree[static_cast<std::size_t>(i)]; });
    }
    const std::vector<double> factors =
        column_factors<T>(ctx.comm(), pairs.vectors.row_map().first_row(), x,
                          divides && options.scale == EmbeddingScale::pyg);
    scale_rows([&](std::int64_t, int j) { return factors[static_cast<std::size_t>(j)]; });
    copy(ctx, x, result.view());
    pairs.vectors = std::move(result);
    pairs.eigenvalues.erase(pairs.eigenvalues.begin(), pairs.eigenvalues.begin() + drop);
    pairs.residuals.erase(pairs.residuals.begin(), pairs.residuals.begin() + drop);
}

}  // namespace

template <class T>
SpectralEmbedding<T> spectral_embedding(Context& ctx, CsrRows<T> adjacency,
                                        const SpectralEmbeddingOptions& options) {
    const auto begin = std::chrono::steady_clock::now();
    const Comm& comm = ctx.comm();
    require_equal_embedding(comm, options);
    require_graph(comm, adjacency, options.symmetrise, ctx.threads());
    check_embedding(options, adjacency.global_cols);
    GraphComponents components;
    components = connected_components(comm, adjacency, ctx.threads());
    GraphLaplacian<T> laplacian = form_laplacian(
        comm, adjacency, options.laplacian != LaplacianKind::combinatorial, ctx.threads());
    adjacency = {};
    SpectralEmbedding<T> result;
    result.isolated = laplacian.isolated;
    GraphVectors<T> vectors(ctx, options, laplacian, components);
    result.pairs = vectors.find();
    const int dropped = options.drop_first ? 1 : 0;
    result.null_vectors =
        static_cast<int>(std::min<std::int64_t>(std::ssize(components.sizes) - dropped, options.k));
    scale_vectors(ctx, options, laplacian.root_degree, result.pairs);
    result.labels = std::move(components.labels);
    result.sizes = std::move(components.sizes);
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
    result.pairs.seconds = passed.count();
    return result;
}

#define QUIVER_INSTANTIATE(T)                                              \
    template SpectralEmbedding<T> spectral_embedding(Context&, CsrRows<T>, \
                                                     const SpectralEmbeddingOptions&);
QUIVER_INSTANTIATE(float)
QUIVER_INSTANTIATE(double)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
