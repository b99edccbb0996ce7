// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/precond/preconditioner.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "blockvec/error.hpp"
#include "blockvec/number_text.hpp"
#include "blockvec/scalar_list.hpp"
#include "blockvec/shape.hpp"
#include "blockvec/small_matrix.hpp"
#include "kernels/batched.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/sparse/gathered_rows.hpp"
#include "kernels/sparse/incomplete_lu.hpp"
#include "solvers/precond/block_jacobi.hpp"
#include "solvers/precond/chebyshev.hpp"
#include "solvers/precond/sparse_ldlt.hpp"

namespace quiver {
namespace {

constexpr int most_degree = 1000;
constexpr int most_sweeps = 1000;

[[noreturn]] void refuse(const std::string& text) {
    throw_collective(ErrorKind::input, "preconditioner " + text);
}

void check(const PreconditionerOptions& options) {
    if (options.block_size < 1 || options.block_size > largest_batched_lu) {
        refuse("block-jacobi: size=" + std::to_string(options.block_size) + "; a block has 1 to " +
               std::to_string(largest_batched_lu) + " rows");
    }
    if (options.degree < 1 || options.degree > most_degree) {
        refuse("chebyshev: degree=" + std::to_string(options.degree) + ", 1 to " +
               std::to_string(most_degree) + " are possible");
    }
    if (options.sweeps < 0 || options.sweeps > most_sweeps) {
        refuse(std::string(to_string(options.kind)) + ": sweeps=" + std::to_string(options.sweeps) +
               ", 0 (triangular solves) to " + std::to_string(most_sweeps) + " are possible");
    }
    if (options.shift && !std::isfinite(*options.shift)) {
        refuse("ldlt: the shift is not a finite number");
    }
    const bool bounds = options.lower >= 0 && options.upper >= 0 && std::isfinite(options.upper) &&
                        (options.upper == 0 || options.lower < options.upper);
    if (!bounds || !(options.ratio > 1)) {
        refuse("chebyshev: 0 < lower < upper and ratio > 1 are wanted");
    }
}

/// Solves with the factors of an incomplete or complete factorisation.
template <class T>
class Incomplete final : public Operator<T> {
  public:
    Incomplete(const RowMap& map, IncompleteLu<T> factors)
        : map_(map), factors_(std::move(factors)) {}
    const RowMap& row_map() const override { return map_; }
    void apply(Context& ctx, BlockView<const T> x, BlockView<T> y) override {
        factors_.solve(ctx, x, y);
    }

  private:
    RowMap map_;
    IncompleteLu<T> factors_;
};

/// Applies the same factors with each triangular solve replaced by Jacobi sweeps z <- b - N z.
template <class T>
class SweptIncomplete final : public Operator<T> {
  public:
    SweptIncomplete(Context& ctx, typename IncompleteLu<T>::Parts parts, int sweeps)
        : lower_(ctx, std::move(parts.lower)),
          inverse_diagonal_(ctx, std::move(parts.inverse_diagonal)),
          upper_(ctx, std::move(parts.upper)),
          sweeps_(sweeps) {}
    const RowMap& row_map() const override { return lower_.row_map(); }
    void apply(Context& ctx, BlockView<const T> x, BlockView<T> y) override {
        const std::size_t elements =
            static_cast<std::size_t>(x.rows) * static_cast<std::size_t>(x.cols);
        const Scratch scratch = ctx.scratch(memory_kind(ctx.place()), 2 * elements * sizeof(T));
        BlockView<T> now(scratch.as<T>(), x.rows, x.cols, x.cols, ctx.place());
        BlockView<T> next(scratch.as<T>() + elements, x.rows, x.cols, x.cols, ctx.place());
        const auto sweep = [&](SparseMatrix<T>& triangle, BlockView<const T> b) {
            axpby(ctx, T(1), b, T(0), now);
            for (int k = 0; k < sweeps_; ++k) {
                axpby(ctx, T(1), b, T(0), next);
                triangle.apply_fused(ctx, now, next, {T(-1), T(1), {}, {}, {}});
                std::swap(now, next);
            }
        };
        sweep(lower_, x);
        inverse_diagonal_.apply(ctx, now, y);
        sweep(upper_, y);
        axpby(ctx, T(1), now, T(0), y);
    }

  private:
    SparseMatrix<T> lower_;
    SparseMatrix<T> inverse_diagonal_;
    SparseMatrix<T> upper_;
    int sweeps_;
};

/// P^T M P, where P is a permutation of this rank's rows.
template <class T>
class Reordered final : public Operator<T> {
  public:
    /// P moves row i of a block to places[i].
    Reordered(Context& ctx, const RowMap& map, const std::vector<std::int64_t>& places,
              std::unique_ptr<Operator<T>> inner)
        : there_(ctx, permutation(map, inverse(places))),
          back_(ctx, permutation(map, places)),
          inner_(std::move(inner)) {}
    const RowMap& row_map() const override { return there_.row_map(); }
    void apply(Context& ctx, BlockView<const T> x, BlockView<T> y) override {
        const Scratch scratch =
            ctx.scratch(memory_kind(ctx.place()), static_cast<std::size_t>(x.rows) *
                                                      static_cast<std::size_t>(x.cols) * sizeof(T));
        const BlockView<T> z(scratch.as<T>(), x.rows, x.cols, x.cols, ctx.place());
        there_.apply(ctx, x, z);
        inner_->apply(ctx, z, z);
        back_.apply(ctx, z, y);
    }

  private:
    static std::vector<std::int64_t> inverse(const std::vector<std::int64_t>& places) {
        std::vector<std::int64_t> result(places.size());
        for (std::size_t i = 0; i < places.size(); ++i) {
            result[static_cast<std::size_t>(places[i])] = static_cast<std::int64_t>(i);
        }
        return result;
    }
    /// Row i of the result is row from[i] of the identity.
    static CsrRows<T> permutation(const RowMap& map, const std::vector<std::int64_t>& from) {
        CsrRows<T> rows;
        rows.map = map;
        rows.global_cols = map.global_rows();
        for (const std::int64_t column : from) {
            rows.column.push_back(map.first_row() + column);
            rows.value.push_back(T(1));
            rows.row_start.push_back(rows.nonzeros());
        }
        return rows;
    }

    SparseMatrix<T> there_;
    SparseMatrix<T> back_;
    std::unique_ptr<Operator<T>> inner_;
};

/// True if the factorisation loses no digits to small pivots: all pivots have one sign, or no
/// |pivot| is smaller than `least`.
bool is_stable(const std::vector<double>& pivots, double least) {
    const bool definite =
        std::all_of(pivots.begin(), pivots.end(), [](double d) { return d > 0; }) ||
        std::all_of(pivots.begin(), pivots.end(), [](double d) { return d < 0; });
    return definite || std::all_of(pivots.begin(), pivots.end(),
                                   [&](double d) { return std::abs(d) >= least; });
}

/// Emits a NoticeEvent if the factors have pivots of both signs: |A - sigma B|^-1 then amplifies
/// the eigenvectors nearest sigma instead of those at an end.
template <class T>
void warn_if_indefinite(Context& ctx, const SparseLdlt<T>& factor, double shift) {
    const std::vector<double> pivots = factor.pivots();
    const auto count = [&](auto&& has_sign) {
        return ctx.comm().sum(
            static_cast<std::int64_t>(std::count_if(pivots.begin(), pivots.end(), has_sign)));
    };
    const std::int64_t below = count([](double pivot) { return pivot < 0; });
    const std::int64_t above = count([](double pivot) { return pivot > 0; });
    if (below > 0 && above > 0) {
        ctx.emit(NoticeEvent{"preconditioner ldlt: of the matrix minus its shift " +
                             number_text(shift) + ", " + std::to_string(below) +
                             " pivots are negative and " + std::to_string(above) +
                             " positive, which may slow down a solve at an end; give a "
                             "shift beyond all eigenvalues there (ldlt,shift=VALUE), use method "
                             "shift-invert, or omit the preconditioner"});
    }
}

/// Y = (A - sigma B)^-1 X by a factorisation of all rows, which rank 0 holds.
template <class T>
class SolvesOnRankZero final : public Operator<T> {
  public:
    SolvesOnRankZero(const RowMap& map, std::unique_ptr<SparseLdlt<T>> factor)
        : map_(map), factor_(std::move(factor)) {}
    const RowMap& row_map() const override { return map_; }
    void apply(Context& ctx, BlockView<const T> x, BlockView<T> y) override {
        const Comm& comm = ctx.comm();
        SmallMatrix<T> all;
        BlockView<T> mine;
        comm.agree([&] {
            all = SmallMatrix<T>(static_cast<int>(map_.global_rows()), x.cols);
            mine = all.view().row_range(map_.first_row(), x.rows);
            copy(ctx, x, mine);
        });
        const auto count =
            static_cast<std::size_t>(all.rows()) * static_cast<std::size_t>(all.cols());
        comm.sum(std::span<T>(all.data(), count));
        comm.agree([&] {
            if (factor_) {
                factor_->solve(all.view());
            }
        });
        comm.broadcast(all.data(), count * sizeof(T), 0);
        copy(ctx, BlockView<const T>(mine), y);
    }

  private:
    RowMap map_;
    std::unique_ptr<SparseLdlt<T>> factor_;  // null on the other ranks
};

/// The rows that a rank factorises, their factorisation, and the distance by which sigma has moved.
template <class T>
struct CompleteFactor {
    CsrRows<T> rows;
    CsrRows<T> mass;
    /// Null on ranks that do not factorise.
    std::unique_ptr<SparseLdlt<T>> ldlt;
    double moved = 0;
};

/// Factorises A - sigma B after the smallest move of sigma with which no rank that `factorises`
/// loses digits to small pivots.
template <class T>
void factorise(Context& ctx, const PreconditionerOptions& options, bool has_b, bool factorises,
               CompleteFactor<T>& factor) {
    constexpr double least_pivot = 1e-6;
    constexpr double last = 1e-3;
    for (const double step : {0.0, least_pivot, 1e-5, 1e-4, last}) {
        // A downward move makes a matrix positive definite whose smallest eigenvalues are 0.
        factor.moved = (options.wants_definite ? -1 : 1) *
                       ctx.comm().max(factor.ldlt ? step * factor.ldlt->norm() : 0.0);
        bool good = !factorises;
        ctx.comm().agree([&] {
            if (!factorises) {
                return;
            }
            factor.ldlt =
                std::make_unique<SparseLdlt<T>>(factor.rows, has_b ? &factor.mass : nullptr,
                                                options.shift.value_or(0) + factor.moved);
            const double norm = factor.ldlt->norm();
            if (step == 0 &&
                hermitian_defect(factor.rows) > 100 * static_cast<double>(epsilon_v<T>) * norm) {
                throw InputError("preconditioner ldlt: the matrix is not Hermitian; try ilu");
            }
            good = factor.ldlt->complete() &&
                   (step == last || is_stable(factor.ldlt->pivots(), least_pivot * norm));
        });
        if (ctx.comm().max(std::int64_t{good ? 0 : 1}) == 0) {
            break;
        }
        if (step == last) {
            refuse("ldlt: the factorisation breaks down; try another shift");
        }
    }
    if (factor.moved != 0) {
        ctx.emit(
            FallbackEvent{"preconditioner ldlt: a pivot is close to zero, the shift moves by " +
                          number_text(factor.moved)});
    }
}

template <class T>
std::unique_ptr<Operator<T>> complete(Context& ctx, SparseMatrix<T>& a,
                                      const PreconditionerOptions& options, SparseMatrix<T>* b) {
    // For an indefinite matrix the inverses of the ranks' diagonal blocks do not approximate the
    // inverse.
    const bool gathers = !options.absolute && ctx.comm().size() > 1;
    CompleteFactor<T> factor;
    if (gathers) {
        factor.rows = rows_on_rank_0(ctx, a);
        factor.mass = b == nullptr ? CsrRows<T>() : rows_on_rank_0(ctx, *b);
        factorise(ctx, options, b != nullptr, ctx.comm().rank() == 0, factor);
        return std::make_unique<SolvesOnRankZero<T>>(a.row_map(), std::move(factor.ldlt));
    }
    ctx.comm().agree([&] {
        factor.rows = a.diagonal_block(ctx);
        factor.mass = b == nullptr ? CsrRows<T>() : b->diagonal_block(ctx);
    });
    factorise(ctx, options, b != nullptr, true, factor);
    if (options.wants_definite) {
        warn_if_indefinite(ctx, *factor.ldlt, options.shift.value_or(0) + factor.moved);
    }
    std::unique_ptr<Operator<T>> solves;
    std::vector<std::int64_t> places;
    ctx.comm().agree([&] {
        const double least = static_cast<double>(epsilon_v<T>) * factor.ldlt->norm();
        solves = std::make_unique<Incomplete<T>>(
            a.row_map(),
            IncompleteLu<T>::from_factors(ctx, factor.ldlt->factors(least, options.absolute)));
        places = factor.ldlt->places();
    });
    return std::make_unique<Reordered<T>>(ctx, a.row_map(), places, std::move(solves));
}

template <class T>
std::unique_ptr<Operator<T>> incomplete(Context& ctx, SparseMatrix<T>& a, bool cholesky,
                                        int sweeps) {
    const std::string name = cholesky ? "ic" : "ilu";
    const RowMap& map = a.row_map();
    Context host(Comm(),
                 Device::host(ctx.threads()));  // sweeps need no triangular solves on a device
    std::optional<IncompleteLu<T>> factors;
    std::int64_t bad_row = -1;
    for (const double shift : {0.0, 1e-3, 1e-2, 1e-1, 1.0}) {
        ctx.comm().agree([&] {
            try {
                factors.emplace(sweeps > 0 ? host : ctx, a.diagonal_block(ctx), shift);
            } catch (const InputError& error) {
                throw InputError("preconditioner " + name + ": " + error.what());
            }
        });
        const std::int64_t bad = factors->first_bad_pivot(cholesky);
        bad_row = ctx.comm().max(bad < 0 ? std::int64_t{-1} : map.first_row() + bad);
        if (bad_row < 0 && shift > 0) {
            ctx.emit(
                FallbackEvent{"preconditioner ic: a pivot is not positive, the diagonal is "
                              "enlarged by " +
                              number_text(shift * 100) + "%"});
        }
        if (bad_row < 0 || !cholesky) {
            break;
        }
    }
    if (bad_row >= 0) {
        refuse(name + ": the pivot of row " + std::to_string(bad_row + 1) +
               (cholesky ? " is not positive, even with twice the diagonal: the matrix is far from "
                           "positive definite; try ilu or block-jacobi"
                         : " is zero or not finite; try block-jacobi"));
    }
    if (sweeps == 0) {
        return std::make_unique<Incomplete<T>>(map, std::move(*factors));
    }
    typename IncompleteLu<T>::Parts parts;
    ctx.comm().agree([&] { parts = factors->parts(); });
    return std::make_unique<SweptIncomplete<T>>(ctx, std::move(parts), sweeps);
}

template <class T>
std::unique_ptr<Operator<T>> chebyshev(Context& ctx, SparseMatrix<T>& a,
                                       const PreconditionerOptions& options) {
    double upper = options.upper;
    if (upper == 0) {
        const SpectrumEstimate spectrum = estimate_spectrum<T>(ctx, a);
        const double noise = 100 * static_cast<double>(epsilon_v<T>) * spectrum.bound;
        if (spectrum.least < -noise || !(spectrum.bound > 0)) {
            refuse("chebyshev: the spectrum of the operator reaches " +
                   number_text(spectrum.least) + "; the operator must be positive definite");
        }
        upper = spectrum.bound;
    }
    const double lower = options.lower > 0 ? options.lower : upper / options.ratio;
    return std::make_unique<ChebyshevPolynomial<T>>(a, options.degree, lower, upper);
}

}  // namespace

const char* to_string(PreconditionerKind kind) {
    switch (kind) {
        case PreconditionerKind::jacobi:
            return "jacobi";
        case PreconditionerKind::block_jacobi:
            return "block-jacobi";
        case PreconditionerKind::chebyshev:
            return "chebyshev";
        case PreconditionerKind::ic:
            return "ic";
        case PreconditionerKind::ilu:
            return "ilu";
        case PreconditionerKind::ldlt:
            return "ldlt";
        default:
            return "none";
    }
}

PreconditionerOptions parse_preconditioner(const std::string& text) {
    PreconditionerOptions options;
    const std::size_t end_of_name = std::min(text.find(','), text.size());
    const std::string name = text.substr(0, end_of_name);
    bool known = false;
    for (const auto kind :
         {PreconditionerKind::none, PreconditionerKind::jacobi, PreconditionerKind::block_jacobi,
          PreconditionerKind::chebyshev, PreconditionerKind::ic, PreconditionerKind::ilu,
          PreconditionerKind::ldlt}) {
        if (name == to_string(kind)) {
            options.kind = kind;
            known = true;
        }
    }
    if (!known) {
        refuse("'" + name +
               "' is unknown: none, jacobi, block-jacobi,size=8, chebyshev,degree=8, "
               "ic, ilu, ic,sweeps=4, ilu,sweeps=4 or ldlt,shift=0");
    }
    std::vector<std::string> given;
    for (std::size_t begin = end_of_name; begin < text.size();) {
        const std::size_t end = std::min(text.find(',', begin + 1), text.size());
        const std::string pair = text.substr(begin + 1, end - begin - 1);
        begin = end;
        const std::size_t equals = std::min(pair.find('='), pair.size());
        const std::string key = pair.substr(0, equals);
        const std::string number = pair.substr(std::min(equals + 1, pair.size()));
        if (pair.empty()) {
            refuse(name + ": a comma without a key=value after it");
        }
        const auto whole = [&](int& to, int least, int most) {
            std::int64_t value = 0;
            if (parse_whole(number, value) != std::errc() || value < least || value > most) {
                refuse(name + ": " + pair + ": a whole number from " + std::to_string(least) +
                       " to " + std::to_string(most) + " is wanted after '='");
            }
            to = static_cast<int>(value);
        };
        const auto real = [&](double& to) {
            if (parse_real(number, to) != std::errc()) {
                refuse(name + ": " + pair + ": a number is wanted after '='");
            }
        };
        const bool polynomial = options.kind == PreconditionerKind::chebyshev;
        const bool factors =
            options.kind == PreconditionerKind::ic || options.kind == PreconditionerKind::ilu;
        if (options.kind == PreconditionerKind::block_jacobi && key == "size") {
            whole(options.block_size, 1, largest_batched_lu);
        } else if (factors && key == "sweeps") {
            whole(options.sweeps, 0, most_sweeps);
        } else if (options.kind == PreconditionerKind::ldlt && key == "shift") {
            real(options.shift.emplace());
        } else if (polynomial && key == "degree") {
            whole(options.degree, 1, most_degree);
        } else if (polynomial && key == "lower") {
            real(options.lower);
        } else if (polynomial && key == "upper") {
            real(options.upper);
        } else if (polynomial && key == "ratio") {
            real(options.ratio);
        } else {
            refuse(name + ": there is no key '" + key + "'; keys: " +
                   (polynomial ? "degree, lower, upper, ratio"
                    : factors  ? "sweeps"
                    : options.kind == PreconditionerKind::block_jacobi ? "size"
                    : options.kind == PreconditionerKind::ldlt
                        ? "shift"
                        : "none; block-jacobi has size, chebyshev degree, lower, upper, "
                          "ratio, ic and ilu sweeps, ldlt shift"));
        }
        if (std::find(given.begin(), given.end(), key) != given.end()) {
            refuse(name + ": the key " + key + " is given twice");
        }
        given.push_back(key);
    }
    check(options);
    return options;
}

template <class T>
std::unique_ptr<Operator<T>> make_preconditioner(Context& ctx, SparseMatrix<T>& a,
                                                 const PreconditionerOptions& options,
                                                 SparseMatrix<T>* b) {
    check(options);
    switch (options.kind) {
        case PreconditionerKind::jacobi:
            return block_jacobi(ctx, a, 1);
        case PreconditionerKind::block_jacobi:
            return block_jacobi(ctx, a, options.block_size);
        case PreconditionerKind::chebyshev:
            return chebyshev(ctx, a, options);
        case PreconditionerKind::ic:
            return incomplete(ctx, a, true, options.sweeps);
        case PreconditionerKind::ilu:
            return incomplete(ctx, a, false, options.sweeps);
        case PreconditionerKind::ldlt:
            return complete(ctx, a, options, b);
        default:
            return nullptr;
    }
}

// NOLINTBEGIN(bugprone-macro-parentheses): a type
#define QUIVER_INSTANTIATE(T)                                  \
    template std::unique_ptr<Operator<T>> make_preconditioner( \
        Context&, SparseMatrix<T>&, const PreconditionerOptions&, SparseMatrix<T>*);
// NOLINTEND(bugprone-macro-parentheses)
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
