#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Installs other eigensolvers (Debian packages, and the sources of PRIMME's Python package), builds
# drivers for those that are found, and compares them with quiver on the same matrices, in interleaved
# runs, on one core and on two.
#   bash apps/rival_programs/run.sh --quick                 small problems, about a minute
#   bash apps/rival_programs/run.sh --data DIR --json FILE  all problems; DIR holds brack2_lap.mtx.gz,
#                                                         bcsstk09.mtx.gz and bcsstk13.mtx.gz
#   bash apps/rival_programs/run.sh spmm [MATRIX...]        instead compares sparse products with PETSc
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../../cmake/setup.sh"

quiver_python=yes
quiver_extra_packages="pkg-config libslepc-real-dev libarpack2-dev libparpack2-dev libspectra-dev
    libtrilinos-anasazi-dev libtrilinos-epetra-dev libtrilinos-teuchos-dev libtrilinos-kokkos-dev"
quiver_install_missing
quiver_install_optional
primme=$quiver_root/build/primme
get_primme() {
    [ ! -d "$primme/primme-3.2.3" ] || return 0
    say "downloading PRIMME to $primme"
    mkdir -p "$primme"
    quiver_quietly python3 -m venv "$primme/venv" &&
        quiver_quietly "$primme/venv/bin/python" -m pip download --quiet --disable-pip-version-check \
            --no-binary primme --no-deps --dest "$primme" primme==3.2.3 &&
        tar -xzf "$primme/primme-3.2.3.tar.gz" -C "$primme"
}
get_primme || say "the comparison omits PRIMME"
quiver_configure release "$quiver_root/build" -DQUIVER_BUILD_RIVALS=ON \
    -DQUIVER_PRIMME_SOURCE_DIR="$primme/primme-3.2.3" ||
    { say "configuration failed"; exit 3; }
say "$(grep -o 'Rivals:.*' "$quiver_root/build/configure.log")"
quiver_build "$quiver_root/build" rivals || { say "the build failed"; exit 3; }
if [ "${1:-}" = spmm ]; then
    shift
    exec "$quiver_root/build/apps/rival_programs/quiver_rival_petsc_spmm" "$@"
fi
exec "$quiver_root/build/apps/rival_programs/quiver_compare" "$@"
