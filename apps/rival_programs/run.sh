#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Installs other eigensolvers (Debian packages), builds drivers for those that are found, and compares
# them with quiver on the same matrices, in interleaved runs, on one rank and on two.
#   bash apps/rival_programs/run.sh --quick                 small problems, about a minute
#   bash apps/rival_programs/run.sh --data DIR --json FILE  all problems; DIR holds brack2_lap.mtx.gz
#   bash apps/rival_programs/run.sh spmm [MATRIX...]        instead compares sparse products with PETSc
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../../cmake/setup.sh"

quiver_extra_packages="pkg-config libslepc-real-dev libarpack2-dev libparpack2-dev
    libtrilinos-anasazi-dev libtrilinos-epetra-dev libtrilinos-teuchos-dev libtrilinos-kokkos-dev"
quiver_install_missing
quiver_install_optional
quiver_configure release "$quiver_root/build" -DQUIVER_BUILD_RIVALS=ON ||
    { say "configuration failed"; exit 3; }
say "$(grep -o 'Rivals:.*' "$quiver_root/build/configure.log")"
quiver_build "$quiver_root/build" rivals || { say "the build failed"; exit 3; }
if [ "${1:-}" = spmm ]; then
    shift
    exec "$quiver_root/build/apps/rival_programs/quiver_rival_petsc_spmm" "$@"
fi
exec "$quiver_root/build/apps/rival_programs/quiver_compare" "$@"
