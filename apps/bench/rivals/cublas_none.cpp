// SPDX-License-Identifier: BSD-3-Clause
// Replaces cublas.cpp, cusparse.cpp and cusolver.cpp in a build without CUDA.
#include "apps/bench/rivals/rival.hpp"
#include "blockvec/error.hpp"

namespace quiver::apps::bench {

std::unique_ptr<Rival> make_cublas(Context&) {
    throw UnsupportedError("--rivals cublas: this build has no CUDA");
}

std::unique_ptr<Rival> make_cusparse(Context&) {
    throw UnsupportedError("--rivals cusparse: this build has no CUDA");
}

std::unique_ptr<Rival> make_cusolver(Context&) {
    throw UnsupportedError("--rivals cusolver: this build has no CUDA");
}

}  // namespace quiver::apps::bench
