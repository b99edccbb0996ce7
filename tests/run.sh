#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Sets everything up on a fresh machine, builds all in build-ci/ with warnings as errors and runs
# all tests; those labelled gpu only where there is a GPU. Arguments go to ctest.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../cmake/setup.sh"

quiver_extra_packages=python3-matplotlib
quiver_install_missing
# On its own: all else goes on where these two cannot be had.
quiver_extra_packages="clang-format-14 clang-tidy-14" quiver_install_missing
build=$quiver_root/build-ci
quiver_configure ci "$build" || { say "configuration failed"; exit 1; }
quiver_build "$build" || { say "the build failed"; exit 1; }
if quiver_has_gpu; then
    without=()
else
    say "no GPU here: host tests only"
    without=(--label-exclude gpu)
fi
cd "$build"
exec ctest --output-on-failure --no-tests=error --parallel "$quiver_jobs" "${without[@]}" "$@"
