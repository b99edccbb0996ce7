# SPDX-License-Identifier: BSD-3-Clause
"""The mutations of mutations.py: a text that occurs once in a file, its replacement, and the tests that must fail.

`file` is the name of a file, preceded by folders if the name alone is not unique. `equivalent` is the reason why no
test can fail.
"""
import typing


class Test(typing.NamedTuple):
    target: str  # NAME of quiver_test(NAME ...)
    filter: str = "*"
    ranks: int = 1


class Mutation(typing.NamedTuple):
    name: str
    file: str
    old: str
    new: str
    tests: typing.Sequence[Test]
    equivalent: str = ""


def missing_copy(*more):
    return [Test("verification", "MissingCopyTest*"), *more]


SAVED_AGAIN = [Test("solver_state", "SavedAgain*")]

# The guarantee of multiplicities, bounds, projections and saved states.
VERIFICATION = [
    Mutation("chebyshev calls every multiplicity verified", "chebyshev_subspace.cpp",
             "if (*std::max_element(lengths.begin(), lengths.end()) <= short_column) {", "if (true) {",
             missing_copy()),
    Mutation("the growth of chebyshev's verification without the root of the rows", "chebyshev_subspace.cpp",
             "std::sqrt(static_cast<double>(this->dimensions()) * (is_complex_v<T> ? 2 : 1) / 3);",
             "std::sqrt((is_complex_v<T> ? 2.0 : 1.0) / 3);",
             [Test("verification", "ChebyshevVerification*")]),
    Mutation("the window filter always verifies", "window_filter.cpp",
             "if (*std::max_element(lengths.begin(), lengths.end()) <= short_column * kept) {", "if (true) {",
             missing_copy()),
    Mutation("the margin of the verdict without the root of the dimension", "verification.cpp",
             "outside_margin * std::sqrt(static_cast<double>(dimensions))",
             "outside_margin * std::min(1.0, static_cast<double>(dimensions))",
             [Test("verification", "JudgeComplement*")]),
    Mutation("residuals of LOBPCG are not divided by the length", "lobpcg_space.cpp",
             "static_cast<double>(length[static_cast<std::size_t>(j)]));",
             "static_cast<double>(length[static_cast<std::size_t>(j)] * 0 + 1));",
             [Test("eigen_pencil", "*MassesFarFromOne*")]),
    Mutation("block Lanczos does not restore its random streams", "lanczos_recurrence.cpp",
             "static_cast<std::uint64_t>(state.whole(prefix + \"random_streams\", 0, most_count));",
             "random_streams_ + 0 * static_cast<std::uint64_t>(\n"
             "        state.whole(prefix + \"random_streams\", 0, most_count));", SAVED_AGAIN),
    Mutation("the projector of Jacobi-Davidson is missing", "projected_operator.cpp",
             "options.shift, {}, options.dot_xy});\n    remove_components(ctx, p_, bp_, y);",
             "options.shift, {}, options.dot_xy});", [Test("verification", "ProjectedOperator*")]),
    Mutation("the bound of chebyshev is 5% low", "chebyshev_subspace.cpp",
             "bound_ = key(count - 1) + std::min(run.coupling, 2 * run.residuals[at(count - 1)]);",
             "bound_ = 0.95 * (key(count - 1) + std::min(run.coupling, 2 * run.residuals[at(count - 1)]));",
             [Test("verification", "Chebyshev*")]),
    Mutation("bounds of protected updates are 100 times as wide", "row_check.hpp",
             "return 4 * (is_complex_v<T> ? 2 : 1)", "return 400 * (is_complex_v<T> ? 2 : 1)",
             [Test("abft_products", "ProtectedUpdates*Faults*")]),
    Mutation("bounds of protected matrices are 100 times as wide", "protected_matrix.cpp",
             "const double unit = rounding_units<T>();", "const double unit = 100 * rounding_units<T>();",
             [Test("abft", "AbftTest*FaultsInProducts*")]),
    Mutation("column sums that are not finite wait for the audit", "protected_matrix.cpp",
             "if (!wanted.complete() && finite_norms(product, halo)) {", "if (false) {",
             [Test("abft", "Abft.AColumnSum*")]),
    Mutation("a change of eigenvectors after their residuals is ignored", "audited_solve.cpp",
             "sound = unchanged_since(ctx, before, x) && sound;", "unchanged_since(ctx, before, x);",
             [Test("abft", "Abft.AVectorThatChanges*")]),
    Mutation("a change of a solution after its residual is ignored", "linear_solve.cpp",
             "const bool unchanged = unchanged_since(ctx, before, BlockView<const T>(x));",
             "const bool unchanged = true;", [Test("abft", "Abft.AChangeOfX*", 2)]),
]

DENSE = [Test("dense_kernels", "*")]
KERNELS = [
    Mutation("tsmttsm subtracts its products", "host/tsmttsm.cpp",
             "sum[t][v] += factor * row[v];", "sum[t][v] -= factor * row[v];", [Test("dense_kernels", "*Tsmttsm*")]),
    Mutation("tsmttsm omits the last rows of an unrolled loop", "host/tsmttsm.cpp",
             "for (; k < args.count; ++k) {", "for (; k + 1 < args.count; ++k) {", [Test("dense_kernels", "*Tsmttsm*")]),
    Mutation("axpby drops beta", "host/column_ops.cpp",
             "y_row[j] = multiply(alpha, x_row[j]) + multiply(beta, y_row[j]);",
             "y_row[j] = multiply(alpha, x_row[j]) + y_row[j];", DENSE),
    Mutation("axpby by columns reads alpha for beta", "host/column_ops.cpp",
             "const T by = multiply(betas[j], y_row[j]);", "const T by = multiply(alphas[j], y_row[j]);", DENSE),
    Mutation("dots without the conjugate", "host/column_ops.cpp",
             "sum[j] += multiply(conjugate(x_row[j]), y_row[j]);", "sum[j] += multiply(x_row[j], y_row[j]);", DENSE),
    Mutation("dots omit the rows after the folded ones", "host/column_ops.cpp",
             "for (; r < last; ++r) {\n                row(x + r * ldx, y + r * ldy, sum, cols);",
             "for (; r + 1 < last; ++r) {\n                row(x + r * ldx, y + r * ldy, sum, cols);", DENSE),
    Mutation("random numbers swap the words of a key", "host/random.cpp",
             "auto key0 = static_cast<std::uint32_t>(seed);", "auto key0 = static_cast<std::uint32_t>(seed >> 32);",
             [Test("dense_kernels", "*Random*")]),
    Mutation("random numbers with nine rounds", "host/random.cpp",
             "for (int round = 0; round < 10; ++round) {", "for (int round = 0; round < 9; ++round) {",
             [Test("dense_kernels", "*Random*")]),
    Mutation("spmmv adds the shift", "host/spmmv.cpp", "values[v] -= multiply(args.shift, x[v]);",
             "values[v] += multiply(args.shift, x[v]);", [Test("sparse", "*SparseMatrix*:*Sparse*")]),
    Mutation("spmmv reads the shift of another column", "host/spmmv.cpp",
             "values[v] -= multiply(args.shifts[j + v], x[v]);", "values[v] -= multiply(args.shifts[v], x[v]);",
             [Test("sparse", "*SparseMatrix*:*Sparse*")]),
    Mutation("spmmv's x^H y without the conjugate", "host/spmmv.cpp",
             "dots[args.width + j + v] += multiply(conjugate(x[v]), values[v]);",
             "dots[args.width + j + v] += multiply(x[v], values[v]);", [Test("sparse", "*SparseMatrix*:*Sparse*")]),
    Mutation("spmmv reads the halo with the stride of X", "host/spmmv.cpp",
             ": args.halo + (column - args.x_rows) * args.width;", ": args.halo + (column - args.x_rows) * args.ldx;",
             [Test("sparse", "*SparseMatrix*:*Sparse*", 2)]),
    Mutation("the adjoint is a transpose", "gathered_rows.cpp", "conjugate(value)});", "value});",
             [Test("sparse", "RectangularMatrix*")]),
    Mutation("the sums of x^H x are those of y^H y", "host/spmmv.cpp", "+= T(abs_squared(x[v]));",
             "+= T(abs_squared(values[v]));", [Test("sparse", "SparseMatrixTest*")]),
    Mutation("spmmv uses a checked column as it is", "host/spmmv.cpp",
             "return static_cast<std::uint64_t>(column) < columns;", "return column >= 0;",
             [Test("sparse", "IndexChecks*")]),
    Mutation("spmmv divides the work one slot too early", "host/spmmv.cpp", "low = middle + 1;\n            } else {",
             "low = middle + 1;\n            } else if (middle == high) {\n                break;\n            } else {",
             [Test("sparse", "*SparseMatrix*:*Sparse*")], equivalent="middle is below high inside the loop"),
    Mutation("the product is not summed over the ranks", "kernels/tsmttsm.cpp",
             "sum_small(ctx, beta, c, reduce, [&](T factor, T* target, std::int64_t ld) {\n"
             "            kernel(TsmttsmArgs<T>{",
             "sum_small(ctx, beta, c, Reduce::this_rank, [&](T factor, T* target, std::int64_t ld) {\n"
             "            kernel(TsmttsmArgs<T>{", [Test("dense_kernels", "*Tsmttsm*", 2)]),
]

SPARSE = [Test("sparse", "*Market*:*Assemble*")]
READERS = [
    Mutation("duplicates replace instead of adding", "assemble.cpp", "value[last] += entries_[i].second;",
             "value[last] = entries_[i].second;", [Test("sparse", "*")]),
    Mutation("rows with equal neighbours are not finished", "assemble.cpp", "std::greater_equal<>()) == column + count",
             "std::greater<>()) == column + count", [Test("sparse", "*")]),
    Mutation("a column equal to the width is accepted", "assemble.cpp", "if (column < 0 || column >= cols) {",
             "if (column < 0 || column > cols) {", [Test("sparse", "*")]),
    Mutation("the next row begins at the end of the kept entries", "assemble.cpp", "write += kept;\n",
             "write += end - begin;\n", [Test("sparse", "*")]),
    Mutation("the reader accepts values that are not finite", "matrix_market_parser.cpp",
             "if (!std::isfinite(value)) {", "if (std::isnan(value)) {", SPARSE),
    Mutation("an integer file may hold fractions", "matrix_market_parser.cpp",
             "if (whole && wide != std::trunc(wide)) {", "if (whole && wide != wide) {", SPARSE),
    Mutation("skew-symmetric files are read as symmetric", "matrix_market_parser.cpp",
             "header.symmetry = Symmetry::skew_symmetric;", "header.symmetry = Symmetry::symmetric;", SPARSE),
    Mutation("a negative number of entries is accepted", "matrix_market_parser.cpp",
             "if (header.rows < 0 || header.cols < 0 || header.entries < 0) {",
             "if (header.rows < 0 || header.cols < 0) {", SPARSE),
    Mutation("tokens may end with other characters", "matrix_market_parser.cpp",
             "if (code != std::errc() || !ends_token(stop, end)) {\n        throw InputError(std::string(what)",
             "if (code != std::errc()) {\n        throw InputError(std::string(what)", SPARSE),
    Mutation("halo rows are sent by their global number", "halo.cpp", "row - map.first_row();", "row;",
             [Test("sparse", "*SparseMatrix*", 2)]),
    Mutation("rows of the last local column count as boundary", "row_split.cpp",
             "begin, end, [&](std::int64_t column) { return column >= first && column < last; });",
             "begin, end, [&](std::int64_t column) { return column >= first && column + 1 < last; });",
             [Test("sparse", "*", 2)]),
    Mutation("a column of the next rank counts as local", "row_split.cpp",
             "if (column < first || column >= last) {\n            remote.push_back(column);",
             "if (column < first || column > last) {\n            remote.push_back(column);", [Test("sparse", "*", 2)]),
    Mutation("the first ranks do not get the additional rows", "row_map.cpp",
             "base * r + std::min<std::int64_t>(r, extra);", "base * r + (r == ranks ? extra : 0);",
             [Test("blockvec", "*RowMap*", 3)]),
    Mutation("weights of ranks are not made a fraction", "row_map.cpp", "share /= shares.back();",
             "share /= std::max(1.0, shares.back());", [Test("blockvec", "*RowMap*", 3)]),
]

CHECKPOINT = [Test("checkpoint", "*")]
CHECKPOINTS = [
    Mutation("another format is accepted", "manifest.cpp", "if (version != format) {", "if (version < format) {",
             CHECKPOINT),
    Mutation("numbers may be infinite", "manifest.cpp",
             "if (!value.is_number() || !std::isfinite(value.get<double>())) {", "if (!value.is_number()) {",
             CHECKPOINT, equivalent="JSON has no infinite numbers, and the parser refuses those out of range"),
    Mutation("offsets need not begin at 0", "manifest.cpp", "offsets.front() != 0 || !std::is_sorted",
             "offsets.front() < 0 || !std::is_sorted", CHECKPOINT),
    Mutation("a block may have other rows than the files", "manifest.cpp", "if (shape.rows != offsets.back()) {",
             "if (shape.rows > offsets.back()) {", CHECKPOINT),
    Mutation("a missing field of the identity is accepted", "checkpoint_folder.cpp", "if (of != value) {",
             "if (of != value && of != \"unknown\") {", CHECKPOINT),
    Mutation("chebyshev does not save its doubt", "chebyshev_subspace.cpp", "visit(\"doubt\", doubt_);",
             "visit(\"doubt\", reach_);", SAVED_AGAIN),
    Mutation("chebyshev does not restore its reach", "chebyshev_subspace.cpp", "visit(\"reach\", reach_);", "",
             SAVED_AGAIN),
    Mutation("the window filter does not save its count of sweeps", "window_filter.cpp",
             "visit(\"iterations\", iterations_);",
             "std::int64_t sweeps = iterations_;\n        visit(\"iterations\", sweeps);", SAVED_AGAIN),
    Mutation("the block of Ritz vectors forgets its random streams", "ritz_block.cpp",
             "random_streams_ = static_cast<std::uint64_t>(state.whole(\"random_streams\", 0, most_count));",
             "", SAVED_AGAIN),
    Mutation("the block of Ritz vectors forgets that it was refined", "ritz_block.cpp",
             "refined_ = state.flag(\"refined\");", "", SAVED_AGAIN),
    Mutation("Jacobi-Davidson forgets its random streams", "jada_state.cpp",
             "random_streams_ = static_cast<std::uint64_t>(state.whole(\"random_streams\", 0, most_count));", "",
             SAVED_AGAIN),
    Mutation("Jacobi-Davidson forgets its products", "jada_state.cpp",
             "products_ = state.whole(\"products\", 0, most_count);", "", SAVED_AGAIN),
    Mutation("block Lanczos saves its size as that of the last Ritz procedure", "lanczos_recurrence.cpp",
             "number(\"size_at_ritz\", size_at_ritz_);", "number(\"size_at_ritz\", size_);", SAVED_AGAIN),
    Mutation("block Lanczos forgets its norm", "lanczos_recurrence.cpp",
             "norm_ = std::max(norm_, state.number(prefix + \"norm\"));", "", SAVED_AGAIN),
]

LINEAR = [Test("linear", "*Linear*")]
SOLVERS = [
    Mutation("the verdict inside needs no settled residual", "verification.cpp",
             "if (!finite || !(rho <= settled || outside)) {",
             "if (!finite || !(rho <= settled || outside || gap < -resolution)) {",
             [Test("verification", "JudgeComplement*")]),
    Mutation("numbers that are not finite decide the verdict", "verification.cpp",
             "std::isfinite(gap) && std::isfinite(resolution);", "true;", [Test("verification", "JudgeComplement*")]),
    Mutation("the verdict does not ask for the threshold", "verification.cpp",
             "const bool outside = gap > threshold && margin * rho <= gap;", "const bool outside = margin * rho <= gap;",
             [Test("verification", "JudgeComplement*")]),
    Mutation("the resolution without the residual", "verification.cpp", "const double resolution = threshold + rho;",
             "const double resolution = threshold;", [Test("verification", "JudgeComplement*")]),
    Mutation("the filter's recurrence has the wrong sign", "chebyshev_filter.cpp",
             "options.beta = T(static_cast<Real>(-sigma * next));", "options.beta = T(static_cast<Real>(sigma * next));",
             [Test("eigen_matrix", "ChebyshevFilter*")]),
    Mutation("the filter's degree is one too low", "chebyshev_filter.cpp",
             "for (int i = 2; i <= degree; ++i) {", "for (int i = 2; i < degree; ++i) {",
             [Test("eigen_matrix", "ChebyshevFilter*")]),
    Mutation("constraints are not projected out of the filter's later steps", "chebyshev_filter.cpp",
             "        project(pair.before);\n", "", [Test("eigen_matrix", "ChebyshevFilter*")]),
    Mutation("the series of a window without Jackson's damping", "window_series.cpp",
             "return jackson(m, degree + 1); });", "return 1 + 0 * jackson(m, degree + 1); });",
             [Test("eigen_matrix", "*ChebyshevFilter*:*Window*")]),
    Mutation("the moments of odd order lack their correction", "window_series.cpp",
             "moments.push_back(2 * cross - moments[1]);", "moments.push_back(2 * cross);",
             [Test("eigen_matrix", "*ChebyshevFilter*")]),
    Mutation("the error of a count divides by all columns", "window_series.cpp",
             "std::sqrt(variance / std::max(1.0, columns - 1))", "std::sqrt(variance / columns)",
             [Test("eigen_matrix", "*ChebyshevFilter*")]),
    Mutation("cg adds the step to the residual", "block_cg.cpp",
             "tsmm(ctx_, T(-1), products, alpha.view(), T(1), columns_.block(residual, s));",
             "tsmm(ctx_, T(1), products, alpha.view(), T(1), columns_.block(residual, s));", LINEAR),
    Mutation("cg forgets beta at the first step", "block_cg.cpp", "state_[at].beta = first ? 0 : rz / state_[at].rz;",
             "state_[at].beta = first ? 1 : rz / state_[at].rz;", LINEAR,
             equivalent="beta is set again before it is read"),
    Mutation("cg's directions lose their conjugacy", "block_cg.cpp",
             "columns_.preconditioned() ? solve(gamma_factor, rho_gamma) : rho_gamma;", "product(adjoint(rho), gamma);",
             LINEAR),
    Mutation("minres divides by the new length", "block_minres.cpp",
             "return std::pair(-state(j).gamma * inverse(state(j).gamma_old), 1.0);",
             "return std::pair(-state(j).gamma * inverse(state(j).gamma), 1.0);", LINEAR),
    Mutation("tsqr keeps the signs of R", "tsqr.cpp", "whole(i, j) = multiply(conjugate(m(i, i)), r(i, j));",
             "whole(i, j) = multiply(m(i, i), r(i, j));", [Test("orth", "OrthMethods*")]),
    Mutation("svqb without the conjugate", "gram_factors.cpp",
             "step.s_inverse(j, i) = conjugate(eigen.vectors(i, j)) * root;",
             "step.s_inverse(j, i) = eigen.vectors(i, j) * root;", [Test("orth", "*")]),
    Mutation("the skew projection uses the wrong factor", "projected_operator.cpp",
             "tsmm(ctx, T(-1), z_, c.view(), T(1), y);", "tsmm(ctx, T(-1), bp_, c.view(), T(1), y);",
             [Test("verification", "ProjectedOperator*")]),
    Mutation("the shift of a pencil multiplies x instead of B x", "projected_operator.cpp",
             "b_->apply(ctx, from, memory.block(1));", "copy(ctx, BlockView<const T>(from), memory.block(1));",
             [Test("verification", "ProjectedOperator*")]),
]

MUTATIONS = VERIFICATION + KERNELS + READERS + CHECKPOINTS + SOLVERS
