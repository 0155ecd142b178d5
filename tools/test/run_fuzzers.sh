#!/usr/bin/env bash
# Builds every fuzz target and runs each for the given seconds on its corpus: run_fuzzers.sh SECONDS
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=$1
cmake --preset fuzz >/dev/null
cmake --build --preset fuzz -j "${JOBS:-$(nproc)}"
for target in build/fuzz/fuzz/*_fuzz; do
  [ -x "$target" ] || continue
  name=$(basename "$target" _fuzz)
  work=$(mktemp -d)
  seeds=()
  [ -d "fuzz/corpus/$name" ] && seeds=("fuzz/corpus/$name")
  echo "fuzzing $name"
  if ! "$target" -max_total_time="$seconds" -max_len=65536 -timeout=10 -rss_limit_mb=2048 -print_final_stats=0 -verbosity=0 \
      -artifact_prefix="$work/" "$work" "${seeds[@]}" >"$work.log" 2>&1; then
    cat "$work.log"
    echo "fuzzing $name failed; the input is in $work" >&2
    exit 1
  fi
  rm -rf "$work" "$work.log"
done
