# Everything needs Go and make only; what else a target needs, it installs (as
# root, with apt-get; otherwise it says what to install; Kafka with Maven).

GO ?= go
PACKAGES = $(shell $(GO) list -m -f '{{.Dir}}/...')
SEEDS ?= 10000

# What starts no goroutine has no races to find, and takes five times as long with the detector:
# the machine, its simulator, parsers, and suites whose goroutines are their tests' own. So do the
# commands, for SQLite in Go takes twelve times as long; cmd/semel runs them with the detector.
PLANTED = ./internal/simulator/planted
PURE = $(shell $(GO) list ./internal/... ./storetest ./sourcetest ./cmd/semel/internal/cli/... ./cmd/semel/internal/why | \
	grep -v -e /internal/worker -e /internal/keyclaim -e /internal/testrun -e $(PLANTED:.%=%))

# What test runs against servers, and verify: the suite of PostgreSQL's stores in each of the ways
# to them, faults, neighbouring releases, the proofs' own tests. The longest packages begin first:
# they mostly wait for servers, and the others fill in.
STORES = $(shell $(GO) list ./itest/store/sqlite ./itest/store/handlers ./itest/http/httpkey ./itest/store/redis ./itest/source/kafka ./itest/matrix)
BINARY = $(shell $(GO) list ./cmd/semel ./itest/source/kafka/takeover ./itest/store/pgxstore)
LONGEST = $(shell $(GO) list ./itest/store/postgres ./itest/store/postgres_faults ./itest/upgrade ./itest/store/days)
SERVERS = $(LONGEST) $(filter-out $(STORES) $(BINARY) $(LONGEST),$(shell $(GO) list ./itest/...))
LONGEST_RACED = $(shell $(GO) list ./consumer ./kafka)
RACED = $(LONGEST_RACED) $(filter-out $(PURE) $(STORES) $(BINARY) $(SERVERS) $(LONGEST_RACED) %$(PLANTED:.%=%),$(shell $(GO) list $(PACKAGES)))

.PHONY: test verify lint simulate mutation proof bench docs example vet

# The parts of test, and of verify, run at once. A test waits for servers more than it computes, so
# what computes and waits for nobody fills in, and is nice: where as much wants to run as there is,
# each answer of a server comes late, and suites of thousands of short cases take ten times as long.
# Tests with time limits are less nice: at 19 they get a hundredth of a core beside busy ones.
TEST_PARTS = lint pure raced stores short-proofs stranger
VERIFY_PARTS = faults forms systems binary servers other-proofs

# No result is taken from a cache: servers are no files whose change Go notices.
# vet has run before.
TEST = $(GO) test -json -count=1 -vet=off -timeout 60m

# The CPU seconds of each package are measured. The detector looks at what people wrote: SQLite is C
# that was translated, and with the detector in it, what uses it takes three times as long.
MEASURED = -exec $(CURDIR)/scripts/raced
RACE = -race '-gcflags=modernc.org/...=-race=false' $(MEASURED)

# Brokers that live for minutes: optimizing them would cost more than it gains.
test verify: export JAVA_TOOL_OPTIONS += -XX:TieredStopAtLevel=1
# Some hundred programs are linked, also by tests: without symbols for debuggers
# that takes half the time. Code that lies nowhere in particular is compiled once
# for the modules as they are here and as a stranger builds them.
test verify: export GOFLAGS += -ldflags=-s -trimpath
# At its end a process with the detector waits a second for others' last races.
test verify: export GORACE += atexit_sleep_ms=50
# Each test makes a database and drops it. No test takes the machine's power away,
# and those that kill a server have their own, with PostgreSQL's settings.
test verify: export SEMEL_POSTGRES_OPTIONS ?= -c fsync=off -c full_page_writes=off

## test: what a change has to pass, in ten minutes on two cores: format, vet, staticcheck, the
## tests of every package, with the race detector where goroutines are ours, each store's suite in
## one way to reach it, a minute of two proofs, and the modules as a stranger builds them; starts
## the servers that it needs, stops those that it started, and says at the end what took how long
test: export SEMEL_TEST_FORMS = one
test: vet
	@$(GO) run ./internal/testrun $(TEST_PARTS)

## verify: what test leaves out: the suites of stores in every way to reach them, the command with
## the race detector, faults of servers, neighbouring releases, planted faults, builds for
## Windows and macOS, a minute of each other proof; SEMEL_TEST_FORMS=all has each way to a store run every case
verify:
	@$(GO) run ./internal/testrun $(VERIFY_PARTS)

.PHONY: $(TEST_PARTS) $(VERIFY_PARTS) matrix
# They allocate much and keep little, so that collecting less often is a fifth of their time.
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

## matrix: the whole crash matrix, of which test runs a part; alone, because its processes have leases
## of two seconds
matrix:
	scripts/services install redis
	scripts/services with postgres -- $(TEST) $(MEASURED) -parallel 8 ./itest/matrix
# One planted fault for each law.
faults:
	nice -n 19 $(TEST) $(MEASURED) $(PLANTED)
# The ways to open a file of SQLite, of which test takes one.
forms:
	nice -n 5 $(TEST) $(MEASURED) -run '^TestSQLiteKeepsTheLaws' -skip '/^with_a_write-ahead_log$$' ./itest/store/sqlite
# The binary, and with it the core, builds on the other systems. Three minutes the first time on two
# cores, seconds once their packages are in the build cache.
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

# Format and vet.
vet:
	@unformatted="$$(gofmt -l .)"; test -z "$$unformatted" || { echo "not formatted: $$unformatted"; exit 1; }
	$(GO) vet $(PACKAGES)

## lint: staticcheck, beside the house rules that are tests
lint:
	nice -n 19 scripts/lint $(PACKAGES)

## simulate: SEEDS histories of the engine under faults; SEED=n prints one
simulate:
	$(GO) run ./internal/simulator/simulate $(if $(SEED),-seed $(SEED) -history,-seeds $(SEEDS)) $(ARGS)

## mutation: small mistakes in the code, one at a time, and how many of them tests and the simulator
## find; for nights; ARGS="-sample 50 machine" runs 50 mistakes of the machine, ARGS=-help lists the rest
mutation:
	nice -n 19 $(GO) run ./internal/simulator/mutate $(ARGS)

## proof: NAME=inbox, or another: messages under kills, freezes and restarts, and what was lost or
## doubled; ARGS=-quick, a minute; without a name it lists them
proof:
	@scripts/proof $(NAME) $(ARGS)

## bench: NAME=postgres, or another: what Semel costs; ARGS are its flags; BASE is the commit that
## is compared; without a name it lists them
bench: export BASE := $(BASE)
bench:
	@scripts/bench $(NAME) $(ARGS)

## docs: the pictures of docs, drawn from the imports and from what a run recorded
docs:
	$(GO) run ./internal/house/picture
	$(GO) test ./cmd/semel/internal/metrics -run ThePictureIs -update

# The modules are built and used as someone would who fetches them.
stranger:
	nice -n 19 scripts/stranger

## example: 10,000 deliveries of payments into SQLite, each applied once
example:
	$(GO) run ./cmd/semel run --config examples/payments/semel.yaml

