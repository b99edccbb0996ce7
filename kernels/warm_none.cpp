// SPDX-License-Identifier: BSD-3-Clause
// Replaces packs in a build without CUDA.
#include "blockvec/error.hpp"
#include "kernels/warm.hpp"

namespace quiver {
namespace {

[[noreturn]] void refuse_packs() {
    throw UnsupportedError(
        "warm: this build has no CUDA, so it has no kernels to compile ahead of time (build with "
        "CUDA 12.8 or newer)");
}

}  // namespace

PackResult make_pack(const PackOptions&, const std::function<void(int, int)>&) {
    refuse_packs();
}
std::string device_architecture(int) {
    refuse_packs();
}

}  // namespace quiver
