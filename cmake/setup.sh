# SPDX-License-Identifier: BSD-3-Clause
# Functions for apps/run.sh, apps/rival_programs/run.sh, tests/run.sh, tests/gpu.sh and tests/tidy.sh,
# which source this file: packages, configuration, quiet builds. All messages go to stderr, so that
# stdout contains only the output of the command.
quiver_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
quiver_jobs=$(nproc 2>/dev/null || echo 2)

say() { printf '== %s\n' "$*" >&2; }

# Prints the missing packages of Debian 12 and Ubuntu 24.04, one per line. A tool on the PATH is not
# missing, even if no package installed it.
quiver_missing_packages() {
    local package
    command -v g++ >/dev/null || echo g++
    command -v cmake >/dev/null || echo cmake
    command -v ninja >/dev/null || echo ninja-build
    command -v mpirun >/dev/null || echo openmpi-bin
    command -v python3 >/dev/null || echo python3
    [ -z "${quiver_python:-}" ] || python3 -c "import ensurepip, venv" 2>/dev/null || echo python3-venv
    [ -z "${quiver_python:-}" ] ||
        python3 -c "import os, sysconfig; os.stat(sysconfig.get_path('include') + '/Python.h')" 2>/dev/null || echo python3-dev
    for package in libopenmpi-dev libeigen3-dev libcli11-dev libfmt-dev nlohmann-json3-dev \
        libgtest-dev zlib1g-dev libhdf5-dev libopenblas-openmp-dev ${quiver_extra_packages:-}; do
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] ||
            echo "$package"
    done
}

# Installs the missing packages if this user may use apt-get as root. Otherwise prints their names and
# returns, because CMake decides which packages are required. Never installs a CUDA toolkit.
quiver_install_missing() {
    local missing as_root=""
    missing=$(quiver_missing_packages | xargs)
    [ -n "$missing" ] || return 0
    if [ "$(id -u)" -ne 0 ]; then
        as_root=sudo
    fi
    if ! command -v apt-get >/dev/null ||
        { [ -n "$as_root" ] && ! sudo -n true 2>/dev/null && ! { [ -t 0 ] && sudo -v; }; }; then
        say "please install: $missing"
        return 0
    fi
    say "installing: $missing"
    # shellcheck disable=SC2086  # a list of words
    if ! quiver_quietly $as_root apt-get update -q ||
        ! quiver_quietly $as_root env DEBIAN_FRONTEND=noninteractive \
            apt-get install -q -y --no-install-recommends $missing; then
        say "apt-get failed; please install: $missing"
    fi
}

# Installs optional packages in a separate call, so that a failure does not affect the required ones.
quiver_install_optional() {
    quiver_extra_packages="libmumps-dev libscotch-dev" quiver_install_missing
}

# Runs a command; shows the last 100 lines of its output only if it fails.
quiver_quietly() {
    local log status=0
    log=$(mktemp)
    "$@" >"$log" 2>&1 || status=$?
    [ "$status" -eq 0 ] || tail -n 100 "$log" >&2
    rm -f "$log"
    return "$status"
}

# quiver_configure PRESET DIR [cmake arguments]: configures, and prints the summary line of the build.
quiver_configure() {
    local preset=$1 build=$2
    shift 2
    mkdir -p "$build"
    if ! (cd "$quiver_root" && cmake --preset "$preset" "$@") >"$build/configure.log" 2>&1; then
        cat "$build/configure.log" >&2
        return 1
    fi
    say "$(grep -o 'quiver [0-9.]*:.*' "$build/configure.log")"
}

# quiver_build DIR [targets]: builds, and shows output only if the build fails.
quiver_build() {
    local build=$1
    shift
    say "building in $build ($quiver_jobs jobs); the command takes about 8 minutes of one core, the tests 13 more"
    quiver_quietly cmake --build "$build" --parallel "$quiver_jobs" ${1:+--target "$@"}
}

# quiver_python_environment DIR: makes a virtual environment in DIR with the packages that the
# Python package and its tests need; a no-op if it is complete. On failure it prints the reason.
quiver_python_environment() {
    local folder=$1 packages="numpy scipy nanobind>=3 scikit-build-core pytest mypy tqdm mpi4py scikit-learn"
    if [ "$(cat "$folder/quiver-packages" 2>/dev/null)" = "$packages" ]; then
        return 0
    fi
    say "installing $packages in $folder"
    # shellcheck disable=SC2086  # a list of words
    quiver_quietly python3 -m venv "$folder" &&
        quiver_quietly "$folder/bin/python" -m pip install --quiet --disable-pip-version-check $packages &&
        echo "$packages" >"$folder/quiver-packages"
}

# True if the NVIDIA driver finds a GPU.
quiver_has_gpu() {
    [ -e /dev/nvidiactl ] || { command -v nvidia-smi >/dev/null && nvidia-smi -L >/dev/null 2>&1; }
}
