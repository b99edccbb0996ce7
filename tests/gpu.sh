#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# On a machine with a GPU: builds in build-cuda/ what the tests with label gpu need, and runs them.
# Arguments are passed to ctest.
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
options=(-D QUIVER_EIGEN_RIVALS=OFF)
# The machine's own Python may have cupy and torch, which the tests of the Python package use if present.
if python3 -c "import nanobind, numpy, pytest, scipy" 2>/dev/null; then
    options+=(-D QUIVER_PYTHON=ON -D "Python_EXECUTABLE=$(command -v python3)")
else
    say "NO PYTHON TESTS: python3 needs nanobind, numpy, pytest and scipy"
    options+=(-D QUIVER_PYTHON=OFF)
fi
if ! quiver_configure cuda "$build" "${options[@]}"; then
    quiver_install_missing
    quiver_install_optional
    quiver_configure cuda "$build" "${options[@]}" || { say "configuration failed"; exit 1; }
fi
quiver_build "$build" quiver_gpu_tests || { say "the build failed"; exit 1; }
"$build/apps/quiver" info devices
# Without MPS the GPU serves one process at a time, and the short kernels of all tests wait for one another.
jobs=$((2 * quiver_jobs))
if command -v nvidia-cuda-mps-control > /dev/null; then
    export CUDA_MPS_PIPE_DIRECTORY=$build/mps CUDA_MPS_LOG_DIRECTORY=$build/mps
    mkdir -p "$build/mps"
    trap 'echo quit | nvidia-cuda-mps-control > /dev/null 2>&1 || true' EXIT
    if nvidia-cuda-mps-control -d && "$build/apps/quiver" eigs gen:laplace3d,nx=8 -k 2 --device cuda > /dev/null; then
        jobs=$((5 * quiver_jobs))
    else
        say "NO MPS: the tests take longer"
        echo quit | nvidia-cuda-mps-control > /dev/null 2>&1 || true
        unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
    fi
fi
cd "$build"
if ctest --output-on-failure --no-tests=error --label-regex gpu --parallel "$jobs" "$@"; then
    exit 0
fi
# With MPS an illegal access of one test ends the kernels of all tests that run at that time. The tests that fail
# alone too are those with a defect.
if [ -n "${CUDA_MPS_PIPE_DIRECTORY:-}" ]; then
    say "the failed tests again, without MPS"
    echo quit | nvidia-cuda-mps-control > /dev/null 2>&1 || true
    unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
    ctest --output-on-failure --rerun-failed --parallel 4
fi
exit 1
