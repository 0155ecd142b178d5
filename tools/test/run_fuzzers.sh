#!/usr/bin/env bash
# Builds every fuzz target and runs each for the given seconds on its corpus, two at a time: run_fuzzers.sh SECONDS
set -euo pipefail
cd "$(dirname "$0")/../.."
export seconds=$1
cmake --preset fuzz >/dev/null
cmake --build build/fuzz --target fuzz/all -j "${JOBS:-$(nproc)}"

# One target; its log and the input it failed on stay only where it failed.
run_one() {
  local target=$1 name work
  name=$(basename "$target" _fuzz)
  work=$(mktemp -d)
  local seeds=()
  [ -d "fuzz/corpus/$name" ] && seeds=("fuzz/corpus/$name")
  if ! "$target" -max_total_time="$seconds" -max_len=65536 -timeout=10 -rss_limit_mb=2048 -print_final_stats=0 -verbosity=0 \
      -artifact_prefix="$work/failed-" "$work" "${seeds[@]}" >"$work.log" 2>&1; then
    { cat "$work.log"; echo "fuzzing $name failed; the input is in $work"; } >&2
    return 255  # xargs starts no further target
  fi
  rm -rf "$work" "$work.log"
  echo "fuzzed $name for $seconds s"
}
export -f run_one

find build/fuzz/fuzz -maxdepth 1 -name '*_fuzz' -type f -executable | sort |
  xargs -P "${FUZZ_AT_ONCE:-2}" -I{} bash -euo pipefail -c 'run_one "$1"' run_one {}
