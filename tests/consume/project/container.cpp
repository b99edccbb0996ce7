// SPDX-License-Identifier: BSD-3-Clause
// Uses only blockvec, the lowest floor.
#include <cstdio>

#include "blockvec/block_vector.hpp"

int main() {
    quiver::Context ctx;
    const quiver::BlockVector<double> x(ctx, quiver::RowMap::by_rows(ctx.comm(), 3), 2);
    std::printf("%lld x %d\n", static_cast<long long>(x.rows()), x.width());
}
