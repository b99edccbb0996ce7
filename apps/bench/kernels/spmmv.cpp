// SPDX-License-Identifier: BSD-3-Clause
// spmmv: Y = A X for the 7-point Laplacian of a grid, or for the matrix of --matrix.
#include "kernels/operations/spmmv.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "apps/bench/kernels/kernels.hpp"
#include "apps/bench/kernels/stencil.hpp"
#include "apps/bench/operands.hpp"
#include "apps/matrices/generators.hpp"
#include "apps/problem.hpp"
#include "blockvec/error.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/sparse/sparse_matrix.hpp"

namespace quiver::apps::bench {
namespace {

template <class T>
CsrRows<T> make_rows(const Context& ctx, const Case& c) {
    if (!c.matrix.empty()) {
        const Problem problem = inspect_problem(ctx.comm(), c.matrix);
        return load_problem<T>(ctx.comm(), problem, ctx.threads());
    }
    const Stencil grid(c.rows);
    return generate<T>(ctx.comm(),
                       fmt::format("gen:laplace3d,nx={},ny={},nz={}", grid.nx, grid.nx, grid.nz),
                       ctx.threads());
}

/// A copy of the matrix in compressed rows with 32-bit indices, for rivals.
template <class T>
class Arrays {
  public:
    Arrays(Context& ctx, const CsrRows<T>& rows)
        : nonzeros_(rows.nonzeros()),
          row_start_(put<std::int32_t>(ctx, rows.row_start)),
          column_(put<std::int32_t>(ctx, rows.column)),
          value_(put<T>(ctx, rows.value)) {}

    SpmmCall<T> call(BlockView<const T> x, BlockView<T> y) const {
        return {nonzeros_,
                row_start_.as<std::int32_t>(),
                column_.as<std::int32_t>(),
                value_.template as<T>(),
                x,
                y};
    }

  private:
    template <class V, class U>
    static Buffer put(Context& ctx, const std::vector<U>& from) {
        const std::vector<V> narrow(from.begin(), from.end());
        const std::size_t bytes = narrow.size() * sizeof(V);
        Buffer to = ctx.allocate(memory_kind(ctx.place()), bytes, "a rival's matrix");
        if (ctx.place() == Place::device) {
            device::copy(to.as<void>(), narrow.data(), bytes, ctx.stream());
            ctx.synchronize();
        } else {
            std::copy(narrow.begin(), narrow.end(), to.as<V>());
        }
        return to;
    }

    std::int64_t nonzeros_;
    Buffer row_start_, column_, value_;
};

template <class T>
class SpmmvWorkload final : public Workload {
  public:
    SpmmvWorkload(Context& ctx, const Case& c, double least_bytes)
        : ctx_(ctx),
          case_(c),
          sets_(c, 2.0 * sizeof(T) * c.shape.n, least_bytes),
          x_(ctx, sets_, c.shape.n, 11),
          y_(ctx, sets_, c.shape.n, 12),
          rows_(make_rows<T>(ctx, c)),
          matrix_(ctx, rows_, {.width = c.shape.n, .tile = c.tile}) {}

    std::int64_t sets() const override { return sets_.count; }
    void reset() override { fill(ctx_, T(std::numeric_limits<real_t<T>>::quiet_NaN()), y_.all()); }
    void run(std::int64_t set) override { spmmv(ctx_, matrix_, x_.view(set), y_.view(set)); }
    bool has(Rival& rival) override {
        // With gaps, rows are not aligned to 16 bytes. cuSPARSE still reads 16 bytes at a time,
        // which stops the GPU with an error.
        const bool safe = ctx_.place() == Place::host || case_.ld_extra == 0;
        const bool can = rival.spmm() != nullptr && safe;
        if (can && !arrays_) {
            arrays_.emplace(ctx_, rows_);
        }
        return can;
    }
    void run(Rival& rival, std::int64_t set) override {
        rival.spmm()->run(arrays_->call(x_.view(set), y_.view(set)));
    }
    AnyBlock output(std::int64_t set) override { return y_.view(set); }

    double error(std::int64_t set, std::int64_t) override {
        const int n = y_.view(set).cols;
        return check_tall<T>(ctx_, y_.view(set), period,
                             [&](std::int64_t row, const T* computed, Worst<T>& worst) {
                                 for (int j = 0; j < n; ++j) {
                                     Wide<T> exact = 0;
                                     long double a_norm = 0;
                                     long double x_norm = 0;
                                     int terms = 0;
                                     row_entries(row, [&](std::int64_t column, T value) {
                                         const T x = x_.row(set, column)[j];
                                         exact += wide(x) * wide(value);
                                         a_norm += norm_squared(value);
                                         x_norm += norm_squared(x);
                                         ++terms;
                                     });
                                     worst.compare(computed[j], exact,
                                                   rounding<T>(terms) * std::sqrt(a_norm * x_norm));
                                 }
                             });
    }

  private:
    /// Calls visit(column, value) for each entry of a row of the stencil or of --matrix.
    template <class Visit>
    void row_entries(std::int64_t row, Visit&& visit) const {
        if (case_.matrix.empty()) {
            Stencil(sets_.rows).row_entries(row, [&](std::int64_t column, double value) {
                visit(column, static_cast<T>(static_cast<real_t<T>>(value)));
            });
            return;
        }
        const auto i = static_cast<std::size_t>(row);
        for (auto k = static_cast<std::size_t>(rows_.row_start[i]);
             k < static_cast<std::size_t>(rows_.row_start[i + 1]); ++k) {
            visit(rows_.column[k], rows_.value[k]);
        }
    }

    Context& ctx_;
    Case case_;
    Sets sets_;
    PeriodicBlock<T> x_, y_;
    CsrRows<T> rows_;
    SparseMatrix<T> matrix_;
    std::optional<Arrays<T>> arrays_;
};

std::int64_t nonzeros_of(const Case& c) {
    return c.matrix.empty() ? Stencil(c.rows).nonzeros() : c.nonzeros;
}

class SpmmvKernel final : public Kernel {
  public:
    const char* name() const override { return "spmmv"; }
    const char* formula() const override { return "Y = A X for a 3D Laplacian, or --matrix"; }
    Traffic traffic() const override { return Traffic::copy; }
    Cost cost(const Case& c) const override {
        return visit_dtype(c.scalar, [&]<class T>() {
            SpmmvArgs<T> args{};
            args.x_rows = args.y_rows = c.rows;
            args.width = c.shape.n;
            return quiver::cost(args, nonzeros_of(c));
        });
    }
    double row_bytes(const Case& c) const override {
        const double scalar = scalar_bytes(c.scalar);
        return 2 * scalar * c.shape.n + 7 * (scalar + 4);
    }
    std::int64_t round_rows(std::int64_t rows) const override { return Stencil(rows).rows(); }
    /// A quarter of the default size, because the matrix is first built on the host. That is still
    /// far above the caches.
    double size_factor() const override { return 0.25; }
    std::unique_ptr<Workload> prepare(Context& ctx, const Case& c,
                                      double least_bytes) const override {
        return visit_dtype(c.scalar, [&]<class T>() -> std::unique_ptr<Workload> {
            return std::make_unique<SpmmvWorkload<T>>(ctx, c, least_bytes);
        });
    }
};

}  // namespace

MatrixSize size_of_matrix(const Context& ctx, const std::string& matrix) {
    const auto size = [&]<class T>(T) {
        Case c;
        c.matrix = matrix;
        const CsrRows<T> rows = make_rows<T>(ctx, c);
        if (rows.global_cols != rows.map.global_rows()) {
            throw InputError(fmt::format("--matrix {}: {} rows and {} columns; it must be square",
                                         matrix, rows.map.global_rows(), rows.global_cols));
        }
        return MatrixSize{rows.map.global_rows(), rows.nonzeros(), is_complex_v<T>};
    };
    return inspect_problem(ctx.comm(), matrix).complex ? size(std::complex<float>()) : size(0.0F);
}

std::span<const Kernel* const> spmmv_kernels() {
    static const SpmmvKernel kernel;
    static const std::array<const Kernel*, 1> all{&kernel};
    return all;
}

}  // namespace quiver::apps::bench
