#!/usr/bin/env bash
# clang-tidy over the sources below the given folders (all of src without any): run_tidy.sh [src/app ...]
set -euo pipefail
cd "$(dirname "$0")/../.."
tools/setup/install_packages.sh build test deep
cmake --preset release >/dev/null
[ $# -gt 0 ] || set -- src
# g++'s own warning options are not clang's; generated headers are not needed, so nothing has to be built before.
git ls-files "${@/%//*.cc}" |
  xargs -P "${JOBS:-$(nproc)}" -I{} sh -c 'clang-tidy-14 --quiet -p build/release --extra-arg=-Wno-unknown-warning-option "$1" 2>/dev/null || { echo "in $1" >&2; exit 1; }' sh {}
echo "clang-tidy found nothing in $*"
