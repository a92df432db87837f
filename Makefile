# You need only Go and make. A target installs the other programs that it needs: with apt-get if you
# are root, and Kafka with Maven. If a target cannot install a program, it prints what to install.

GO ?= go
PACKAGES = $(shell $(GO) list -m -f '{{.Dir}}/...')
SEEDS ?= 10000

# Packages that are tested without the race detector, which makes tests five times slower. These
# packages start no goroutines (internal/machine, the simulator, parsers), or only their tests start
# goroutines. The commands of the CLI are also here, because the race detector makes SQLite in Go
# twelve times slower. The tests of cmd/semel run the commands with the race detector.
PLANTED = ./internal/simulator/planted
PURE = $(shell $(GO) list ./internal/... ./storetest ./sourcetest ./cmd/semel/internal/cli/... ./cmd/semel/internal/why | \
	grep -v -e /internal/worker -e /internal/keyclaim -e /internal/handlertest -e /internal/testrun -e $(PLANTED:.%=%))

# Packages whose tests need servers. test runs STORES; verify runs BINARY and SERVERS. SERVERS
# contains the suite of the PostgreSQL stores with each driver and connection type, faults of
# servers, upgrades between neighbouring releases, and the tests of the proofs. The packages with the
# longest tests start first: they mostly wait for servers, so other packages can run meanwhile.
STORES = $(shell $(GO) list ./itest/store/sqlite ./itest/store/handlers ./itest/http/httpkey ./itest/store/redis ./itest/source/kafka ./itest/matrix)
BINARY = $(shell $(GO) list ./cmd/semel ./itest/source/kafka/takeover ./itest/store/pgxstore)
LONGEST = $(shell $(GO) list ./itest/store/postgres ./itest/store/postgres_faults ./itest/upgrade ./itest/store/days)
SERVERS = $(LONGEST) $(filter-out $(STORES) $(BINARY) $(LONGEST),$(shell $(GO) list ./itest/...))
LONGEST_RACED = $(shell $(GO) list ./consumer ./kafka)
RACED = $(LONGEST_RACED) $(filter-out $(PURE) $(STORES) $(BINARY) $(SERVERS) $(LONGEST_RACED) %$(PLANTED:.%=%),$(shell $(GO) list $(PACKAGES)))

.PHONY: test verify lint simulate mutation proof bench docs example vet

# The parts of test run in parallel, and so do the parts of verify. Tests with servers mostly wait.
# The parts that only compute use the idle time, at a low priority (nice). At the same priority they
# would delay each response of a server, and suites of thousands of short cases would take ten times
# as long. Tests with time limits run at nice 5 or 10: at nice 19, beside busy processes, a test gets
# a hundredth of a core.
TEST_PARTS = lint pure raced stores short-proofs stranger
VERIFY_PARTS = faults forms systems binary servers other-proofs

# -count=1 disables Go's cache of test results, because Go cannot detect that a server has changed.
# -vet=off: the target vet has already run.
TEST = $(GO) test -json -count=1 -vet=off -timeout 60m

# scripts/raced measures the CPU seconds of each package. The race detector does not check SQLite,
# which is translated from C: checking it would make tests with SQLite three times slower.
MEASURED = -exec $(CURDIR)/scripts/raced
RACE = -race '-gcflags=modernc.org/...=-race=false' $(MEASURED)

# Brokers run only for minutes, so Java's optimizing compiler would cost more time than it saves.
test verify: export JAVA_TOOL_OPTIONS += -XX:TieredStopAtLevel=1
# test and verify link some hundred programs. Without debug symbols (-s), linking takes half the time.
# With -trimpath, compiled packages do not depend on their folder, so the target stranger can reuse
# them from the build cache.
test verify: export GOFLAGS += -ldflags=-s -trimpath
# By default, a process with the race detector waits one second before it exits, to report late races.
test verify: export GORACE += atexit_sleep_ms=50
# Each test creates and drops its own database. fsync protects only against a power failure, which
# no test needs. Tests that kill a server start their own server with PostgreSQL's default settings.
test verify: export SEMEL_POSTGRES_OPTIONS ?= -c fsync=off -c full_page_writes=off

## test: run the checks that every change must pass, in ten minutes on two cores: format, vet,
## staticcheck, the tests of every package (with the race detector where our code starts goroutines),
## the suite of each store with one way to connect, two proofs of one minute each, and a build of
## each module as a user downloads it; start the servers that are needed, stop them afterwards, and
## print how long each part took
test: export SEMEL_TEST_FORMS = one
test: vet
	@$(GO) run ./internal/testrun $(TEST_PARTS)

## verify: run the checks that test leaves out: the suites of the stores with every way to connect,
## the command with the race detector, faults of servers, neighbouring releases, planted faults,
## builds for Windows and macOS, and the other proofs, one minute each; with SEMEL_TEST_FORMS=all,
## every way to connect runs every case
verify:
	@$(GO) run ./internal/testrun $(VERIFY_PARTS)

.PHONY: $(TEST_PARTS) $(VERIFY_PARTS) matrix
# These tests allocate much memory and keep little of it. Less frequent garbage collection saves a
# fifth of their time.
pure faults forms: export GOGC ?= 400
pure:
	nice -n 19 $(TEST) $(PURE)
raced:
	scripts/services install python3 node prometheus
	nice -n 10 $(TEST) $(RACE) -p 3 $(RACED)
stores:
	scripts/services install redis
	scripts/services with postgres pgbouncer kafka -- sh -c "$(TEST) $(MEASURED) -run '^TestStore$$' ./itest/store/pgxstore && $(TEST) $(MEASURED) -p 4 -parallel 8 $(STORES)"
short-proofs:
	scripts/services install postgres kafka redis
	$(GO) run ./itest/cmd/proof kafka -quick
	$(GO) run ./itest/cmd/proof charge -quick

binary:
	scripts/services install redis python3 node
	scripts/services with postgres pgbouncer kafka -- $(TEST) $(RACE) -p 4 -parallel 8 $(BINARY)
servers:
	scripts/services install redis python3 node prometheus
	scripts/services with postgres pgbouncer kafka -- $(TEST) $(MEASURED) -p 4 -parallel 8 $(SERVERS)

## matrix: run the whole crash matrix; test runs a part of it; do not run other tests meanwhile,
## because the leases of its processes are two seconds
matrix:
	scripts/services install redis
	scripts/services with postgres -- $(TEST) $(MEASURED) -parallel 8 ./itest/matrix
# Run the simulator with a planted fault for each law.
faults:
	nice -n 19 $(TEST) $(MEASURED) $(PLANTED)
# Run the suite of the SQLite store with the other ways to open a file. The target test runs the suite
# with a write-ahead log.
forms:
	nice -n 5 $(TEST) $(MEASURED) -run '^TestSQLiteKeepsTheLaws' -skip '/^with_a_write-ahead_log$$' ./itest/store/sqlite
# Build the binary, which includes the core, for Windows and macOS. The first build takes three minutes
# on two cores. Later builds use the build cache and take seconds.
systems:
	for system in windows darwin; do GOOS=$$system CGO_ENABLED=0 nice -n 19 $(GO) build -o /dev/null ./cmd/semel || exit 1; done

other-proofs:
	scripts/services install postgres kafka redis
	$(GO) run ./itest/cmd/proof kafka -inbox -quick
	$(GO) run ./itest/cmd/proof kafka -order -quick
	$(GO) run ./itest/cmd/proof kafka -keys -quick
	$(GO) run ./itest/cmd/proof keyed -quick
	$(GO) run ./itest/cmd/proof chaos -quick
	$(GO) run ./itest/cmd/proof soak -quick
	$(GO) run ./itest/cmd/proof replay -quick
	$(GO) run ./itest/cmd/proof webhook -quick

# Check the format and run go vet.
vet:
	@unformatted="$$(gofmt -l .)"; test -z "$$unformatted" || { echo "not formatted: $$unformatted"; exit 1; }
	$(GO) vet $(PACKAGES)

## lint: run staticcheck; the tests in internal/house check the project's own rules
lint:
	nice -n 19 scripts/lint $(PACKAGES)

## simulate: run SEEDS simulated histories of the engine with faults; SEED=n prints one history
simulate:
	$(GO) run ./internal/simulator/simulate $(if $(SEED),-seed $(SEED) -history,-seeds $(SEEDS)) $(ARGS)

## mutation: make small mistakes in the code, one at a time, and count those that the tests and the
## simulator find; takes a night; ARGS="-sample 50 machine" tries 50 mistakes in internal/machine;
## ARGS=-help lists all flags
mutation:
	nice -n 19 $(GO) run ./internal/simulator/mutate $(ARGS)

## proof: run a fault test, such as NAME=inbox: kill, freeze and restart processes, then count lost
## and duplicated messages; ARGS=-quick takes a minute; without NAME, list the fault tests
proof:
	@scripts/proof $(NAME) $(ARGS)

## bench: run a benchmark of Semel, such as NAME=postgres; ARGS are its flags, and BASE is the commit
## to compare with; without NAME, list the benchmarks
bench: export BASE := $(BASE)
bench:
	@scripts/bench $(NAME) $(ARGS)

## docs: draw the pictures in docs from the imports of the packages and from the recording of a run
docs:
	$(GO) run ./internal/house/picture
	$(GO) test ./cmd/semel/internal/metrics -run ThePictureIs -update

# Build and use the modules as a user does who downloads them.
stranger:
	nice -n 19 scripts/stranger

## example: apply 10,000 deliveries of payments to SQLite, each payment once
example:
	$(GO) run ./cmd/semel run --config examples/payments/semel.yaml

