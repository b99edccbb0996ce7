#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Installs missing packages, builds the command in build/ and runs it.
#   bash apps/run.sh                        solves an eigenproblem with known eigenvalues
#   bash apps/run.sh eigs my.mtx -k 20      runs any command line of quiver
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../cmake/setup.sh"

quiver_install_missing
quiver_install_optional
quiver_configure release "$quiver_root/build" || { say "configuration failed"; exit 3; }
quiver_build "$quiver_root/build" quiver || { say "the build failed"; exit 3; }
quiver=$quiver_root/build/apps/quiver
say "the command is $quiver"
if [ $# -eq 0 ]; then
    set -- eigs gen:laplace3d,nx=20,ny=20,nz=20 -k 10 --which smallest
    say "quiver $*"
fi
exec "$quiver" "$@"
