// SPDX-License-Identifier: BSD-3-Clause
#include "apps/points.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "apps/problem.hpp"
#include "apps/report.hpp"
#include "apps/standard_input.hpp"
#include "apps/suggest.hpp"
#include "blockvec/error.hpp"
#include "blockvec/number_text.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/hdf5_file.hpp"
#include "kernels/random.hpp"

namespace quiver::apps {
namespace {

const std::string generated = "gen:";
const std::string blobs_name = "gen:blobs";

/// The points of "gen:blobs,key=value,...". Throws InputError.
Points parse_blobs(const std::string& spec) {
    const auto refuse = [&](const std::string& text) { throw InputError(spec + ": " + text); };
    Points points;
    points.spec = spec;
    points.source = Points::Source::blobs;
    points.rows = 1000;
    std::int64_t columns = 2;
    if (spec != blobs_name && !spec.starts_with(blobs_name + ",")) {
        refuse("the points that can be generated are " + blobs_name +
               ",n=N,d=D,k=K,spread=S,seed=N");
    }
    const std::vector<std::pair<std::string, std::int64_t*>> whole{
        {"n", &points.rows}, {"d", &columns}, {"k", &points.blobs}, {"seed", &points.seed}};
    for (std::size_t at = blobs_name.size(); at < spec.size();) {
        const std::size_t end = std::min(spec.find(',', at + 1), spec.size());
        const std::string item = spec.substr(at + 1, end - at - 1);
        at = end;
        const std::size_t equals = std::min(item.find('='), item.size());
        const std::string key = item.substr(0, equals);
        const std::string value = item.substr(std::min(equals + 1, item.size()));
        const auto found = std::find_if(whole.begin(), whole.end(),
                                        [&](const auto& each) { return each.first == key; });
        if (key == "spread") {
            if (parse_real(value, points.spread) != std::errc() || !(points.spread >= 0) ||
                !std::isfinite(points.spread)) {
                refuse("spread=" + value + ": a number from 0 on is wanted");
            }
        } else if (found == whole.end()) {
            refuse("blobs has no key '" + key + "'" +
                   suggest(key, {"n", "d", "k", "spread", "seed"}));
        } else if (parse_whole(value, *found->second) != std::errc() ||
                   *found->second < (key == "seed" ? 0 : 1)) {
            refuse(fmt::format("{}={}: a whole number from {} on is wanted", key, value,
                               key == "seed" ? 0 : 1));
        }
    }
    if (columns > std::numeric_limits<int>::max()) {
        refuse(fmt::format("{} columns are too many", columns));
    }
    points.columns = static_cast<int>(columns);
    return points;
}

bool is_matrix_market(const std::string& spec) {
    return spec == standard_input_name || spec.ends_with(".mtx") || spec.ends_with(".mtx.gz");
}

/// Element (row, column) of the blobs: the Box-Muller transform makes the normal distribution.
double blob_element(const Points& points, std::int64_t row, int column) {
    const auto seed = static_cast<std::uint64_t>(points.seed);
    const std::int64_t blob = row % points.blobs;
    const double place = 20 * uniform(seed, -1 - blob, column) - 10;
    const double radius = std::sqrt(-2 * std::log1p(-uniform(seed, row, 2 * std::int64_t{column})));
    const double angle = 2 * std::numbers::pi * uniform(seed, row, 2 * std::int64_t{column} + 1);
    return place + points.spread * radius * std::cos(angle);
}

template <class T>
void read_matrix_points(const Comm& comm, const Points& points, const BlockView<T>& view) {
    const CsrRows<T> rows =
        read_matrix_market<T>(comm, matrix_source(comm, points.spec), Partition::by_rows);
    for (std::int64_t i = 0; i < view.rows; ++i) {
        std::fill_n(view.data + i * view.ld, view.cols, T(0));
        const auto row = static_cast<std::size_t>(i);
        for (auto e = static_cast<std::size_t>(rows.row_start[row]);
             e < static_cast<std::size_t>(rows.row_start[row + 1]); ++e) {
            view(i, static_cast<int>(rows.column[e])) = rows.value[e];
        }
    }
}

}  // namespace

Points inspect_points(const Comm& comm, const std::string& spec, const std::string& dataset) {
    Points points;
    if (is_matrix_market(spec)) {
        const Problem header = inspect_problem(comm, spec);
        comm.agree([&] {
            if (header.complex || header.cols > std::numeric_limits<int>::max()) {
                throw InputError(fmt::format(
                    "{}: {}; points are real numbers, one point a row", spec,
                    header.complex ? "complex numbers" : plural(header.cols, "column")));
            }
        });
        return {spec, "", Points::Source::matrix_market, header.rows,
                static_cast<int>(header.cols)};
    }
    comm.agree([&] {
        if (spec.starts_with(generated)) {
            points = parse_blobs(spec);
            return;
        }
        const BlockFileInfo block = inspect_block_file(spec, dataset);
        if (block.complex) {
            throw InputError(spec + ": complex numbers; points are real numbers, one point a row");
        }
        points = {spec, dataset, Points::Source::hdf5, block.rows, block.cols};
    });
    return points;
}

template <class T>
BlockVector<T> load_points(Context& ctx, const Points& points) {
    if constexpr (sizeof(T) == 2) {
        const BlockVector<float> wide = load_points<float>(ctx, points);
        BlockVector<T> result;
        ctx.comm().agree([&] { result = BlockVector<T>(ctx, wide.row_map(), wide.width()); });
        copy(ctx, wide.view(), result.view());
        return result;
    } else {
        const Comm& comm = ctx.comm();
        if (points.source == Points::Source::hdf5) {
            return read_block_vector<T>(ctx, points.spec, std::nullopt, points.dataset);
        }
        const RowMap map = RowMap::by_rows(comm, points.rows);
        BlockVector<T> host;
        BlockVector<T> block;
        comm.agree([&] {
            block = BlockVector<T>(ctx, map, points.columns);
            host = BlockVector<T>(ctx, map, points.columns, 0, Place::host);
        });
        const BlockView<T> view = host.view();
        if (points.source == Points::Source::matrix_market) {
            read_matrix_points(comm, points, view);
        } else {
#pragma omp parallel for num_threads(ctx.threads())
            for (std::int64_t i = 0; i < view.rows; ++i) {
                for (int p = 0; p < view.cols; ++p) {
                    view(i, p) = static_cast<T>(blob_element(points, map.first_row() + i, p));
                }
            }
        }
        comm.agree([&] { copy(ctx, view, block.view()); });
        return block;
    }
}

template BlockVector<float> load_points(Context&, const Points&);
template BlockVector<double> load_points(Context&, const Points&);
template BlockVector<half_t> load_points(Context&, const Points&);
template BlockVector<bfloat16_t> load_points(Context&, const Points&);

}  // namespace quiver::apps
