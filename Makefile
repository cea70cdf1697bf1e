# `make help` lists the targets; `make` is what CI runs. Needed: Go 1.26, git and make. With a C compiler (gcc) the
# tests run under the race detector and the build has cgo; without one both are left out.

BENCH     ?= .
BENCHTIME ?= 0.5s
FUZZTIME  ?= 20s
PAIRS     ?= 60
LENGTH    ?= 1m
TIMEOUT   ?= 5m

# go-nvml binds deprecated functions too, and its header warns of each.
export CGO_CFLAGS ?= -O2 -g -Wno-deprecated-declarations

LINT = go tool -modfile=internal/tools/go.mod golangci-lint
OCB  = go tool -modfile=internal/tools/go.mod builder

# Go turns cgo off by itself where it finds no C compiler, and the race detector needs cgo.
RACE = $(if $(filter 1,$(shell go env CGO_ENABLED)),-race)

# What says of itself that it is generated, with its contents' checksums.
GENERATED = grep -rliE '^(//|\#|<!--) (code )?generated .*do not edit' --exclude-dir=.git --exclude-dir=build . | sort | xargs cksum

.PHONY: all help generate generate-check lint test build collector end-to-end fakenvml bench overhead fuzz demo install clean
.NOTPARALLEL:

all: generate-check lint test build ## Check and build everything, as CI does (the default)

help: ## List these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-16s%s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

generate: ## Write the generated code and pages again, from semconv/registry
	go generate ./...

generate-check: ## Fail if generating changes or adds a file
	@before=$$($(GENERATED)); \
	go generate ./... || exit 1; \
	after=$$($(GENERATED)); \
	[ "$$before" = "$$after" ] || { \
		echo 'generated files were not up to date; they are now: commit them' >&2; \
		git --no-pager diff --stat >&2; \
		exit 1; \
	}

lint: ## Run the linters of .golangci.yml (about two minutes the first time: they are built)
	$(LINT) run

test: ## Run all tests
	$(if $(RACE),,@echo 'no C compiler: testing without the race detector' >&2)
	go test $(RACE) -timeout $(TIMEOUT) ./...

build: ## Build build/stallspan, and build/stallspan-nocgo without cgo
	go build -o build/stallspan .
	CGO_ENABLED=0 go build -o build/stallspan-nocgo .
	CGO_ENABLED=0 go vet ./...

collector: ## Build build/otelcol-stallspan, a Collector with our receiver and processor (five minutes the first time)
	mkdir -p build
	$(OCB) --config builder-config.yaml
	ln -f build/collector/otelcol-stallspan build/otelcol-stallspan

end-to-end: collector ## Run the Collector as a process, with a real disk and a real VictoriaMetrics, which is built
	BACKENDS=build/backends hack/backends.sh --build victoria-metrics
	STALLSPAN_END_TO_END=1 go test -count 1 -timeout $(TIMEOUT) ./internal/distribution

fakenvml: ## Build build/fakenvml/libnvidia-ml.so.1, a GPU that plays what a file says (testdata/fakenvml)
	mkdir -p build/fakenvml
	gcc -shared -fPIC -O2 -Wall -Wextra -Werror -o build/fakenvml/libnvidia-ml.so.1 testdata/fakenvml/fakenvml.c -lpthread

bench: ## Run the benchmarks (BENCH=regexp, BENCHTIME=0.5s), then what run costs a program (PAIRS=60)
	go test -run '^$$' -bench '$(BENCH)' -benchmem -benchtime $(BENCHTIME) \
		$$(grep -rl --include='*_test.go' '^func Benchmark' . | xargs -n 1 dirname | sort -u)
	go build -o build/stallspan .
	go run ./hack/overhead -stallspan build/stallspan -pairs $(PAIRS)

overhead: ## Measure what the agent takes with a full history: processor time and memory (LENGTH=1m)
	go build -tags overhead -o build/stallspan-overhead .
	go run ./hack/footprint -stallspan build/stallspan-overhead -length $(LENGTH)

fuzz: ## Run every fuzz target for FUZZTIME=20s
	@list=$$(go test -list '^Fuzz' ./...) || { echo "$$list"; exit 1; }; \
	echo "$$list" | awk '/^Fuzz/ { names[n++] = $$1 } /^ok/ { while (n > 0) print $$2, names[--n] }' | \
	while read -r package target; do \
		echo "$$package $$target"; \
		go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 20x "$$package" </dev/null || exit 1; \
	done

demo: ## See it work: a slow disk found, on this machine, in under a minute
	go run . demo

install: ## Install the program as stallspan, where `go install` puts programs
	go install .

clean: ## Remove what was built
	rm -rf build
