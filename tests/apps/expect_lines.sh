#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# expect_lines.sh EXPECTED PRINTED: fails unless every line of file EXPECTED is a line of file PRINTED. In
# EXPECTED, "..." stands for any characters; spaces at the end of a line are ignored.
set -eu
patterns=$(mktemp)
trimmed=$(mktemp)
trap 'rm -f "$patterns" "$trimmed"' EXIT
sed 's/[][\.*^$]/\\&/g; s/\\[.]\\[.]\\[.]/.*/g; s/ *$//' "$1" > "$patterns"
sed 's/ *$//' "$2" > "$trimmed"
while IFS= read -r pattern; do
    if ! grep -qx -e "$pattern" "$trimmed"; then
        echo "no line is: $pattern"
        cat "$2"
        exit 1
    fi
done < "$patterns"
