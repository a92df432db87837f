# Everything needs Go and make only; what else a target needs, it installs (as
# root, with apt-get; otherwise it says what to install; Kafka with Maven).

GO ?= go
PACKAGES = $(shell $(GO) list -m -f '{{.Dir}}/...')
SEEDS ?= 10000

# What starts no goroutine has no races to find, and takes five times as long with the detector:
# the machine, its simulator, parsers, and suites whose goroutines are their tests' own. So do the
# commands, for SQLite in Go takes twelve times as long; cmd/semel runs them with the detector.
PLANTED = ./internal/simulator/planted
PURE = $(shell $(GO) list ./internal/... ./storetest ./sourcetest ./cmd/semel/internal/cli ./cmd/semel/internal/why | \
	grep -v -e /internal/worker -e /internal/keyclaim -e /internal/testrun -e $(PLANTED:.%=%))

# What test runs against servers, and verify: the suite of PostgreSQL's stores in each of the ways
# to them, faults, neighbouring releases, the proofs' own tests. The longest packages begin first:
# they mostly wait for servers, and the others fill in.
STORES = $(shell $(GO) list ./itest/sqlite ./itest/httpkey ./itest/redis ./itest/kafka)
BINARY = $(shell $(GO) list ./cmd/semel ./itest/kafkatakeover ./itest/pgxstore)
LONGEST = $(shell $(GO) list ./itest/postgres ./itest/postgres_faults ./itest/neighbours ./itest/days)
SERVERS = $(LONGEST) $(filter-out $(STORES) $(BINARY) $(LONGEST),$(shell $(GO) list ./itest/... ./itest/orm/...))
RACED = $(filter-out $(PURE) $(STORES) $(BINARY) $(SERVERS) %$(PLANTED:.%=%),$(shell $(GO) list $(PACKAGES)))

.PHONY: test verify vet simulate planted bench coverage-list pictures example proof-file proof-commit proof-failover proof-kafka proof-inbox proof-order proof-keys proof-retention proof-reconcile proof-charge proof-replay proof-redis proof-kafka3 bench-postgres bench-kafka bench-river bench-against bench-postgres-against bench-kafka-against bench-file bench-redis bench-http bench-httpkey

# The parts of test, and of verify, run at once. A test waits for servers more than it computes, so
# what computes and waits for nobody fills in, and is nice: where as much wants to run as there is,
# each answer of a server comes late, and suites of thousands of short cases take ten times as long.
TEST_PARTS = lint pure raced stores proof stranger
VERIFY_PARTS = faults forms binary servers proofs

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
## the race detector, faults of servers, neighbouring releases, planted faults, a minute of each
## other proof; SEMEL_TEST_FORMS=all has each way to a store run every case
verify:
	@$(GO) run ./internal/testrun $(VERIFY_PARTS)

.PHONY: $(TEST_PARTS) $(VERIFY_PARTS)
# They allocate much and keep little, so that collecting less often is a fifth of their time.
pure faults forms: export GOGC ?= 400
pure:
	nice -n 19 $(TEST) $(PURE)
raced:
	scripts/services install python3 node prometheus
	nice -n 19 $(TEST) $(RACE) $(RACED)
stores:
	scripts/services install redis
	scripts/services with postgres pgbouncer kafka -- sh -c "$(TEST) $(MEASURED) -run '^TestStore$$' ./itest/pgxstore && $(TEST) $(MEASURED) -p 4 -parallel 8 $(STORES)"
proof:
	scripts/services install postgres kafka redis
	$(GO) run ./itest/cmd/proof kafka -quick
	$(GO) run ./itest/cmd/proof charge -quick

binary:
	scripts/services install redis python3 node
	scripts/services with postgres pgbouncer kafka -- $(TEST) $(RACE) -p 4 -parallel 8 $(BINARY)
servers:
	scripts/services install redis python3 node prometheus
	scripts/services with postgres pgbouncer kafka -- $(TEST) $(MEASURED) -p 4 -parallel 8 $(SERVERS)
# Those planted faults that a test or a few seeds find.
faults:
	nice -n 19 $(TEST) $(MEASURED) $(PLANTED)
# The ways to open a file of SQLite, of which test takes one.
forms:
	nice -n 19 $(TEST) $(MEASURED) -run '^TestSQLiteKeepsTheLaws' -skip '/^with_a_write-ahead_log$$' ./itest/sqlite
proofs:
	scripts/services install postgres kafka redis
	$(GO) run ./itest/cmd/proof kafka -inbox -quick
	$(GO) run ./itest/cmd/proof kafka -order -quick
	$(GO) run ./itest/cmd/proof kafka -keys -quick
	$(GO) run ./itest/cmd/proof keyed -quick
	$(GO) run ./itest/cmd/proof replay -quick
	$(GO) run ./itest/cmd/proof webhook -quick

## vet: format, vet and the chosen linters
vet:
	@unformatted="$$(gofmt -l .)"; test -z "$$unformatted" || { echo "not formatted: $$unformatted"; exit 1; }
	$(GO) vet $(PACKAGES)

## lint: staticcheck, beside the house rules that are tests
lint:
	nice -n 19 scripts/lint $(PACKAGES)

## simulate: SEEDS histories of the engine under faults; SEED=n prints one
simulate:
	$(GO) run ./internal/simulator/simulate $(if $(SEED),-seed $(SEED) -history,-seeds $(SEEDS))

## planted: faults planted in the code, and the seed or test that finds each by
## the law that it breaks
planted:
	$(GO) run ./internal/simulator/simulate -planted -seeds 6000

# The file of the real webhooks, nothing if they cannot be fetched; why not is
# printed.
WEBHOOKS = webhooks="$$(scripts/fetch-webhooks)" || webhooks=

## bench: what the engine and the reading of a body cost a message, with store
## and source in memory; BENCH="-bench Bodies" for some
bench:
	@$(WEBHOOKS); SEMEL_WEBHOOKS="$$webhooks" $(GO) test -run '^$$' -bench . -benchmem $(BENCH) ./consumer ./identity

## bench-postgres: every form on PostgreSQL against a batch written by hand and
## the textbook loop, under an hour; BENCH="-quick" takes some five minutes;
## BENCH="-base -body 200B,1KiB,10KiB" for bodies of some length
bench-postgres:
	scripts/services with postgres -- $(GO) run ./itest/cmd/semelbench -commit "$$(git describe --always --dirty)" $(BENCH)

## bench-kafka: from a broker into PostgreSQL, against a plain loop without
## deduplication; some three minutes; BENCH="-body 1KiB" for longer bodies,
## BENCH="-webhooks $$(scripts/fetch-webhooks)" for real ones
bench-kafka:
	scripts/services with postgres kafka -- sh -c '$(GO) run ./itest/cmd/semelbench -kafka "$$SEMEL_KAFKA" -commit "$$(git describe --always --dirty)" $(BENCH)'

## bench-river: the inbox beside River, the queue for Go on PostgreSQL, in one run;
## some four minutes; BENCH="-rounds 3" for a look
bench-river:
	scripts/services with postgres -- $(GO) run ./itest/cmd/riverbench -commit "$$(git describe --always --dirty)" $(BENCH)

## bench-against: the benchmarks of ./consumer at the commit BASE and in this
## tree with bodies of 200 bytes, in turn, 11 rounds, and what equal code differs
## by; some four minutes; others with
## BENCH="-packages ./consumer,./identity -bench . -benchtime 300ms"
bench-against:
	@$(WEBHOOKS); SEMEL_WEBHOOKS="$$webhooks" $(GO) run ./itest/cmd/pairedbench -base "$(BASE)" -bench 'Nothing|Engine$$' $(BENCH)

## bench-postgres-against: the same of every form on PostgreSQL, by its ratio to
## a batch written by hand; some ten minutes; BENCH="-body 200B" for such bodies
bench-postgres-against:
	scripts/services with postgres -- $(GO) run ./itest/cmd/pairedbench -postgres -base "$(BASE)" $(BENCH)

## bench-kafka-against: the same of the way from a broker into PostgreSQL with
## the real webhooks and 8 workers, by its ratio to a loop without
## deduplication; some twelve minutes
bench-kafka-against:
	scripts/services with postgres kafka -- sh -c '$(GO) run ./itest/cmd/pairedbench -kafka "$$SEMEL_KAFKA" -base "$(BASE)" -webhooks "$$(scripts/fetch-webhooks)" $(BENCH)'

## bench-sampler: each statement that samples a store, beside ten million markers and a
## million rows on a PostgreSQL of its own, cold, warm and among dead rows, and scrapes, one by
## one and twenty at once; some six minutes; BENCH="-markers 200000 -rows 100000" for a look
.PHONY: bench-sampler
bench-sampler:
	scripts/services install postgres
	$(GO) test ./itest/semelpg -run '^$$' -bench Sampler -benchtime 1x -timeout 60m -args $(BENCH)

## bench-redis: claims and completions of leased keys beside a bare SET NX and SET
bench-redis:
	scripts/services install redis
	$(GO) run ./itest/cmd/proof redis $(BENCH)

## bench-http: an endpoint whose answers are effects, in Python beside a bare load
## generator and in Go beside the same statements as SQL; some five minutes;
## BENCH="-rounds 3" for a look
bench-http:
	scripts/services install python3
	scripts/services with postgres -- $(GO) run ./itest/cmd/httpbench -commit "$$(git describe --always --dirty)" $(BENCH)

## bench-httpkey: a request under an idempotency key beside its handler without one, four
## at once, on every store: median, slowest of a hundred, requests a second; half a minute
bench-httpkey:
	scripts/services install redis
	scripts/services with postgres -- $(GO) test ./itest/httpkey -run xxx -bench ARequest -benchtime 3000x -cpu 4 $(BENCH)

## bench-file: 100,000 real webhooks, 1 GB, from a file into SQLite through the
## binary of the commit BASE and this tree's, in turn, with one core and two, 11
## rounds; BENCH="-against PATH" takes a binary that is built; some twenty minutes
bench-file:
	$(GO) run ./itest/cmd/pairedbench -file -base "$(BASE)" -webhooks "$$(scripts/fetch-webhooks)" $(BENCH)

## coverage-list: prints which test covers which law, case, trap and requirement
coverage-list:
	@$(GO) run ./internal/house/coverage

## pictures: the rooms and the way of a message, drawn from the imports, and what a run told of
## itself, drawn from what was recorded
pictures:
	$(GO) run ./internal/house/picture
	$(GO) test ./cmd/semel/internal/metrics -run ThePictureIs -update

## stranger: build and use the modules as someone would who fetches them
stranger:
	nice -n 19 scripts/stranger

## example: 10,000 deliveries of payments into SQLite, each applied once
example:
	$(GO) run ./cmd/semel run --config examples/payments/semel.yaml

## proof-file: 100,000 real webhooks into SQLite through a process that is
## killed 30 times; then into PostgreSQL through three processes, each with an
## order of its own, of which one is frozen for good and two are killed, over
## five restarts of the server (2 GB in TMPDIR while it runs)
proof-file:
	$(GO) run ./itest/cmd/proof file -webhooks "$$(scripts/fetch-webhooks)" $(PROOF)
	$(GO) run ./itest/cmd/proof file -webhooks "$$(scripts/fetch-webhooks)" \
		-into postgres -deliveries 60000 -kills 12 -restarts 5 -open 6 $(PROOF)

## proof-kafka: 220,000 real webhooks through a topic and three processes into
## PostgreSQL, over six minutes in which members are killed, frozen, added and
## ended, and the servers restarted; PROOF=-three: three brokers, killed and
## frozen under load; PROOF="-quick -next-gen": the protocol of KIP-848;
## PROOF="-quick -plant natural": a planted fault, which must be found;
## PROOF=-json: the ledger for machines
proof-kafka:
	scripts/services install postgres kafka
	$(GO) run ./itest/cmd/proof kafka -webhooks "$$(scripts/fetch-webhooks)" $(PROOF)

## proof-inbox: 110,000 messages of a topic received into PostgreSQL and worked
## on by eight processes, one handler run in a hundred failing, ten messages
## parked and retried by a command, over eight minutes in which processes are
## killed, frozen beyond their leases, and the server restarted; PROOF=-quick:
## a minute
proof-inbox:
	scripts/services install postgres kafka
	$(GO) run ./itest/cmd/proof kafka -inbox -webhooks "$$(scripts/fetch-webhooks)" $(PROOF)

## proof-order: 110,000 records that are versions of a thousand streams, some of
## which come shuffled, late or never, over four processes in lanes by key; ten
## heads parked and retried by a command, gaps skipped by another. At each of these steps
## exactly those messages wait that are behind a parked or a missing one. PROOF=-quick: a
## minute; PROOF="-quick -plant unguarded": without the versions, which must be found
proof-order:
	scripts/services install postgres kafka
	$(GO) run ./itest/cmd/proof kafka -order -webhooks "$$(scripts/fetch-webhooks)" $(PROOF)

## proof-redis: 200,000 deliveries to processes that call a provider under leased keys in
## Redis, are killed and frozen, while Redis is killed; the calls for each message are
## counted there; PROOF=-quick: a minute; PROOF=-everysec: with appendfsync everysec, where
## a failure of the machine loses the last second; PROOF="-quick -plant forgets": that with
## a server that says it is durable, which must be found
proof-redis:
	scripts/services install redis
	$(GO) run ./itest/cmd/proof keyed $(PROOF)

## proof-retention: five million old markers removed while four workers consume and
## copies of what was removed come all the time, on a PostgreSQL whose log tells of every
## wait for a lock over 50 ms; PROOF="-markers 200000": a minute;
## PROOF="-markers 200000 -plant blind": workers that do not ask for the age of a copy,
## which must be found; PROOF=-rates: what the index and ten million markers cost,
## 11 rounds
proof-retention:
	scripts/services install postgres
	$(GO) run ./itest/cmd/proof retention $(PROOF)

## proof-keys: the same records as versions of nothing, in order by key and kept behind
## a receipt, so that what is behind a failed or parked one waits in the inbox;
## PROOF=-quick: a minute; PROOF="-quick -plant unguarded": without lanes by key,
## which must be found
proof-keys:
	scripts/services install postgres kafka
	$(GO) run ./itest/cmd/proof kafka -keys -webhooks "$$(scripts/fetch-webhooks)" $(PROOF)

## proof-kafka3: three brokers, each topic on all of them, of which under load
## one is killed and another frozen, three times; PROOF=-next-gen has the
## brokers balance the group; PROOF="-plant natural": a planted fault, which must
## be found
proof-kafka3:
	scripts/services install postgres kafka
	$(GO) run ./itest/cmd/proof brokers $(PROOF)

## proof-http: 20,000 orders at two processes of an API that are killed and frozen 112
## times, each in turn at seven statements, while clients and curl repeat their requests;
## and 200 requests at once with one key on every store, with the p99 of other keys
.PHONY: proof-http
proof-http:
	scripts/services with postgres -- $(GO) test ./itest/httpkey -run 'TestProof|TwoHundred' -v -count=1 -timeout 30m -orders 20000 -stops 112 $(PROOF)

## proof-charge: 20,000 payments of a topic booked with an intent each and charged at a
## provider that loses answers and forgets keys, over four minutes in which consumers and
## senders are killed and frozen at random and at each named point; a naive consumer beside
## them; PROOF=-quick: a minute; PROOF="-quick -plant new-key", settle-first or forgotten: a
## planted fault, which must be found
proof-charge:
	scripts/services install postgres kafka
	$(GO) run ./itest/cmd/proof charge $(PROOF)

## proof-replay: 100,000 transfers of a topic, of which two in a hundred become dead letters
## and are replayed, by filter and by group and some edited, while copies come; what was lost
## is replayed from the topic, and the projection built anew and switched to; consumers and
## commands are killed, and what is said in advance must happen; some six minutes;
## PROOF=-quick: a minute; PROOF="-quick -plant new-ids" or unmended: a planted fault, which
## must be found
proof-replay:
	scripts/services install postgres kafka
	$(GO) run ./itest/cmd/proof replay $(PROOF)

## proof-webhook: 5,000 events of a provider that repeats by its schedule of three days, at a
## time scale, some of them after a 2xx, to a process that is killed 70 times, at random and at
## each of ten named points, over ends and restarts of PostgreSQL; forged and old requests among
## them; a naive receiver beside it; some two minutes; PROOF=-quick: half a minute;
## PROOF="-quick -plant early", forgetful or leaked: a planted fault, which must be found
.PHONY: proof-webhook
proof-webhook:
	scripts/services install postgres
	$(GO) run ./itest/cmd/proof webhook $(PROOF)

## proof-commit: COMMIT cut 10,000 times in either direction with each driver,
## some while it waits for a frozen standby, with a competing consumer; then
## the same with a planted fault, which must be found
proof-commit:
	$(GO) run ./itest/cmd/proof commit $(PROOF)
	$(GO) run ./itest/cmd/proof commit -plant select -cuts 200

## proof-alerts: a Prometheus scrapes two processes of semel run while each fault is produced
## that an alert is for, and has each alert pending, firing and resolved, at a time scale; in
## a healthy run none fires; each query of the dashboard is answered; some ten minutes;
## PROOF="-healthy 5m" for the durations that ship; PROOF="-plant poison" or unbroken: a
## planted fault, which must be found
.PHONY: proof-alerts
proof-alerts:
	scripts/services install postgres kafka redis prometheus
	$(GO) run ./itest/cmd/proof alerts $(PROOF)

## proof-reconcile: semel reconcile finds 10 losses and 10 doubles among 1,000,000
## messages, beside the consumer that runs, and prints what memory it took; then the
## same without a look at the effects, which must be found; two minutes
proof-reconcile:
	scripts/services install postgres
	$(GO) run ./itest/cmd/proof reconcile $(PROOF)
	$(GO) run ./itest/cmd/proof reconcile -plant effects -messages 10000

## proof-failover: the primary killed under load, its synchronous standby
## promoted, five times with each driver
proof-failover:
	$(GO) run ./itest/cmd/proof failover $(PROOF)
