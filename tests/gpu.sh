#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# On a machine with a GPU: builds everything in build-cuda/ and runs the tests with label gpu. Arguments
# are passed to ctest.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../cmake/setup.sh"

if ! quiver_has_gpu; then
    say "this machine has no NVIDIA GPU"
    exit 1
fi
build=$quiver_root/build-cuda
quiver_extra_packages=python3-matplotlib
# Packages are installed only if the configuration fails without them, because GPU machines often have
# no network.
if ! quiver_configure cuda "$build"; then
    quiver_install_missing
    quiver_configure cuda "$build" || { say "configuration failed"; exit 1; }
fi
quiver_build "$build" || { say "the build failed"; exit 1; }
"$build/apps/quiver" info devices
cd "$build"
exec ctest --output-on-failure --no-tests=error --label-regex gpu --parallel "$quiver_jobs" "$@"
