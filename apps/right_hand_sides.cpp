// SPDX-License-Identifier: BSD-3-Clause
#include "apps/right_hand_sides.hpp"

#include <vector>

#include <fmt/format.h>

#include "apps/standard_input.hpp"
#include "blockvec/error.hpp"
#include "blockvec/number_text.hpp"
#include "blockvec/scalar_list.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/random.hpp"

namespace quiver::apps {
namespace {

constexpr std::int64_t most_columns = 4096;
const std::string random_prefix = "random:";

}  // namespace

RightHandSides inspect_right_hand_sides(const Comm& comm, const std::string& file,
                                        const std::string& made) {
    RightHandSides sides;
    comm.agree([&] {
        if (file.empty() == made.empty()) {
            throw InputError(file.empty() ? "solve: no right-hand sides: give a file, or --rhs "
                                            "ones or random:N"
                                          : "solve: right-hand sides from " + file +
                                                " and from --rhs " + made + ": omit one of them");
        }
    });
    if (!file.empty()) {
        const Problem header = inspect_problem(comm, file);
        comm.agree([&] {
            if (header.generated) {
                throw InputError(file + ": right-hand sides must be a file; --rhs generates them");
            }
        });
        sides = {file, true, header.complex, header.rows, header.cols};
    } else {
        sides.spec = made;
        comm.agree([&] {
            const bool random = made.starts_with(random_prefix);
            if (made != "ones" && !(random && parse_whole(made.substr(random_prefix.size()),
                                                          sides.columns) == std::errc())) {
                throw InputError(fmt::format("--rhs {}: ones or random:N is wanted", made));
            }
        });
    }
    comm.agree([&] {
        if (sides.columns < 1 || sides.columns > most_columns) {
            throw InputError(fmt::format("{}: {} right-hand sides, 1 to {} can be solved",
                                         sides.spec, sides.columns, most_columns));
        }
    });
    return sides;
}

template <class T>
BlockVector<T> load_right_hand_sides(Context& ctx, const RightHandSides& sides, const RowMap& map,
                                     std::uint64_t seed) {
    const Comm& comm = ctx.comm();
    const int columns = static_cast<int>(sides.columns);
    BlockVector<T> result;
    comm.agree([&] { result = BlockVector<T>(ctx, map, columns); });
    if (!sides.is_file) {
        if (sides.spec == "ones") {
            fill(ctx, T(1), result.view());
        } else {
            fill_random(ctx, seed, result);
        }
        return result;
    }
    const CsrRows<T> rows =
        read_matrix_market<T>(comm, matrix_source(comm, sides.spec), Partition::by_rows);
    comm.agree([&] {
        BlockVector<T> host(ctx, map, columns, 0, Place::host);
        const BlockView<T> view = host.view();
        std::fill_n(view.data, static_cast<std::size_t>(view.rows * view.ld), T(0));
        for (std::int64_t i = 0; i < view.rows; ++i) {
            const auto row = static_cast<std::size_t>(i);
            for (auto e = static_cast<std::size_t>(rows.row_start[row]);
                 e < static_cast<std::size_t>(rows.row_start[row + 1]); ++e) {
                view(i, rows.column[e]) = rows.value[e];
            }
        }
        copy(ctx, view, result.view());
    });
    return result;
}

template <class T>
CsrRows<T> rows_of_block(Context& ctx, const BlockVector<T>& block) {
    CsrRows<T> rows{block.row_map(), block.width(), Symmetry::general, {0}, {}, {}};
    ctx.comm().agree([&] {
        BlockVector<T> host(ctx, block.row_map(), block.width(), 0, Place::host);
        copy(ctx, block.view(), host.view());
        const BlockView<T> view = host.view();
        for (std::int64_t i = 0; i < view.rows; ++i) {
            for (int j = 0; j < view.cols; ++j) {
                rows.column.push_back(j);
                rows.value.push_back(view(i, j));
            }
            rows.row_start.push_back(rows.nonzeros());
        }
    });
    return rows;
}

#define QUIVER_INSTANTIATE(T)                                                                     \
    template BlockVector<T> load_right_hand_sides(Context&, const RightHandSides&, const RowMap&, \
                                                  std::uint64_t);                                 \
    template CsrRows<T> rows_of_block(Context&, const BlockVector<T>&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver::apps
