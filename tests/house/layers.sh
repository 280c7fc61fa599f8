#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# layers.sh ROOT [RULES]: every #include of ROOT's sources against layers.txt; and no header of CUDA's anywhere.
set -eu
root=$1
rules=${2:-$root/tests/house/layers.txt}
[ -r "$rules" ] || { echo "no $rules"; exit 1; }
cd "$root"
folders=$(awk '!/^#/ && NF { sub("/.*", "", $1); print $1 }' "$rules" | sort -u)
# shellcheck disable=SC2016,SC2086
find $folders -name '*.[chS]' -o -name '*.def' -o -name '*.cu' | sort | xargs awk -v rules="$rules" '
function begins(path, name) { return path == name || index(path, name "/") == 1 }
function folder(path) { sub("/[^/]*$", "", path); return path }
function complain(what) { print FILENAME ":" FNR ": " what; bad = 1 }

BEGIN {
    while ((getline line < rules) > 0)
        if (line !~ /^#/ && (n = split(line, word, " "))) {
            allowed[word[1]] = ""
            for (i = 2; i <= n; i++)
                allowed[word[1]] = allowed[word[1]] " " word[i]
        }
}
FNR == 1 {
    rule = ""
    for (name in allowed)
        if (begins(FILENAME, name) && length(name) > length(rule))
            rule = name
    if (rule == "")
        complain("no rule for this folder in " rules)
}
/^[ \t]*#[ \t]*include/ {
    header = $0
    sub("^[^<\"]*", "", header)
    sub("[>\"][^>\"]*$", "", header)
    system_header = header ~ /^</
    header = substr(header, 2)
    if (system_header && header !~ /^kregistry\//) {
        if (header ~ /^(cuda|nvrtc|nvJitLink|cublas|cooperative_groups|mma)/ && FILENAME !~ /\.cu$/)
            complain("<" header "> is a header of CUDA: write what is needed in abi/")
        next
    }
    if (header ~ /^kregistry\//)
        header = "include/" header
    else if (header !~ /\//)
        next # beside the file
    if (folder(header) == folder(FILENAME))
        next
    n = split(allowed[rule], word, " ")
    for (i = 1; i <= n; i++)
        if (begins(header, word[i]))
            next
    complain(rule " must not include " header)
}
END { exit bad }
'
