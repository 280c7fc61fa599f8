#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: facts.sh LIBCUDA_FOLDER FACTS_FOLDER AGREEING
# Asks softcuda what a real driver was asked, and compares the answers. Skips (77) where the recorded answers or
# CUDA's headers are not there. AGREEING: how many cases must answer alike.
set -eu
folder=$1 facts=${KREGISTRY_DRIVER_FACTS:-$2} agreeing=$3
cuda=${CUDA_HOME:-/usr/local/cuda}
for file in "$facts/record.sh" "$cuda/include/cuda.h" "$cuda/lib64/stubs/libcuda.so"; do
    [ -e "$file" ] || { echo "skipped: no $file"; exit 77; }
done
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
export LD_LIBRARY_PATH="$folder" KREGISTRY_SOFTCUDA_DEVICES=h200,h200
unset CUDA_VISIBLE_DEVICES

"$facts/record.sh" "$work/answers.tsv"
"${PYTHON:-python3}" "$facts/compare.py" "$facts/h200-driver-580.tsv" "$work/answers.tsv" >"$work/judged" || true
cat "$work/judged"
alike=$(sed -n 's/^\([0-9]*\) of [0-9]* cases.*/\1/p' "$work/judged")
[ "${alike:-0}" -ge "$agreeing" ] || { echo "at least $agreeing were expected"; exit 1; }

# What a fault does to the other device. The assertion's own line goes to standard error.
cd "$facts"
gcc -w -O1 -I"$cuda/include" multi_fault.c -o "$work/multi_fault" -L"$cuda/lib64/stubs" -lcuda
"$work/multi_fault" 2>/dev/null >"$work/fault"
grep -v Assertion multi-fault-h200x2-driver-580.txt | diff - "$work/fault"
