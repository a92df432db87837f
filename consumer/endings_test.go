package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/eventkind"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// halts runs a consumer and checks that the run ends with ErrHalted.
func halts(t *testing.T, s *memstore.Store, handle func(context.Context, *memstore.Tx, *semel.Message) error, c consumer.Config) (semel.Counts, error) {
	t.Helper()
	consumer := mustNew(t, s, handle, c)
	err := consumer.Run(t.Context())
	if !errors.Is(err, semel.ErrHalted) {
		t.Errorf("Run says %v, want ErrHalted", err)
	}
	addsUp(t, consumer.Counts())
	return consumer.Counts(), err
}

func TestConflicts(t *testing.T) {
	two := func() *listSource {
		return newListSource(message("1", `{"n":1}`), message("2", `{}`), message("1", `{"n":2}`), message("3", `{}`))
	}
	bubble(t, "trap_73_the_same_id_with_another_payload_is_parked_and_never_applied", func(t *testing.T) {
		store, source := memstore.New(), two()
		counts := runs(t, store, add, config(source))
		if counts.Applied != 3 || counts.Conflicts != 1 || len(source.settled) != 4 || row(t, store, "1").Reason != semel.ReasonConflict {
			t.Errorf("%+v", counts)
		}
		again := newListSource(message("1", `{"n":2}`), message("1", `{"n":1}`), message("1", `{"n":3}`))
		if counts := runs(t, store, add, config(again)); counts.Duplicates != 2 || counts.Conflicts != 1 || len(rows(t, store)) != 2 || effect(t, store, "1") != "1" {
			t.Errorf("again: %+v, rows %+v", counts, rows(t, store))
		}
	})
	bubble(t, "A5_OnConflict_accept_first_settles_and_counts_and_keeps_no_row", func(t *testing.T) {
		store, source, seen := memstore.New(), two(), &witness{}
		c := config(source)
		c.OnConflict, c.Observers = consumer.ActionKeepFirst, []semel.Observer{seen}
		counts := runs(t, store, add, c)
		if counts.Applied != 3 || counts.Conflicts != 1 || len(source.settled) != 4 || len(rows(t, store)) != 0 || len(seen.eventsOf(semel.EventConflict)) != 1 || seen.eventsOf(semel.EventConflict)[0].Reason != semel.ReasonConflict {
			t.Errorf("%+v, rows %+v", counts, rows(t, store))
		}
	})
	bubble(t, "A5_OnConflict_halt_stops_with_the_message_unsettled_and_nothing_behind_it_in_its_lane", func(t *testing.T) {
		store, source, seen := memstore.New(), two(), &witness{}
		c := config(source)
		c.OnConflict, c.Observers = consumer.ActionHalt, []semel.Observer{seen}
		counts, err := halts(t, store, add, c)
		if counts.Applied != 2 || counts.Failed != 1 || counts.InFlight != 1 || source.isSettled(2) != 0 || source.isSettled(3) != 0 || effect(t, store, "3") != "" {
			t.Errorf("%+v, settled %v", counts, source.settled)
		}
		if !strings.Contains(fmt.Sprint(err), `message "1"`) || !strings.Contains(fmt.Sprint(err), "conflict") || len(seen.eventsOf(eventkind.Failed)) != 1 {
			t.Errorf("%v, events %+v", err, seen.events)
		}
	})
}

func TestMessagesWithoutAUsableIdentity(t *testing.T) {
	corpus := func() *listSource {
		return newListSource(message("", `{"a":1}`), message("1", `{}`), message("", `{"a":1}`), message(strings.Repeat("x", 5000), `{}`), message("", `{"a":2}`), message("2", `{}`))
	}
	bubble(t, "trap_76_an_empty_id_is_never_a_key_and_its_message_is_parked_alone", func(t *testing.T) {
		store, source, ran := memstore.New(), corpus(), 0
		counts := runs(t, store, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			ran++
			return add(ctx, tx, m)
		}, config(source))
		if counts.Applied != 2 || ran != 2 || counts.Parked != 3 || counts.Duplicates != 1 || len(source.settled) != 6 {
			t.Errorf("%+v, ran %d", counts, ran)
		}
		reasons := map[semel.Reason]int{}
		for _, r := range rows(t, store) {
			reasons[r.Reason] += 1 + r.Repeated
			if !r.Surrogate || r.Attempts != 0 {
				t.Errorf("%+v", r)
			}
		}
		if reasons[semel.ReasonNoIdentity] != 3 || reasons[reasonname.IdentityTooLong] != 1 {
			t.Errorf("reasons %v", reasons)
		}
	})
	bubble(t, "case_8_copies_of_a_message_without_identity_are_counted_on_its_row", func(t *testing.T) {
		store := memstore.New()
		for range 3 {
			runs(t, store, add, config(newListSource(message("", `{"a":1}`), message("", `{"a":1}`))))
		}
		if all := rows(t, store); len(all) != 1 || all[0].Repeated != 5 {
			t.Errorf("%+v", all)
		}
	})
	bubble(t, "A4_OnBadIdentity_halt_stops_before_the_message_and_leaves_it_unsettled", func(t *testing.T) {
		store, source := memstore.New(), corpus()
		c := config(source)
		c.OnBadIdentity = consumer.ActionHalt
		counts, err := halts(t, store, add, c)
		if counts.Failed == 0 || len(rows(t, store)) != 0 || source.isSettled(0) != 0 || !strings.Contains(fmt.Sprint(err), "no identity") {
			t.Errorf("%+v, %v", counts, err)
		}
	})
	bubble(t, "trap_17_what_a_source_cannot_read_is_parked_with_its_raw_bytes_and_blocks_nobody", func(t *testing.T) {
		raw := "{\"a\":\x00\xff\xfe broken"
		store, source := memstore.New(), newListSource(message("1", `{}`), message("x", raw), message("2", `{}`))
		source.pending[1].Refused = semel.ReasonMalformed
		counts := runs(t, store, add, config(source))
		all := rows(t, store)
		if counts.Applied != 2 || counts.Parked != 1 || len(all) != 1 || string(all[0].Message.Body) != raw || all[0].Reason != semel.ReasonMalformed || len(source.settled) != 3 {
			t.Errorf("%+v, %+v", counts, all)
		}
	})
	bubble(t, "an_identity_that_panics_harms_its_message_only", func(t *testing.T) {
		store := memstore.New()
		c := config(newListSource(message("1", `{}`), message("2", `{}`)))
		c.Identity = identity.Func(func(m *semel.Message) (string, string, error) {
			if id, _ := m.Headers.Get("id"); string(id) == "1" {
				panic("no")
			}
			return "", "2", nil
		})
		if counts := runs(t, store, add, c); counts.Applied != 1 || counts.Parked != 1 {
			t.Errorf("%+v", counts)
		}
	})
}

func TestRetryThenHalt(t *testing.T) {
	bubble(t, "C5_exhausted_attempts_halt_where_the_policy_says_so_and_the_message_comes_again", func(t *testing.T) {
		st, source := memstore.New(), newListSource(numbered("m", 5)...)
		c := config(source)
		c.Retry.MaxAttempts, c.Retry.OnExhausted = 3, consumer.ActionHalt
		ran := 0
		counts, err := halts(t, st, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			if m.Identity.ID == "m2" {
				ran++
				return errTest
			}
			return add(ctx, tx, m)
		}, c)
		if counts.Applied != 2 || counts.Failed != 1 || counts.InFlight != 2 || ran != 3 || source.isSettled(2) != 0 || !errors.Is(err, errTest) || outcome(t, st, "m2").Kind != store.Fresh {
			t.Errorf("%+v, ran %d, %v", counts, ran, err)
		}
		if counts := runs(t, st, add, config(newListSource(numbered("m", 5)...))); counts.Applied != 3 || counts.Duplicates != 2 {
			t.Errorf("afterwards %+v", counts)
		}
	})
}

func TestWaitsInMemory(t *testing.T) {
	bubble(t, "case_6_a_waiting_message_pauses_its_lane_and_no_other_and_resumes_it", func(t *testing.T) {
		src := watchSource(append(numbered("a", 3), numbered("b", 3)...)...)
		var flows []string
		src.onFlow = func(l source.Lane, on bool) { flows = append(flows, fmt.Sprint(l.ID, on)) }
		failed := false
		counts := runs(t, memstore.New(), func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			if m.Identity.ID == "a1" && !failed {
				failed = true
				return errTest
			}
			return add(ctx, tx, m)
		}, config(src))
		if fmt.Sprint(flows) != "[afalse atrue]" || counts.Applied != 6 {
			t.Errorf("flows %v, %+v", flows, counts)
		}
	})
	bubble(t, "case_6_without_lanes_nothing_is_paused_and_the_others_go_on", func(t *testing.T) {
		src := watchSource(numbered("a", 10)...)
		src.onFlow = func(l source.Lane, on bool) { t.Errorf("lane %s is set to %v", l.ID, on) }
		c := config(src)
		c.Lanes = consumer.LanesNone
		began, failed, last := time.Now(), false, time.Duration(0)
		runs(t, watch(memstore.New()), func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			if m.Identity.ID == "a1" && !failed {
				failed = true
				return semel.RetryAfter(errTest, 5*time.Second)
			}
			if m.Identity.ID == "a9" {
				last = time.Since(began)
			}
			return nil
		}, c)
		if last >= 5*time.Second || time.Since(began) < 5*time.Second {
			t.Errorf("the last handler ran after %v, the run took %v", last, time.Since(began))
		}
	})
	bubble(t, "case_6_without_an_inbox_a_wait_longer_than_hold_ends_as_Retry_Then_says", func(t *testing.T) {
		st, g, seen := memstore.New(), bury(t, message("1", `{}`)), &witness{}
		c := deadConfig(g)
		c.Observers = []semel.Observer{seen}
		counts := runs(t, plain(st), func(context.Context, *memstore.Tx, *semel.Message) error {
			return semel.RetryAfter(errTest, 11*time.Second)
		}, c)
		if letters := seen.eventsOf(semel.EventDeadLettered); counts.DeadLettered != 1 || g.lies(t)["1"] != 1 || len(letters) != 1 || letters[0].Reason != reasonname.WaitTooLong {
			t.Errorf("%+v, %+v", counts, seen.events)
		}
	})
	bubble(t, "C5_waits_double_with_full_jitter_up_to_their_cap", func(t *testing.T) {
		seen := &witness{}
		c := config(newListSource(message("1", `{}`)))
		c.Observers, c.Retry = []semel.Observer{seen}, consumer.RetryPolicy{MaxAttempts: 200, InitialDelay: 100 * time.Millisecond, MaxDelay: 3 * time.Second}
		runs(t, memstore.New(), func(context.Context, *memstore.Tx, *semel.Message) error { return errTest }, c)
		waits := seen.eventsOf(eventkind.Retry)
		longest := time.Duration(0)
		for i, e := range waits {
			if upper := min(100*time.Millisecond<<min(i, 10), 3*time.Second); e.Wait <= 0 || e.Wait > upper {
				t.Errorf("wait %d is %v, more than %v", i, e.Wait, upper)
			}
			longest = max(longest, e.Wait)
		}
		if len(waits) != 199 || longest < 2*time.Second {
			t.Errorf("%d waits, the longest %v", len(waits), longest)
		}
	})
}

func TestAConflictThatHalts(t *testing.T) {
	bubble(t, "law_8_nothing_behind_a_conflict_that_halts_takes_effect_also_where_its_row_is_known", func(t *testing.T) {
		st := memstore.New()
		c := config(newListSource(message("1", `{}`), message("1", `{"other":1}`)))
		if counts := runs(t, st, add, c); counts.Conflicts != 1 || len(rows(t, st)) != 1 {
			t.Fatalf("%+v", counts)
		}
		c = config(newListSource(message("1", `{"other":1}`), message("2", `{}`)))
		c.OnConflict = consumer.ActionHalt
		counts, err := consume(t, st, add, c)
		if !errors.Is(err, semel.ErrHalted) || counts.Failed != 1 || effect(t, st, "2") != "" || outcome(t, st, "2").Kind != store.Fresh {
			t.Errorf("%+v, %v: the message behind it has effect %q", counts, err, effect(t, st, "2"))
		}
	})
}
