#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Builds a web site of these pages and of the API reference in build-docs/site, by MkDocs Material (pinned packages in a
# virtual environment) and Doxygen. A warning, such as a dead link, fails the build.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$root/build-docs
say() { printf '== %s\n' "$*" >&2; }

# missing TOOL PACKAGE: if the tool is missing, installs its Debian package (as root) or prints its name and ends.
missing() {
    command -v "$1" >/dev/null && return 0
    if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
        say "installing $2"
        { apt-get install -q -y --no-install-recommends "$2" ||
            { apt-get update -q && apt-get install -q -y --no-install-recommends "$2"; }; } >"$build/apt.log" 2>&1 ||
            { cat "$build/apt.log" >&2; exit 1; }
    else
        say "please install: $2"
        exit 1
    fi
}

mkdir -p "$build"
missing cmake cmake
missing doxygen doxygen
missing python3 python3
python3 -c 'import ensurepip' 2>/dev/null || { say "please install: python3-venv"; exit 1; }
if ! cmp -s "$root/docs/requirements.txt" "$build/venv/requirements.txt"; then
    say "installing MkDocs Material in $build/venv"
    rm -rf "$build/venv"
    python3 -m venv "$build/venv"
    "$build/venv/bin/pip" install -q --disable-pip-version-check -r "$root/docs/requirements.txt"
    cp "$root/docs/requirements.txt" "$build/venv/requirements.txt"
fi

say "API reference"
cmake -D OUTPUT="$build/doxygen" -P "$root/cmake/QuiverDoxygen.cmake"
doxygen "$build/doxygen/Doxyfile"

# The first page of the site is README.md. MkDocs needs all pages in one folder, so this page and the other pages of the
# root are copied beside those of docs/.
say "site"
rm -rf "$build/pages" "$build/site"
mkdir -p "$build/pages"
cp -r "$root/docs/." "$build/pages/"
for page in "$root"/*.md; do
    sed 's#](docs/#](#g; s#](README\.md#](index.md#g' "$page" >"$build/pages/$(basename "$page")"
done
mv "$build/pages/README.md" "$build/pages/index.md"
sed -i 's#](\.\./README\.md#](index.md#g; s#](\.\./#](#g' "$build/pages"/*.md
cp "$root/LICENSE" "$build/pages/LICENSE"
cp -r "$root/examples" "$build/pages/examples"
sed -i 's#](\.\./docs/#](../#g; s#](\.\./README\.md#](../index.md#g' "$build/pages/examples"/*.md
mv "$build/pages/mkdocs.yml" "$build/mkdocs.yml"
rm -f "$build/pages"/{Doxyfile.in,requirements.txt,build.sh}
cp -r "$build/doxygen/html" "$build/pages/reference"
# No --quiet: MkDocs would then not count warnings, and --strict would not fail.
NO_MKDOCS_2_WARNING=1 "$build/venv/bin/mkdocs" build --strict --config-file "$build/mkdocs.yml"
say "the site is $build/site/index.html"
