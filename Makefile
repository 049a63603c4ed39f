# The few commands of nibble. Each works on a fresh Debian 12 without any other one before it.
#
#   make demo    set up, build, quantize and verify a real model and show the result
#   make test    everything that has to hold before a change goes in (20 to 30 minutes on two cores, from nothing)
#   make check   everything there is: all sanitizers, clang-tidy over the tree, long fuzzing, the field's own libraries
#   make bench   speed and memory against what this machine can do, and against other quantizers (bench/README.md)
#   make build   build/release/nibble, and beside it the library that `nibble train` opens
JOBS ?= $(shell nproc)
CTEST = ctest --test-dir build/release --output-on-failure

.DEFAULT_GOAL := build
.PHONY: setup build test check demo bench format tidy clean configure gates all

setup:
	@tools/setup.sh

configure: setup
	@cmake --preset release --log-level=WARNING >/dev/null

build: configure
	cmake --build build/release --target nibble nibble_train_library -j $(JOBS)

all: configure
	cmake --build build/release -j $(JOBS)

# Seconds, and no build needed: they run first, and once more below so that the closing line counts them.
gates: configure
	@$(CTEST) -L gate -j $(JOBS)

test: gates all
	@tools/find_nvcc.sh >/dev/null
	@$(CTEST) -C Ci -j $(JOBS)

check: gates all
	@tools/find_nvcc.sh >/dev/null
	@$(CTEST) -C Full -j $(JOBS)

demo: build
	@tools/demo.sh

# BENCH: options of bench/run.py, such as BENCH='--part quantize'.
bench: setup
	@cmake --preset bench --log-level=WARNING >/dev/null
	@tools/run_benchmarks.sh build/bench $(BENCH)

format: setup
	@tools/check_clang_format.sh --fix

tidy: configure
	@tools/tidy.py all

clean:
	rm -rf build
