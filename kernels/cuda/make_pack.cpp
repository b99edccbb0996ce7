// SPDX-License-Identifier: BSD-3-Clause
// make_pack ARCH FOLDER: the build's own `quiver warm`, for a library without the command.
#include <cstdio>

#include "blockvec/error.hpp"
#include "kernels/warm.hpp"

int main(int count, char** arguments) {
    if (count != 3) {
        std::fprintf(stderr, "usage: make_pack ARCH FOLDER\n");
        return 2;
    }
    try {
        const quiver::PackResult pack =
            quiver::make_pack({.arch = arguments[1], .folder = arguments[2]});
        std::printf("%s: %d kernels, %d compiled\n", pack.file.c_str(), pack.kernels,
                    pack.compiled);
    } catch (const quiver::Error& error) {
        std::fprintf(stderr, "make_pack: %s\n", error.what());
        return 3;
    }
    return 0;
}
