#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs clang-format and clang-tidy; the exit status is not 0 if one of them finds something.
#   tidy.sh            the whole tree: takes half an hour of one core, so no test runs it
#   tidy.sh FILE...    clang-format of the whole tree, clang-tidy of these files only
#   tidy.sh --changed  the files changed since the branch left origin/main, or in the last commit if
#                      there is no such branch point, and uncommitted changes. The test tidy_changed
#                      runs this form. It ends after QUIVER_TIDY_SECONDS (50) and names the files that
#                      it did not reach; status 77 (skipped) if tools, history or build are missing.
# QUIVER_BUILD names a configured build folder (build/).
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../cmake/setup.sh"

cd "$quiver_root"
build=${QUIVER_BUILD:-build}
seconds=${QUIVER_TIDY_SECONDS:-50}
tidy=$(command -v clang-tidy-14 || command -v clang-tidy || true)
format=$(command -v clang-format-14 || command -v clang-format || true)

skip() {
    say "clang-tidy skipped: $*"
    exit 77
}

# Prints the commit with which the tree is compared. HEAD is no candidate: it would hide all committed
# changes.
base_commit() {
    local base
    base=$(git merge-base HEAD origin/main 2>/dev/null || true)
    if [ -n "$base" ] && [ "$base" != "$(git rev-parse HEAD)" ]; then
        echo "$base"
    else
        git rev-parse --verify --quiet HEAD^
    fi
}

# changed_since COMMIT PATTERN...: prints the changed files that match, those with most new lines first.
changed_since() {
    local base=$1
    shift
    {
        git diff --numstat --no-renames --diff-filter=d "$base" -- "$@"
        git ls-files --others --exclude-standard -- "$@" | xargs -r -d '\n' wc -l |
            awk '$2 != "total" {print $1 "\t0\t" $2}'
    } | sort -k 1,1nr | cut -f 3
}

# Prints the sources that this configuration compiles.
compiled_sources() {
    git ls-files --cached --others --exclude-standard '*.cpp' | grep -F -x -f <(
        sed -n "s#^ *\"file\": \"\($quiver_root\|$(pwd -P)\)/\(.*\)\".*#\2#p" \
            "$build/compile_commands.json") || true
}

# Reads changed files and prints the sources to check: a source itself; for a header, the source of the
# same name or else one that includes it.
sources_to_check() {
    local file source
    while read -r file; do
        case $file in
        *.cpp) source=$file ;;
        *) source=$({ echo "${file%.hpp}.cpp"; git grep -l -F "#include \"$file\"" -- '*.cpp'; } |
            grep -F -x -m 1 -f <(echo "$compiled") || true) ;;
        esac
        grep -F -x "${source:-none}" <<<"$compiled" || true
    done | awk '!seen[$0]++'
}

# Runs clang-tidy on one file until the time limit; a file that was not finished is added to "$late".
check_one() {
    local left=$((deadline - $(date +%s))) status=0 given
    mapfile -t given <<<"$arguments"
    if [ "$left" -gt 0 ]; then
        timeout "$left" "$tidy" -p "$build" --quiet --warnings-as-errors='*' "${given[@]}" "$1" ||
            status=$?
    else
        status=124
    fi
    [ "$status" -ne 124 ] || { echo "$1" >>"$late"; return 0; }
    return "$status"
}

if [ "${1:-}" = --changed ]; then
    [[ $tidy$format == *-14*-14 ]] || skip "clang-tidy-14 and clang-format-14 are not installed"
    git rev-parse --is-inside-work-tree >/dev/null 2>&1 || skip "this folder is not a git work tree"
    # The build folder of the tests is a unity build: its commands compile several files at once.
    build=$build/tidy
    cmake --preset ci -B "$build" -DCMAKE_UNITY_BUILD=OFF -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON >/dev/null ||
        skip "$build cannot be configured"
    base=$(base_commit) ||
        skip "the history ends with this commit; git fetch --deepen=1 fetches its parent"
    compiled=$(compiled_sources)
    [ -n "$compiled" ] || skip "$build compiles no source of this folder"
    mapfile -t formatted < <(changed_since "$base" '*.cpp' '*.hpp' '*.cuh')
    mapfile -t files < <(changed_since "$base" '*.cpp' '*.hpp' | sources_to_check)
    what="changes since $(git log -1 --format=%h "$base")"
else
    seconds=1000000
    [ -n "$tidy" ] && [ -n "$format" ] || { say "please install: clang-tidy-14 clang-format-14"; exit 1; }
    cmake -S . -B "$build" -DCMAKE_EXPORT_COMPILE_COMMANDS=ON -DCMAKE_UNITY_BUILD=OFF >/dev/null
    mapfile -t formatted < <(git ls-files '*.cpp' '*.hpp' '*.cuh')
    files=("$@")
    [ $# -gt 0 ] || mapfile -t files < <(compiled_sources)
    what="files"
fi
[ ${#formatted[@]} -eq 0 ] || "$format" --dry-run --Werror "${formatted[@]}"
[ ${#files[@]} -gt 0 ] || { say "clang-tidy: no $what"; exit 0; }

# The host kernels are written for g++, which checks vector operands of inline assembly only after
# inlining; clang needs the options below.
arguments="--extra-arg=-include$quiver_root/tests/tidy.hpp
--extra-arg=-Wno-unknown-warning-option
--extra-arg=-Wno-sign-conversion"
[ "$(uname -m)" != x86_64 ] || arguments+=$'\n'--extra-arg=-mavx512f
late=$(mktemp)
trap 'rm -f "$late"' EXIT
deadline=$(($(date +%s) + seconds))
export -f check_one
export arguments build deadline late tidy
say "clang-tidy: $what, ${#files[@]} sources with $quiver_jobs at a time"
status=0
printf '%s\0' "${files[@]}" | xargs -0 -n 1 -P "$quiver_jobs" bash -c 'check_one "$1"' check \
    2> >(grep -v -E '^[0-9]+ warnings? generated\.$' >&2) || status=1
if [ -s "$late" ]; then
    say "not checked within $seconds s: $(sort "$late" | xargs)"
fi
exit "$status"
