#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# where_ops_run.sh KREGISTRY TEST...: runs the test where the ops of the library can run: images of them are shipped, or there is
# an NVRTC. Elsewhere it skips (77) and says why. A shipped image that does not run is no reason to skip.
set -eu
listed=$("$1" list saxpy)
version=$("$1" version)
shift
case $listed in
*\([1-9]*' images shipped)'*) ;;
*'(0 images shipped)'*)
    case $version in
    *'NVRTC none'*)
        echo 'skipped: the ops cannot run, because no image is shipped and there is no NVRTC'
        exit 77
        ;;
    esac
    ;;
esac
exec "$@"
