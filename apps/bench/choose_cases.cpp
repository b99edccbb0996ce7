// SPDX-License-Identifier: BSD-3-Clause
#include "apps/bench/choose_cases.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "apps/bench/kernels/kernels.hpp"
#include "apps/bench/words.hpp"
#include "blockvec/error.hpp"

namespace quiver::apps::bench {
namespace {

void check(const CaseOptions& options) {
    if (options.random_shapes < 0 || options.random_shapes > 4096) {
        throw InputError(
            fmt::format("--random-shapes {}: 0 to 4096, since there are only 4096 different shapes",
                        options.random_shapes));
    }
    if (options.kernel != "spmmv" &&
        (!options.matrix.empty() || options.tile != 0 || !options.tilings.empty())) {
        throw InputError("only spmmv takes --matrix, --tile and --tilings");
    }
    if (!options.matrix.empty() && !options.rows.empty()) {
        throw InputError(
            fmt::format("--matrix {}: the file determines the rows; omit --rows", options.matrix));
    }
}

/// The shapes in the order in which they run.
std::vector<Shape> chosen_shapes(const CaseOptions& options) {
    std::vector<Shape> shapes;
    const auto append = [&](const std::vector<Shape>& more) {
        shapes.insert(shapes.end(), more.begin(), more.end());
    };
    if (!options.shapes.empty()) {
        append(parse_shapes(options.shapes));
    }
    if (!options.widths.empty() ||
        (shapes.empty() && !options.gram_schmidt && options.random_shapes == 0)) {
        std::vector<Shape> square =
            parse_widths(options.widths.empty() ? "1,2,4,8,16,32,64" : options.widths);
        order_by_meaning(square);
        append(square);
    }
    if (options.gram_schmidt) {
        append(gram_schmidt_shapes());
    }
    append(random_shapes(options.random_shapes, options.seed));
    return shapes;
}

/// The scalars of --scalar; by default d, or h where the kernels do not take d.
std::string scalars_of(const CaseOptions& options, const std::vector<const Kernel*>& kernels) {
    if (!options.scalar.empty()) {
        return options.scalar;
    }
    return std::any_of(kernels.begin(), kernels.end(),
                       [](const Kernel* kernel) { return kernel->takes(Dtype::d); })
               ? "d"
               : "h";
}

}  // namespace

std::vector<Case> choose_cases(const CaseOptions& options) {
    check(options);
    const std::vector<const Kernel*> kernels = parse_kernels(options.kernel);
    const std::string given = scalars_of(options, kernels);
    const std::vector<Dtype> scalars = parse_scalars(given);
    for (const Kernel* kernel : kernels) {
        if (options.kernel != "all" && std::none_of(scalars.begin(), scalars.end(),
                                                    [&](Dtype s) { return kernel->takes(s); })) {
            throw InputError(fmt::format("--scalar {}: {} takes {}", given, kernel->name(),
                                         kernel->takes(Dtype::h) ? "h, b" : "s, d, c, z"));
        }
    }
    const std::vector<std::int64_t> rows =
        options.rows.empty() ? std::vector<std::int64_t>{0} : parse_rows(options.rows);
    const std::vector<int> gaps = parse_ld_extra(options.ld_extra);
    std::vector<Case> cases;
    const auto add = [&](const Shape& shape, std::int64_t count, int gap) {
        for (const Dtype scalar : scalars) {
            for (const Kernel* kernel : kernels) {
                if (!kernel->takes(scalar)) {
                    continue;
                }
                if (shape.m != shape.n && !kernel->has_two_widths()) {
                    throw InputError(
                        fmt::format("{}x{}: {} has one width", shape.m, shape.n, kernel->name()));
                }
                if (shape.m > kernel->most_columns()) {
                    throw InputError(fmt::format("{}x{}: {} has at most {} columns", shape.m,
                                                 shape.n, kernel->name(), kernel->most_columns()));
                }
                add_once(cases,
                         Case{kernel, scalar, shape, count, gap, options.matrix, 0, options.tile});
            }
        }
    };
    for (const Shape& shape : chosen_shapes(options)) {
        for (const std::int64_t count : rows) {
            for (const int gap : gaps) {
                add(shape, count, gap);
            }
        }
    }
    return cases;
}

void measure_matrix(const Context& ctx, std::vector<Case>& cases) {
    if (cases.empty() || cases.front().matrix.empty()) {
        return;
    }
    const MatrixSize size = size_of_matrix(ctx, cases.front().matrix);
    for (Case& c : cases) {
        if (size.complex && (c.scalar == Dtype::s || c.scalar == Dtype::d)) {
            throw InputError(fmt::format(
                "--matrix {}: the matrix is complex; choose --scalar c or z", c.matrix));
        }
        c.rows = size.rows;
        c.nonzeros = size.nonzeros;
    }
}

void choose_rows(double operand_bytes, std::vector<Case>& cases) {
    for (Case& c : cases) {
        if (!c.matrix.empty()) {
            continue;
        }
        if (c.rows == 0) {
            c.rows = c.kernel->default_rows(c, operand_bytes * c.kernel->size_factor());
        }
        c.rows = c.kernel->round_rows(c.rows);
    }
}

}  // namespace quiver::apps::bench
