#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check_ops.sh KREGISTRY LIBCUDA: the shipped ops, on softcuda, give the checkers nothing to find.
set -eu
export KREGISTRY_DRIVER="$2" KREGISTRY_SOFTCUDA_CHECK=all
told=$(mktemp)
trap 'rm -f "$told"' EXIT
verify() {
    op=$1
    shift
    status=0
    "$kregistry" verify "$op" --quick --shift 0 --nvrtc none "$@" >"$told" 2>&1 || status=$?
    if [ $status -ne 0 ] || grep '^softcuda: .*:' "$told" || ! grep -q '^softcuda: 0 findings$' "$told"; then
        echo "check_ops.sh: $op: status $status"
        tail -20 "$told"
        exit 1
    fi
}
kregistry=$1
verify 'add.*' --shape 1000
verify 'conv3x3.*' --shape 33x65
verify 'dot.*' --shape 5000
verify 'fill.*' --shape 1000
verify 'histogram*' --shape 5000
verify 'matmul.*' --shape 33x65x17
verify 'relu.*' --shape 1000
verify 'rgb_to_gray*' --shape 16x17x51x17
verify 'saxpy*' --shape 1000
verify 'sum.*' --shape 5000
verify 'transpose.*' --shape 33x65
