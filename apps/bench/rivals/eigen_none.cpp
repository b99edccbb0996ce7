// SPDX-License-Identifier: BSD-3-Clause
// Replaces eigen.cpp in a build without QUIVER_EIGEN_RIVALS.
#include "apps/bench/rivals/rival.hpp"
#include "blockvec/error.hpp"

namespace quiver::apps::bench {

std::unique_ptr<Rival> make_eigen(Context&) {
    throw UnsupportedError(
        "--rivals eigen: this build has no Eigen rival; configure it with "
        "-D QUIVER_EIGEN_RIVALS=ON and build again");
}

}  // namespace quiver::apps::bench
