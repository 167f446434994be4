# Sluice. `make` lists the targets.

# What `make run` does. Sizes and durations are in Flink's grammar; gb, mb, kb are powers of 1024.
SIZE     ?= 2gb
WRITERS  ?= 16
FILE     ?= 64mb
PART     ?= 6mb
INTERVAL ?= 3s
ROW      ?= 1kb
MODE     ?= adaptive
CRASH    ?= 0
# More flags for `sluice-testbed run`, such as RUNFLAGS="--keep --dir /data".
RUNFLAGS ?=

# What `make crash` does: SIGKILLs of real processes, seeds of the simulation; 0 leaves one out. SEED replays one seed.
KILLS ?= 200
SEEDS ?= 2000
SEED  ?=
# More flags for `sluice-testbed crash`, such as CRASHFLAGS="--job 7 --keep".
CRASHFLAGS ?=

FUZZTIME  ?= 30s
BENCHTIME ?= 1s

TESTBED := e2e/testbed
TOOLS   := $(CURDIR)/go.tools.mod
BIN     := $(CURDIR)/bin

.DEFAULT_GOAL := help
.PHONY: help run crash build test lint fuzz mutants lab labdocs quota bench golden docs clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  %-8s %s\n", $$1, $$2}' Makefile

build: ## build bin/sluice and bin/sluice-testbed
	@test -x $(BIN)/sluice-testbed || echo "building, which takes a few minutes the first time"
	@go build -o $(BIN)/sluice ./cmd/sluice
	@cd $(TESTBED) && go build -o $(BIN)/sluice-testbed .

run: build ## write rows to a real S3 server, publish, read back, prove (SIZE WRITERS FILE PART INTERVAL ROW MODE CRASH)
	@$(BIN)/sluice-testbed run --sluice $(BIN)/sluice --size '$(SIZE)' --writers '$(WRITERS)' --file '$(FILE)' --part '$(PART)' \
		--interval '$(INTERVAL)' --row '$(ROW)' --mode '$(MODE)' --crash '$(CRASH)' $(RUNFLAGS)

crash: build ## kill jobs and the server at the worst moments, simulate crashes, prove that nothing is lost (KILLS SEEDS SEED)
	@$(BIN)/sluice-testbed crash --sluice $(BIN)/sluice --kills '$(KILLS)' --seeds '$(SEEDS)' $(if $(SEED),--seed '$(SEED)') $(CRASHFLAGS)

test: ## all tests of both modules, the library's with the race detector
	go vet ./...
	go test -race -shuffle=on ./...
	cd $(TESTBED) && go vet ./... && go test -shuffle=on ./...

lint: ## gofmt, vet, staticcheck, and the library for darwin and windows
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then echo "gofmt:"; echo "$$unformatted"; exit 1; fi
	go vet ./...
	cd $(TESTBED) && go vet ./...
	go tool -modfile=$(TOOLS) staticcheck ./...
	cd $(TESTBED) && go tool -modfile=$(TOOLS) staticcheck ./...
	GOOS=darwin go build ./...
	GOOS=windows go build ./...

fuzz: ## every fuzz test of the library in turn (FUZZTIME=30s each)
	@grep -rlE --include='*_test.go' --exclude-dir=testbed '^func Fuzz' . | while read -r file; do \
		for name in $$(sed -nE 's/^func (Fuzz[A-Za-z0-9_]*)\(.*/\1/p' "$$file"); do \
			echo "$$(dirname "$$file") $$name"; \
			go test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) "$$(dirname "$$file")" </dev/null || exit 1; \
		done; \
	done

mutants: ## take one safeguard at a time out of a copy: the test that stands for it must fail
	go run ./internal/mutants

# What `make lab` does: SHORT=1 judges a share of the goals, LABFLAGS are flags such as "-goal wall" or "-held-out=false".
SHORT    ?=
LABFLAGS ?=

lab: ## judge the retry goals with real clients in virtual time, some fourteen minutes (SHORT=1 LABFLAGS)
	@mkdir -p $(BIN) && go test -c -o $(BIN)/lab.test ./e2e/lab
	@cd e2e/lab && $(BIN)/lab.test -test.run '^TestLab$$' -test.timeout 90m -lab $(if $(SHORT),-test.short) -docs ../../docs/lab $(LABFLAGS)

labdocs: build ## tables of every scenario and policy, and charts, into docs/lab
	@go test ./e2e/lab -count 1 -run '^TestDocs$$' -timeout 60m -args -docs ../../docs/lab -rates $(BIN)/rates.json
	@$(BIN)/sluice-testbed charts --rates $(BIN)/rates.json --out docs/lab

# Flags of `make quota`, such as "--short" (some 90 seconds) or "--only '^503/.*/16x10'".
QUOTAFLAGS ?=

quota: build ## the pull request's experiment: the job against stores with a request quota, both modes (needs nginx; QUOTAFLAGS)
	@$(BIN)/sluice-testbed quota --sluice $(BIN)/sluice $(QUOTAFLAGS)

bench: ## benchmarks of the library (BENCHTIME=1s each)
	go test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) ./...

golden: ## rewrite the golden transcripts from what the code does now, and show what changed
	@for dir in $$(grep -rl --include='*_test.go' --exclude-dir=testbed cockroachdb/datadriven . | xargs -r -n 1 dirname | sort -u); do \
		go test "$$dir" -rewrite || exit 1; \
	done
	@git diff --stat

docs: ## put the option table, generated from the declarations, into the README
	@mkdir -p $(BIN)
	@go run ./cmd/sluice options > $(BIN)/options.md
	@awk -v table=$(BIN)/options.md '/^<!-- \/options -->/ {skip = 0} !skip {print} \
		/^<!-- options -->/ {while ((getline line < table) > 0) print line; skip = 1}' README.md > $(BIN)/README.md
	@mv $(BIN)/README.md README.md

clean: ## remove what was built
	rm -rf $(BIN)
