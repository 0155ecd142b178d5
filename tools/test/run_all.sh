#!/usr/bin/env bash
# make test: every test on this machine, from a clean checkout, without a GPU.
set -euo pipefail
cd "$(dirname "$0")/../.."
jobs=${JOBS:-$(nproc)}
step() { printf '\n== %s (%s s so far)\n' "$1" "$SECONDS"; }

step "Installing what is missing"
tools/setup/install_packages.sh build test
tools/setup/python_env.sh test
HOLMES_TEST_MODEL=$(.venv/bin/python tools/models/fetch_smollm2.py)
export HOLMES_TEST_MODEL

step "The house: layers, names, layout"
.venv/bin/python -m pytest -q -p no:cacheprovider tests/house
make -s format-check

step "Release build"
cmake --preset release >/dev/null
cmake --build --preset release -j "$jobs"
step "Release tests"
ctest --test-dir build/release --output-on-failure

step "Address and undefined-behaviour sanitizers: parsers of outside bytes, KV, scheduler"
cmake --preset asan >/dev/null
sanitized=()
for folder in base tensor text weights kvcache sched net api; do
  [ -f "tests/$folder/CMakeLists.txt" ] && sanitized+=("$folder")
done
cmake --build build/asan -j "$jobs" --target "${sanitized[@]/%/_test}"
for folder in "${sanitized[@]}"; do
  "build/asan/tests/$folder/${folder}_test" --gtest_brief=1
done

step "Fuzzing: ten seconds per parser of outside bytes"
tools/test/run_fuzzers.sh "${FUZZ_SECONDS:-10}"

step "The program: HTTP with the official client, terminal"
.venv/bin/python -m pytest -q -p no:cacheprovider tests/http tests/terminal
step "Done"
