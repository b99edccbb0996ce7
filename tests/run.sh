#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Installs missing packages, builds everything in build-ci/ with warnings as errors and runs all tests;
# tests with label gpu run only on a machine with a GPU. Arguments are passed to ctest. Tests with label
# nightly, which repeat others with more shapes and numbers of ranks, run only on request: -L nightly.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../cmake/setup.sh"

quiver_extra_packages=python3-matplotlib
quiver_python=yes
quiver_install_missing
# These are optional and installed separately, so that a failure does not affect the others.
quiver_extra_packages="clang-format-14 clang-tidy-14" quiver_install_missing
quiver_extra_packages=gfortran quiver_install_missing
quiver_install_optional
build=$quiver_root/build-ci
if quiver_python_environment "$build/python_environment"; then
    python=(-DQUIVER_PYTHON=ON "-DPython_EXECUTABLE=$build/python_environment/bin/python")
else
    say "NO PYTHON TESTS: the virtual environment could not be made (see above)"
    python=(-DQUIVER_PYTHON=OFF)
fi
quiver_configure ci "$build" "${python[@]}" || { say "configuration failed"; exit 1; }
quiver_build "$build" || { say "the build failed"; exit 1; }
without=nightly
if [[ " $* " == *nightly* ]]; then
    without=none
fi
if ! quiver_has_gpu; then
    say "no GPU here: host tests only"
    without+="|gpu"
fi
# Without this setting every process of Open MPI looks for networks, which takes 0.2 s.
export OMPI_MCA_pml=${OMPI_MCA_pml:-ob1}
cd "$build"
exec ctest --output-on-failure --no-tests=error --parallel $((2 * quiver_jobs)) --label-exclude "^($without)\$" "$@"
