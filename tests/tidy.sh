#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# clang-format and clang-tidy over the tree, or over the files given; ends with status 1 where one
# of them finds something. QUIVER_BUILD names a configured build folder (build/). Takes some half
# an hour of one core for all, so it is no part of the tests.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../cmake/setup.sh"

cd "$quiver_root"
build=${QUIVER_BUILD:-build}
tidy=$(command -v clang-tidy-14 || command -v clang-tidy)
format=$(command -v clang-format-14 || command -v clang-format)
mapfile -t formatted < <(git ls-files '*.cpp' '*.hpp' '*.cuh')
"$format" --dry-run --Werror "${formatted[@]}"

cmake -S . -B "$build" -DCMAKE_EXPORT_COMPILE_COMMANDS=ON >/dev/null
if [ $# -gt 0 ]; then
    files=("$@")
else
    # Files that this configuration leaves out have no command to compile them.
    mapfile -t files < <(git ls-files '*.cpp' | grep -F -f <(
        sed -n "s|^ *\"file\": \"$quiver_root/\(.*\)\".*|\1|p" "$build/compile_commands.json") -x)
fi
# The host kernels are written for g++, which checks vectors in assembler where they are inlined.
as_gxx=(-include"$quiver_root/tests/tidy.hpp" -Wno-unknown-warning-option)
[ "$(uname -m)" != x86_64 ] || as_gxx+=(-mavx512f)
say "clang-tidy of ${#files[@]} files with $quiver_jobs at a time"
printf '%s\0' "${files[@]}" | xargs -0 -n 1 -P "$quiver_jobs" "$tidy" -p "$build" --quiet \
    --warnings-as-errors='*' "${as_gxx[@]/#/--extra-arg=}" \
    2> >(grep -v -E '^[0-9]+ warnings? generated\.$' >&2)
