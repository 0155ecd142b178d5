#!/usr/bin/env bash
# make check-deep: thread sanitizer over everything that has threads, address sanitizer over what
# make test leaves out, then ten minutes per fuzz target.
set -euo pipefail
cd "$(dirname "$0")/../.."
tools/setup/install_packages.sh build test
cmake --preset tsan >/dev/null
threaded=()
for folder in base kernels kvcache sched exec engine net server; do
  [ -f "tests/$folder/CMakeLists.txt" ] && threaded+=("$folder")
done
cmake --build build/tsan -j "${JOBS:-$(nproc)}" --target "${threaded[@]/%/_test}"
for folder in "${threaded[@]}"; do
  echo "thread sanitizer: $folder"
  "build/tsan/tests/$folder/${folder}_test" --gtest_brief=1
done

cmake --preset asan >/dev/null
cmake --build build/asan -j "${JOBS:-$(nproc)}" --target kernels_test exec_test engine_test server_test app_test
for folder in kernels exec engine server app; do
  echo "address sanitizer: $folder"
  "build/asan/tests/$folder/${folder}_test" --gtest_brief=1
done
tools/test/run_fuzzers.sh "${FUZZ_SECONDS:-600}"
tools/test/run_tidy.sh
