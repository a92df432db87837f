package check

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

var update = flag.Bool("update", false, "write docs/operate/check.md")

const docs = "../../../../docs/operate/check.md"

func TestTheReferenceIsOfTheseQuestions(t *testing.T) {
	if *update {
		if err := os.WriteFile(docs, []byte(Reference()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(docs)
	if err != nil || string(got) != Reference() {
		t.Errorf("docs/operate/check.md is not what the table says; go test ./cmd/semel/internal/check -update writes it (%v)", err)
	}
}

func TestQuestionsAreNumberedWithoutHoles(t *testing.T) {
	t.Run("K3_each_has_a_number_a_question_and_an_explanation", func(t *testing.T) {
		for i, q := range Questions() {
			if q.Number != i+1 || !strings.HasSuffix(q.Asks, "?") || q.Explain == "" || q.judge == nil {
				t.Errorf("question %d is %+v", i+1, q)
			}
		}
	})
}

// validPolicy is a policy for which no question fails.
const validPolicy = `version: 1
listen: 127.0.0.1:9464
stores: {shop: {postgres: {url: "postgres://db/shop"}}}
sources:
  payments: {kafka: {brokers: "127.0.0.1:9092", topics: [payments]}}
consumers:
  billing:
    from: payments
    store: shop
    strategy: inbox
    ack: after_receipt
    alerts: {pending_age: 60s}
    identity: {id: id, source: source}
    retention: 30d
    timeout: 20s
    effect: {kind: ledger, says: a second one books twice}
    handler: {sql: {params: {id: id}, statements: ["insert into booked values (:id)"]}}
`

// webhookPolicy is a policy with a webhook source. The consumer finds the id in an unsigned header.
const webhookPolicy = `version: 1
stores: {shop: {postgres: {url: "postgres://db/shop"}}}
sources:
  hooks: {webhook: {listen: "127.0.0.1:8080", path: /hooks, scheme: github, secret: "${WEBHOOK_SECRET}", unsigned: {headers: [x-github-delivery], because: nobody sees the bodies}}}
consumers:
  billing:
    from: hooks
    store: shop
    strategy: inbox
    ack: after_receipt
    alerts: {pending_age: 60s}
    identity: {id: "header:x-github-delivery"}
    retention: forever
    effect: {kind: KIND, says: a second one books twice}
    handler: {sql: {params: {id: "body:/id"}, statements: ["insert into booked values (:id)"]}}
`

func TestTheIdentityOfWebhooks(t *testing.T) {
	for name, want := range map[string]Result{"ledger": Fail, "projection": Pass} {
		t.Run("F3_K3_1_a_header_that_nobody_signed_of_a_"+name, func(t *testing.T) {
			text := strings.Replace(webhookPolicy, "KIND", name, 1)
			p, faults := policy.Parse("semel.yaml", []byte(text), func(string) (string, bool) { return "a secret of nobody at all", true })
			if len(faults) > 0 {
				t.Fatal(faults)
			}
			c := p.Consumers[0]
			s := &Subject{Policy: p, Consumer: c, Source: p.Source(c.From), Store: p.Store(c.Store)}
			if got := s.checkID(); got.Result != want || !strings.Contains(got.Evidence, "which is not signed") || !strings.Contains(got.Evidence, "nobody sees the bodies") {
				t.Errorf("%+v", got)
			}
			if got := s.checkRisks(); !strings.Contains(got.Evidence, "the headers are not signed: x-github-delivery") {
				t.Errorf("%+v", got)
			}
			c.Retention.Keep = 24 * time.Hour
			if got := s.checkHorizon(); got.Result != Fail || !strings.Contains(got.Evidence, "repeats for 30d") {
				t.Errorf("%+v", got)
			}
			c.Retention.Keep, c.Retention.Delay = 31*24*time.Hour, 2*24*time.Hour
			if got := s.checkHorizon(); got.Result != Fail || !strings.Contains(got.Evidence, "a copy can arrive 32d late") {
				t.Errorf("with the delay before the provider: %+v", got)
			}
		})
	}
}

// callingPolicy is a policy without faults whose handler calls an HTTP endpoint.
const callingPolicy = `version: 1
listen: 127.0.0.1:9464
stores: {shop: {postgres: {url: "postgres://db/shop"}}}
sources:
  payments: {kafka: {brokers: "127.0.0.1:9092", topics: [payments]}}
consumers:
  billing:
    from: payments
    store: shop
    strategy: lease
    alerts: {pending_age: 60s}
    identity: {id: id, source: source}
    retention: 30d
    timeout: 20s
    effect: {kind: external, says: a second one charges twice}
    handler:
      http:
        url: "http://127.0.0.1:1/charge"
        timeout: 10s
        window: 24h
`

// subject returns the consumer of a policy, together with the facts that a healthy store and a healthy broker would
// report. The parameter replace has pairs of texts: the second text of each pair replaces the first text in the policy.
func subject(t *testing.T, text string, replace ...string) *Subject {
	t.Helper()
	for i := 0; i < len(replace); i += 2 {
		if !strings.Contains(text, replace[i]) {
			t.Fatalf("the policy has no %q", replace[i])
		}
	}
	p, faults := policy.Parse("semel.yaml", []byte(strings.NewReplacer(replace...).Replace(text)), os.LookupEnv)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	c := p.Consumers[0]
	derivation, _ := derivation(c)
	keep := store.Retention{Consumer: c.Name, Keep: c.Retention.Keep}
	return &Subject{Policy: p, Consumer: c, Source: p.Source(c.From), Store: p.Store(c.Store),
		Facts: &Facts{Names: []string{c.Name}, Derivations: []admin.Derivation{{Consumer: c.Name, Text: derivation}},
			Retention: &store.StoredRetention{Retention: keep, Progress: time.Now()}},
		Broker: &Broker{Horizon: source.Horizon{Late: 8 * 24 * time.Hour, Why: "topic payments: retention.ms 7d"}, Partitions: 3}}
}

// findAnswers returns the numbers of the questions with result r, and the first answer with this
// result.
func findAnswers(s *Subject, r Result) (numbers []int, first Answer) {
	for _, q := range Questions() {
		if a := q.Answer(s); a.Result == r {
			if numbers = append(numbers, q.Number); len(numbers) == 1 {
				first = a
			}
		}
	}
	return numbers, first
}

func TestASoundPolicyPasses(t *testing.T) {
	for name, text := range map[string]string{"K3_statements": validPolicy, "K3_a_call": callingPolicy} {
		t.Run(name, func(t *testing.T) {
			s := subject(t, text)
			s.Facts.Upkeep.Repeated, s.Facts.Upkeep.Latest = 1, 2
			if failed, first := findAnswers(s, Fail); len(failed) > 0 {
				t.Errorf("%v fail: %+v", failed, first)
			}
			if unknown, _ := findAnswers(s, CannotKnow); len(unknown) != 3 || unknown[0] != 4 || unknown[1] != 18 || unknown[2] != 24 {
				t.Errorf("%v cannot be known", unknown)
			}
		})
	}
}

// plantedFault is a fault in a policy, store or broker. Only the question with this number must find the
// fault.
type plantedFault struct {
	number   int
	text     string
	replace  []string
	facts    func(*Subject)
	evidence string
}

func inPolicy() map[string]plantedFault {
	return map[string]plantedFault{
		"K3_5_no_effect_is_declared":                       {5, validPolicy, []string{"    effect: {kind: ledger, says: a second one books twice}\n", ""}, nil, "does not declare its kind"},
		"K3_8_calls_without_a_key":                         {8, callingPolicy, []string{"        window: 24h\n", "        key: none\n        may_double: the bank shrugs\n"}, nil, "made again: the bank shrugs"},
		"K3_10_real_effects_in_replays":                    {10, callingPolicy, []string{"    timeout: 20s\n", "    timeout: 20s\n    replay: {allowed: true, effects: real}\n"}, nil, "repeats the external effects: a second one charges twice"},
		"K3_10_a_replay_of_an_effect_that_is_not_declared": {5, validPolicy, []string{"effect: {kind: ledger, says: a second one books twice}", "replay: {allowed: true}"}, nil, "does not declare its kind"},
		"K3_12_a_reaper_that_is_switched_off":              {12, validPolicy, []string{"retention: 30d", "retention: {keep: 30d, off: true}"}, nil, "the reaper is off"},
		"K3_14_a_state_that_is_overwritten":                {14, validPolicy, []string{"kind: ledger", "kind: entity"}, nil, "a late message overwrites"},
		"K3_19_no_fingerprint":                             {19, validPolicy, []string{"    timeout: 20s\n", "    timeout: 20s\n    fingerprint: none\n"}, nil, "taken for a copy"},
		"K3_20_a_window_shorter_than_a_wait":               {20, callingPolicy, []string{"window: 24h", "window: 1h", "    timeout: 20s\n", "    timeout: 20s\n    retry: {initial_delay: 1s, max_delay: 2h}\n"}, nil, "the key would be forgotten"},
		"K3_20_a_window_as_long_as_a_wait":                 {20, callingPolicy, []string{"window: 24h", "window: 2h", "    timeout: 20s\n", "    timeout: 20s\n    retry: {initial_delay: 1s, max_delay: 2h}\n"}, nil, "the key would be forgotten"},
		"K3_23_what_was_aborted_is_read":                   {23, validPolicy, []string{"topics: [payments]", "topics: [payments], isolation: read_uncommitted"}, nil, "aborted"},
		"K3_26_a_lease_shorter_than_the_handler":           {26, validPolicy, []string{"timeout: 20s", "timeout: 90s"}, nil, "a handler may run for 1m30s, but after its lease of 30s"},
	}
}

func inStoreOrBroker() map[string]plantedFault {
	fact := func(number int, evidence string, change func(*Subject)) plantedFault {
		return plantedFault{number, validPolicy, nil, change, evidence}
	}
	return map[string]plantedFault{
		"K3_2_ids_found_in_another_way": fact(2, "processes have found ids by", func(s *Subject) { s.Facts.Derivations[0].Text = "header:id" }),
		"K3_3_a_consumer_that_was_renamed": fact(3, "knows accounting, which the policy lacks", func(s *Subject) {
			s.Facts.Names, s.Facts.Derivations[0].Consumer = []string{"accounting"}, "accounting"
		}),
		"K3_3_a_name_that_other_handlers_own": {3, validPolicy, []string{`handler: {sql: {params: {id: id}, statements: ["insert into booked values (:id)"]}}`, `handler: {types: {paid: {sql: {statements: ["select 1"]}}}}`},
			func(s *Subject) { s.Facts.Owner = "the handlers of refunded" }, "owned by the handlers of refunded"},
		"K3_7_tables_that_do_not_protect": fact(7, "markers_pkey is missing", func(s *Subject) { s.Facts, s.NoFacts, s.Schema = nil, "the tables", "markers_pkey is missing" }),
		"K3_7_a_marker_whose_row_says_otherwise": fact(7, "row 17 is applied, and its marker says waiting", func(s *Subject) {
			s.Facts.Deep = &Deep{Rows: 2, Denied: []sqlstore.Mismatch{{Row: 17, State: store.StateCompleted, Marker: store.Waiting}}}
		}),
		"K3_7_an_effect_that_its_stream_does_not_know": fact(7, "row 17 is applied, and its stream has only reached version 3", func(s *Subject) {
			s.Facts.Deep = &Deep{Rows: 2, Denied: []sqlstore.Mismatch{{Row: 17, State: store.StateCompleted, By: sqlstore.MismatchStream, Last: 3}}}
		}),
		"K3_7_who_waits_for_what_is_there": fact(7, "row 17 is blocked, and its stream has reached version 3, so nothing blocks it", func(s *Subject) {
			s.Facts.Deep = &Deep{Rows: 2, Denied: []sqlstore.Mismatch{{Row: 17, State: store.StateBlocked, By: sqlstore.MismatchStream, Last: 3}}}
		}),
		"K3_7_an_intent_without_its_cause": fact(7, "row 17 is waiting, and an intent of message m1, which had no effect: it has no marker", func(s *Subject) {
			s.Facts.Deep = &Deep{Rows: 2, Denied: []sqlstore.Mismatch{{Row: 17, State: store.StateReceived, By: sqlstore.MismatchCause, Cause: semel.Key{ID: "m1"}}}}
		}),
		"K3_12_another_retention_in_use":    fact(12, "30d by the policy, but its processes last recorded 90d", func(s *Subject) { s.Facts.Retention.Keep = 90 * 24 * time.Hour }),
		"K3_13_retention_under_the_horizon": fact(13, "ids are kept for 30d, but a copy can arrive 40d late", func(s *Subject) { s.Broker.Horizon.Late = 40 * 24 * time.Hour }),
		"K3_13_what_lies_before_the_broker_counts": fact(13, "ids are kept for 30d, but a copy can arrive 31d late", func(s *Subject) {
			s.Broker.Horizon.Late, s.Consumer.Retention.Delay = 29*24*time.Hour, 2*24*time.Hour
		}),
		"K3_13_a_topic_that_is_never_emptied":      fact(13, "at any later time", func(s *Subject) { s.Broker.Horizon.Unlimited = true }),
		"K3_13_a_horizon_that_processes_told":      fact(13, "a copy can arrive 31d late", func(s *Subject) { s.Facts.Retention.Horizon = 31 * 24 * time.Hour }),
		"K3_15_parked_rows_that_nobody_watches":    fact(15, "3 rows are parked, the oldest for 49h", func(s *Subject) { s.Facts.Upkeep.Parked, s.Facts.Upkeep.Oldest = 3, 49*time.Hour }),
		"K3_15_a_message_that_waits_too_long":      fact(15, "has waited for 5m0s, and pending_age is", func(s *Subject) { s.Facts.Pending.Oldest = 5 * time.Minute }),
		"K3_15_alerts_whose_metrics_nobody_serves": {15, validPolicy, []string{"listen: 127.0.0.1:9464\n", ""}, nil, "alerts are set, but runs serve no metrics"},
		"K3_16_claims_that_nobody_takes":           fact(16, "2 rows are claimed although the lease ended", func(s *Subject) { s.Facts.Upkeep.Stale = 2 }),
		"K3_21_calls_of_unknown_outcome":           fact(21, "1 row had a call with an unknown outcome", func(s *Subject) { s.Facts.Upkeep.Unknown = 1 }),
		"K3_22_offsets_without_markers":            fact(22, "in 2 of 3 partitions the group is ahead", func(s *Subject) { s.Broker.Ahead, s.Broker.Missing = 2, 70 }),
		// The policy check, too, rejects a policy whose calls can take as long as the lease.
		"K3_26_a_call_as_long_as_its_lease":      {26, callingPolicy, nil, func(s *Subject) { s.endpoint().Timeout = s.Consumer.Inbox.Lease }, "a call may take 30s, but its lease is 30s"},
		"K3_26_handlers_that_kill_their_process": fact(26, "1 row is parked because the processes", func(s *Subject) { s.Facts.Upkeep.Killing = 1 }),
	}
}

func TestPlantedFaultsAreFoundUnderTheirNumbers(t *testing.T) {
	also := map[string][]int{ // other questions that fail because of the same fault
		"K3_8_calls_without_a_key":                         {8, 9},
		"K3_10_a_replay_of_an_effect_that_is_not_declared": {5, 10},
	}
	for _, table := range []map[string]plantedFault{inPolicy(), inStoreOrBroker()} {
		for name, want := range table {
			t.Run(name, func(t *testing.T) {
				s := subject(t, want.text, want.replace...)
				if want.facts != nil {
					want.facts(s)
				}
				found, first := findAnswers(s, Fail)
				expected := also[name]
				if expected == nil {
					expected = []int{want.number}
				}
				if len(found) != len(expected) || len(found) > 0 && found[0] != expected[0] || len(found) > 1 && found[1] != expected[1] {
					t.Fatalf("%v fail, want %v", found, expected)
				}
				if !strings.Contains(first.Evidence, want.evidence) || first.Remedy == "" {
					t.Errorf("the evidence is %q and the remedy %q, want %q", first.Evidence, first.Remedy, want.evidence)
				}
			})
		}
	}
}

func TestABusinessKeyWithoutItsConstraintIsFound(t *testing.T) {
	t.Run("K3_7_no_constraint_of_this_name", func(t *testing.T) {
		s := subject(t, validPolicy, "strategy: inbox\n    ack: after_receipt\n    alerts: {pending_age: 60s}", "strategy: {business_key: {constraint: booked_pkey}}",
			"retention: 30d", "retention: forever")
		there := false
		s.Facts.Unique = &there
		if found, _ := findAnswers(s, Fail); len(found) != 1 || found[0] != 7 {
			t.Errorf("%v fail", found)
		}
	})
}

// markerEdits changes the strategy to marker. With strategy marker, the store has markers but no rows of applied
// messages.
var markerEdits = []string{"strategy: inbox\n    ack: after_receipt\n    alerts: {pending_age: 60s}", "strategy: marker"}

// redisPolicy is a policy whose claims are leased keys in Redis.
const redisPolicy = `version: 1
stores:
  keys: {redis: {addresses: ["127.0.0.1:6379"], persistence: seconds, because: "it has a replica"}}
sources:
  payments: {kafka: {brokers: "127.0.0.1:9092", topics: [payments]}}
consumers:
  charge:
    from: payments
    store: keys
    strategy: lease
    identity: {id: "header:id"}
    retention: 30d
    lanes: none
    on_conflict: halt
    on_bad_identity: halt
    retry: {on_exhausted: halt}
    effect: {kind: external, says: a second one charges twice}
    handler: {http: {url: "http://127.0.0.1:1/charge", window: 24h}}
`

func TestAQuestionThatDoesNotApplySaysSo(t *testing.T) {
	byNature := []string{markerEdits[0], "strategy: {natural: {order: irrelevant}}", "    identity: {id: id, source: source}\n    retention: 30d\n", "", "kind: ledger", "kind: projection"}
	ask := func(s *Subject, number int) Answer { return Questions()[number-1].Answer(s) }
	for _, number := range []int{2, 11, 13} {
		t.Run(fmt.Sprintf("K3_%d_of_a_consumer_that_keeps_no_ids", number), func(t *testing.T) {
			if a := ask(subject(t, validPolicy, byNature...), number); a.Result != NotApplicable {
				t.Errorf("%+v", a)
			}
		})
	}
	t.Run("K3_11_of_a_store_that_keeps_no_rows", func(t *testing.T) {
		s := subject(t, redisPolicy)
		s.Facts, s.NoFacts = nil, "Redis"
		if a := ask(s, 11); a.Result != NotApplicable || strings.Contains(a.Evidence, "row with its identity") {
			t.Errorf("%+v", a)
		}
	})
	t.Run("K3_2_of_a_store_that_keeps_no_derivations", func(t *testing.T) {
		s := subject(t, redisPolicy)
		s.Facts, s.NoFacts = nil, "Redis"
		if a := ask(s, 2); a.Result != CannotKnow || !strings.Contains(a.Evidence, "Redis does not record how ids were found") {
			t.Errorf("%+v", a)
		}
	})
	t.Run("K3_25_markers_count_no_copies", func(t *testing.T) {
		s := subject(t, validPolicy, markerEdits...)
		if a := ask(s, 25); a.Result != CannotKnow || strings.Contains(a.Evidence, "unexercised") || !strings.Contains(a.Remedy, "semel_duplicates_total") {
			t.Errorf("%+v", a)
		}
	})
	t.Run("K3_25_rows_count_copies", func(t *testing.T) {
		s := subject(t, validPolicy)
		s.Facts.Upkeep.Latest = 3
		if a := ask(s, 25); a.Result != CannotKnow || !strings.Contains(a.Evidence, "no copy was counted on its latest 3 rows") {
			t.Errorf("%+v", a)
		}
	})
}

func TestWhatCannotBeReadIsNotKnown(t *testing.T) {
	without := func(change func(*Subject)) ([]int, []int) {
		s := subject(t, validPolicy)
		change(s)
		failed, _ := findAnswers(s, Fail)
		unknown, _ := findAnswers(s, CannotKnow)
		return failed, unknown
	}
	t.Run("K3_a_store_that_is_down", func(t *testing.T) {
		failed, unknown := without(func(s *Subject) { s.Facts, s.NoFacts = nil, "nobody answers there" })
		if len(failed) > 0 || len(unknown) != 10 {
			t.Errorf("%v fail, and %v are not known", failed, unknown)
		}
	})
	t.Run("K3_a_broker_that_is_down", func(t *testing.T) {
		failed, unknown := without(func(s *Subject) { s.Broker.NoHorizon, s.Broker.NoPositions = "refused", "refused" })
		if len(failed) > 0 || len(unknown) != 6 {
			t.Errorf("%v fail, and %v are not known", failed, unknown)
		}
	})
}
