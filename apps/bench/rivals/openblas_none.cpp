// SPDX-License-Identifier: BSD-3-Clause
// Replaces openblas.cpp in a build without OpenBLAS.
#include "apps/bench/rivals/rival.hpp"
#include "blockvec/error.hpp"

namespace quiver::apps::bench {

std::unique_ptr<Rival> make_openblas(Context&) {
    throw UnsupportedError(
        "--rivals openblas: this build has no OpenBLAS; install libopenblas-openmp-dev and build "
        "again");
}

}  // namespace quiver::apps::bench
