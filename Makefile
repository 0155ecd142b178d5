# make serve: install what is missing, build, fetch a small model, serve it on the CPU.
# make test:  install, build and run every test.
# make check-deep: what takes longer (thread sanitizer, long fuzzing). make format: lay the sources out.

# make serve PORT=9000; any other option as its variable: HOLMES_CONTEXT=2048 make serve (holmes serve --help).
PORT ?=
FUZZ_SECONDS ?= 10
JOBS ?= $(shell nproc)

.PHONY: serve test check-deep bench build format format-check tidy

serve: build
	@tools/setup/python_env.sh serve
	@# A model this small loses the thread when tokens are drawn freely; requests may still ask for it.
	@model=$$(.venv/bin/python tools/models/fetch_smollm2.py) && \
	  HOLMES_MODEL_NAME="$${HOLMES_MODEL_NAME:-SmolLM2-135M-Instruct}" HOLMES_TEMPERATURE="$${HOLMES_TEMPERATURE:-0}" \
	  HOLMES_EXAMPLE_PYTHON="$${HOLMES_EXAMPLE_PYTHON:-.venv/bin/python}" \
	  exec build/serve/src/app/holmes serve "$$model" $(if $(PORT),--port $(PORT))

# Ninja does nothing where nothing has changed; configuring runs only without a build folder.
build:
	@tools/setup/install_packages.sh build
	@[ -f build/serve/build.ninja ] || { echo "holmes: configuring the build"; cmake --preset serve -DHOLMES_CUDA=$$(tools/setup/cuda_wanted.sh) >build-configure.log 2>&1 || { cat build-configure.log >&2; exit 1; }; rm -f build-configure.log; }
	@cmake --build --preset serve -j $(JOBS)

test:
	@tools/test/run_all.sh

check-deep:
	@tools/test/run_deep.sh

# The kernels' own times; bench/peers/ holds what runs Holmes beside others.
bench:
	@tools/setup/install_packages.sh build bench
	@cmake --preset bench >/dev/null
	@cmake --build --preset bench -j $(JOBS)
	@build/bench/bench/kernels/kernels_bench

format:
	@git ls-files 'src/*.h' 'src/*.cc' 'tests/*.h' 'tests/*.cc' 'bench/*.cc' 'fuzz/*.cc' | xargs clang-format-14 -i

format-check:
	@git ls-files 'src/*.h' 'src/*.cc' 'tests/*.h' 'tests/*.cc' 'bench/*.cc' 'fuzz/*.cc' | xargs clang-format-14 --dry-run -Werror

# make tidy TIDY="src/app src/hub" looks at less.
tidy:
	@tools/test/run_tidy.sh $(TIDY)
