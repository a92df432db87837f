# Everything needs Go and make only; what else a target needs, it installs (as
# root, with apt-get; otherwise it says what to install; Kafka with Maven).

GO ?= go
PACKAGES = $(shell $(GO) list -m -f '{{.Dir}}/...')
SEEDS ?= 10000

# What starts no goroutine has no races to find, and takes five times as long
# with the detector: the machine, its simulator, the planted faults, parsers.
# So do the commands, for SQLite in Go takes twelve times as long; cmd/semel
# runs them with the detector.
PURE = $(shell $(GO) list ./internal/... ./cmd/semel/internal/cli | grep -v -e /internal/worker -e /internal/testrun)
# The longest packages begin first: they mostly wait for servers, and the others
# fill in.
LONGEST = $(shell $(GO) list ./itest/pgxstore ./itest/postgres ./itest/postgres_faults ./kafka ./cmd/semel ./itest/services ./itest/neighbours)
RACED = $(LONGEST) $(filter-out $(PURE) $(LONGEST),$(shell $(GO) list $(PACKAGES)))
# Under the detector, it runs a part of its suites only.
TWICE = $(shell $(GO) list ./itest/sqlite)

.PHONY: test vet simulate planted bench coverage-list pictures example proof-file proof-commit proof-failover proof-kafka proof-kafka3 bench-postgres bench-kafka

# The parts of test that run at once. A test waits for servers more than it
# computes, so what computes and waits for nobody fills in.
PARTS = lint pure suites proof stranger

# No result is taken from a cache: servers are no files whose change Go notices.
# Linking without symbols for debuggers takes two thirds of the time.
TEST = $(GO) test -json -count=1 -ldflags=-w -timeout 30m

# Brokers that live for minutes: optimizing them would cost more than it gains.
test: export JAVA_TOOL_OPTIONS += -XX:TieredStopAtLevel=1
## test: everything that guards main, with the race detector where there are
## goroutines, and a minute of the proof on Kafka; starts the servers that it
## needs and stops those that it started; says at the end what took how long
test: vet
	@$(GO) run ./internal/testrun $(PARTS)

.PHONY: $(PARTS)
pure:
	nice -n 5 $(TEST) $(PURE) $(TWICE)
suites:
	scripts/services with postgres pgbouncer kafka -- $(TEST) -race -p 4 -parallel 8 $(RACED)
proof:
	scripts/services install postgres kafka
	$(GO) run ./itest/cmd/proofkafka -quick

## vet: format, vet and the chosen linters
vet:
	@unformatted="$$(gofmt -l .)"; test -z "$$unformatted" || { echo "not formatted: $$unformatted"; exit 1; }
	$(GO) vet $(PACKAGES)

## lint: staticcheck, beside the house rules that are tests
lint:
	scripts/lint $(PACKAGES)

## simulate: SEEDS histories of the engine under faults; SEED=n prints one
simulate:
	$(GO) run ./internal/simulator/simulate $(if $(SEED),-seed $(SEED) -history,-seeds $(SEEDS))

## planted: faults planted in the code, and the seed or test that finds each by
## the law that it breaks
planted:
	$(GO) run ./internal/simulator/simulate -planted -seeds 6000

## bench: what the engine costs a message, with store and source in memory
bench:
	$(GO) test -run '^$$' -bench . -benchmem ./consumer ./identity

## bench-postgres: every form on PostgreSQL against a batch written by hand and
## the textbook loop, under an hour; BENCH="-quick" takes some five minutes
bench-postgres:
	scripts/services with postgres -- $(GO) run ./itest/cmd/semelbench -commit "$$(git describe --always --dirty)" $(BENCH)

## bench-kafka: from a broker into PostgreSQL, against a plain loop without
## deduplication; some three minutes
bench-kafka:
	scripts/services with postgres kafka -- sh -c '$(GO) run ./itest/cmd/semelbench -kafka "$$SEMEL_KAFKA" -commit "$$(git describe --always --dirty)" $(BENCH)'

## coverage-list: which test covers which law, case, trap and requirement
coverage-list:
	$(GO) run ./internal/house/coverage > docs/coverage.md.new && mv docs/coverage.md.new docs/coverage.md

## pictures: the rooms and the way of a message, drawn from the imports
pictures:
	$(GO) run ./internal/house/picture

## stranger: build and use the modules as someone would who fetches them
stranger:
	scripts/stranger

## example: 10,000 deliveries of payments into SQLite, each applied once
example:
	$(GO) run ./cmd/semel run --config examples/payments/semel.yaml

## proof-file: 100,000 real webhooks into SQLite through a process that is
## killed 30 times; then into PostgreSQL through three processes, each with an
## order of its own, of which one is frozen for good and two are killed, over
## five restarts of the server (2 GB in TMPDIR while it runs)
proof-file:
	$(GO) run ./itest/cmd/prooffile -webhooks "$$(scripts/fetch-webhooks)"
	$(GO) run ./itest/cmd/prooffile -webhooks "$$(scripts/fetch-webhooks)" \
		-into postgres -deliveries 60000 -kills 12 -restarts 5 -open 6

## proof-kafka: 220,000 real webhooks through a topic and three processes into
## PostgreSQL, over six minutes in which members are killed, frozen, added and
## ended, and the servers restarted; PROOF=-three: three brokers, killed and
## frozen under load; PROOF="-quick -next-gen": the protocol of KIP-848;
## PROOF="-quick -plant natural": a planted fault, which must be found;
## PROOF=-json: the ledger for machines
proof-kafka:
	scripts/services install postgres kafka
	$(GO) run ./itest/cmd/proofkafka -webhooks "$$(scripts/fetch-webhooks)" $(PROOF)

## proof-kafka3: three brokers, each topic on all of them, of which under load
## one is killed and another frozen, three times; PROOF=-next-gen has the
## brokers balance the group, PROOF=-natural plants a fault, which must be found
proof-kafka3:
	scripts/services install postgres kafka
	$(GO) run ./itest/cmd/proofbrokers $(PROOF)

## proof-commit: COMMIT cut 10,000 times in either direction with each driver,
## some while it waits for a frozen standby, with a competing consumer; then
## the same with a planted fault, which must be found
proof-commit:
	$(GO) run ./itest/cmd/proofcommit
	$(GO) run ./itest/cmd/proofcommit -plant select -cuts 200

## proof-failover: the primary killed under load, its synchronous standby
## promoted, five times with each driver
proof-failover:
	$(GO) run ./itest/cmd/prooffailover
