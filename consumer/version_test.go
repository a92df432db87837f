package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// versioned returns a message with a version of a stream.
func versioned(stream string, number int) *semel.Message {
	return message(fmt.Sprintf("%s-%d", stream, number), fmt.Sprintf(`{"order":%q,"version":%d}`, stream, number))
}

// guards returns a configuration with versions. A run ends when no row is due.
func guards(src source.Source) consumer.Config {
	c := config(src)
	c.Version = &consumer.VersionPolicy{By: identity.Stream("body:/order").At("body:/version")}
	c.IdleExit = 3 * time.Second
	return c
}

// follows is a handler that records the versions of a stream in the order of their effects.
func follows(_ context.Context, tx *memstore.Tx, m *semel.Message) error {
	of, err := semel.JSON[struct {
		Order   string
		Version int
	}](m)
	if err != nil {
		return err
	}
	before, err := tx.Get("stream " + of.Order)
	if err != nil {
		return err
	}
	return tx.Set("stream "+of.Order, fmt.Appendf(before, "%d ", of.Version))
}

// upTo returns the text that the handler follows records for a stream up to version n.
func upTo(n int) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "%d ", i+1)
	}
	return text.String()
}

func streamOf(s *memstore.Store, name string) string { return string(s.Get("stream " + name)) }

func TestVersions(t *testing.T) {
	bubble(t, "B4_B9_trap_T53_they_take_effect_in_their_order_whatever_order_they_come_in", func(t *testing.T) {
		st, source := memstore.New(), newListSource(versioned("a", 3), versioned("a", 5), versioned("b", 2), versioned("a", 1), versioned("a", 2), versioned("b", 1), versioned("a", 4))
		c := guards(source)
		c.Batch.MaxSize = 1
		source.endless = true
		counts := runs(t, st, follows, c)
		if streamOf(st, "a") != upTo(5) || streamOf(st, "b") != upTo(2) {
			t.Errorf("%q and %q", streamOf(st, "a"), streamOf(st, "b"))
		}
		if counts.Waiting < 3 || counts.Applied+counts.Waiting != 7 || counts.Inbox.Applied != counts.Waiting || len(source.settled) != 7 { // the last version may arrive before the third has run
			t.Errorf("%+v", counts)
		}
	})
	bubble(t, "B4_B9_one_that_is_discarded_in_a_batch_that_is_taken_back_is_not_passed_before_its_turn", func(t *testing.T) {
		st, calls := memstore.New(), 0
		handle := func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			if m.Identity.ID == "a-2" {
				return semel.Discard("nothing to do")
			}
			if m.Identity.ID == "a-1" {
				if calls++; calls == 2 { // the first run was rolled back with the batch
					return errors.New("not yet")
				}
			}
			return follows(ctx, tx, m)
		}
		c := guards(newListSource(versioned("a", 1), versioned("a", 2), versioned("a", 3)))
		c.Lanes, c.Workers, c.Batch.MaxSize = consumer.LanesNone, 1, 2
		runs(t, st, handle, c)
		if at, err := st.Streams(t.Context(), admin.StreamFilter{}); err != nil || len(at) != 1 || at[0].Last != 3 || at[0].Blocked != 0 || streamOf(st, "a") != "1 3 " {
			t.Errorf("%+v, %v, %q", at, err, streamOf(st, "a"))
		}
	})
	bubble(t, "B4_B16_one_whose_effect_is_there_already_moves_its_stream", func(t *testing.T) {
		st := memstore.New()
		handle := func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			if m.Identity.ID == "a-1" {
				return semel.Duplicate(errors.New("the order exists"))
			}
			return follows(ctx, tx, m)
		}
		counts := runs(t, st, handle, guards(newListSource(versioned("a", 1), versioned("a", 2), versioned("a", 3))))
		if at, err := st.Streams(t.Context(), admin.StreamFilter{}); err != nil || len(at) != 1 || at[0].Last != 3 || at[0].Blocked != 0 || counts.Duplicates != 1 || streamOf(st, "a") != "2 3 " {
			t.Errorf("%+v, %v, %+v, %q", at, err, counts, streamOf(st, "a"))
		}
	})
	bubble(t, "B4_trap_T53_first_seen_waits_for_a_first_version_that_fails", func(t *testing.T) {
		st, mended := memstore.New(), false
		handle := func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			if m.Identity.ID == "a-5" && !mended {
				return semel.Permanent(errors.New("no such order"))
			}
			return follows(ctx, tx, m)
		}
		c := guards(newListSource(versioned("a", 5), versioned("a", 6), versioned("a", 7)))
		c.Version.FirstSeen = true
		runs(t, st, handle, c)
		all := rows(t, st)
		if len(all) != 3 || streamOf(st, "a") != "" {
			t.Fatalf("%+v, %q", all, streamOf(st, "a"))
		}
		mended = true
		for _, r := range all {
			if r.State == store.StateParked {
				if err := errors.Join(st.Requeue(t.Context(), store.Act{Verb: "retry", Who: "ann", Why: "mended"}, r.Seen())...); err != nil {
					t.Fatal(err)
				}
			}
		}
		again := guards(newListSource())
		again.Version.FirstSeen = true
		runs(t, st, handle, again)
		if streamOf(st, "a") != "5 6 7 " {
			t.Errorf("%q", streamOf(st, "a"))
		}
	})
	bubble(t, "B9_several_of_a_stream_in_one_batch_need_no_row", func(t *testing.T) {
		st, source := memstore.New(), newListSource(versioned("a", 3), versioned("a", 1), versioned("a", 2), versioned("a", 4))
		counts := runs(t, st, follows, guards(source))
		if streamOf(st, "a") != upTo(4) || counts.Applied != 4 || len(rows(t, st)) != 0 {
			t.Errorf("%q after %+v", streamOf(st, "a"), counts)
		}
	})
	bubble(t, "B4_trap_T54_one_that_was_passed_is_discarded_and_counted", func(t *testing.T) {
		other := message("other", `{"order":"a","version":2}`)
		conflict := message("conflict", `{"order":"a","version":3,"total":7}`)
		st := memstore.New()
		counts := runs(t, st, follows, guards(newListSource(versioned("a", 1), versioned("a", 2), versioned("a", 3), other, conflict)))
		if counts.Applied != 3 || counts.Discarded != 1 || counts.Parked != 1 {
			t.Errorf("%+v", counts)
		}
		if r := row(t, st, "other"); r.Reason != reasonname.Stale || r.Stream != "a" || r.Version != 2 {
			t.Errorf("%+v", r)
		}
		if r := row(t, st, "conflict"); r.Reason != semel.ReasonConflict || r.State != store.StateParked {
			t.Errorf("%+v", r)
		}
	})
	bubble(t, "B4_trap_T57_trap_T61_what_has_no_version_is_set_aside", func(t *testing.T) {
		bodies := []string{`{"order":"a"}`, `{"order":"a","version":0}`, `{"order":"a","version":null}`, `{"order":"a","version":-1}`, `{"order":"a","version":1.5}`,
			`{"order":"a","version":9223372036854775808}`, `{"order":"a","version":"one"}`, `{"order":"a","version":"01"}`, `{"version":1}`, `{"order":"","version":1}`, `{"order":null,"version":1}`, `[]`}
		var all []*semel.Message
		for i, b := range bodies {
			all = append(all, message(fmt.Sprint("m", i), b))
		}
		st := memstore.New()
		counts := runs(t, st, follows, guards(newListSource(all...)))
		for _, r := range rows(t, st) {
			if r.State != store.StateParked || r.Reason != reasonname.NoVersion || r.Surrogate || r.LastError == "" {
				t.Errorf("%s: %+v", r.Message.Body, r)
			}
		}
		if counts.Parked != int64(len(bodies)) {
			t.Errorf("%+v", counts)
		}
	})
	bubble(t, "B4_first_seen_begins_where_the_stream_is", func(t *testing.T) {
		st := memstore.New()
		c := guards(newListSource(versioned("a", 7), versioned("a", 8), versioned("a", 6)))
		c.Version.FirstSeen = true
		counts := runs(t, st, follows, c)
		if streamOf(st, "a") != "7 8 " || counts.Discarded != 1 {
			t.Errorf("%q after %+v", streamOf(st, "a"), counts)
		}
	})
	bubble(t, "B4_one_that_its_handler_discards_is_passed", func(t *testing.T) {
		st := memstore.New()
		handle := func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			if m.Identity.ID == "a-2" {
				return semel.Discard("not ours")
			}
			return follows(ctx, tx, m)
		}
		counts := runs(t, st, handle, guards(newListSource(versioned("a", 1), versioned("a", 2), versioned("a", 3))))
		if streamOf(st, "a") != "1 3 " || counts.Discarded != 1 || counts.Applied+counts.Inbox.Applied != 2 {
			t.Errorf("%q after %+v", streamOf(st, "a"), counts)
		}
	})
}

// TestRandomVersions applies streams whose versions arrive in random order. There are duplicates, failing
// handlers and commits whose responses are lost, in several runs.
func TestRandomVersions(t *testing.T) {
	t.Run("B4_B9_they_end_in_the_state_that_the_ordered_stream_gives", func(t *testing.T) {
		for seed := range uint64(300) {
			synctest.Test(t, func(t *testing.T) { versionProgram(t, seed) })
		}
	})
}

func versionProgram(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 2))
	var all []*semel.Message
	lengths := map[string]int{}
	for s := range 1 + random.IntN(4) {
		name := fmt.Sprint("s", s)
		lengths[name] = 1 + random.IntN(12)
		for n := range lengths[name] {
			m := versioned(name, n+1)
			m.Topic = fmt.Sprint("lane", random.IntN(2))
			all = append(all, m)
			if random.IntN(4) == 0 {
				all = append(all, m)
			}
		}
	}
	window := 1 + random.IntN(len(all))
	for i := range all {
		j := min(len(all)-1, i+random.IntN(window))
		all[i], all[j] = all[j], all[i]
	}
	var mutex sync.Mutex
	left := 6
	store := memstore.New(memstore.Fail(func(op string) error {
		mutex.Lock()
		defer mutex.Unlock()
		if op != "rows" && op != "control" && left > 0 && random.IntN(8) == 0 {
			left--
			return errors.New("down")
		}
		return nil
	}))
	fails := map[string]int{}
	handle := func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
		if err := follows(ctx, tx, m); err != nil {
			return err
		}
		mutex.Lock()
		defer mutex.Unlock()
		if _, known := fails[m.Identity.ID]; !known {
			fails[m.Identity.ID] = max(0, random.IntN(8)-5)
		}
		if fails[m.Identity.ID]--; fails[m.Identity.ID] >= 0 {
			return errTest
		}
		return nil
	}
	for _, part := range [][]*semel.Message{all[:len(all)/2], all[len(all)/2:], nil} {
		source := newListSource(slices.Clone(part)...)
		source.endless = true
		c := guards(source)
		c.Workers, c.Batch.MaxSize = 1+random.IntN(4), 1+random.IntN(20)
		c.Lanes = consumer.LaneMode(random.IntN(3))
		c.Retry.SerialAfter = 1000
		if random.IntN(3) == 0 {
			c.Strategy = consumer.StrategyInbox
			c.AckOnReceipt = random.IntN(2) == 1
		}
		runs(t, store, handle, c, faults.Plan{Seed: seed + 1})
	}
	for name, n := range lengths {
		if got := streamOf(store, name); got != upTo(n) {
			t.Errorf("seed %d: %s is %q of %d versions", seed, name, got, n)
		}
	}
}

func TestVersionsOfSeveralStreams(t *testing.T) {
	bubble(t, "B9_trap_T56_a_version_that_comes_twice_while_it_waits_is_applied_once", func(t *testing.T) {
		other := message("other", `{"order":"a","version":2}`)
		st, source := memstore.New(), newListSource(versioned("a", 2), versioned("a", 2), other, versioned("a", 1))
		source.endless = true
		c := guards(source)
		c.Batch.MaxSize = 1
		counts := runs(t, st, follows, c)
		if streamOf(st, "a") != upTo(2) || counts.Duplicates != 1 || counts.Inbox.Applied != 1 || counts.Inbox.Discarded != 1 {
			t.Errorf("%q after %+v", streamOf(st, "a"), counts)
		}
		if r := row(t, st, "a-2"); r.Repeated != 1 {
			t.Errorf("%+v", r)
		}
	})
	bubble(t, "B4_trap_T58_trap_T60_one_that_waits_keeps_no_other_stream_back", func(t *testing.T) {
		st, source := memstore.New(), newListSource(versioned("a", 2), versioned("b", 1), versioned("b", 2), versioned("c", 1))
		counts := runs(t, st, follows, guards(source))
		if streamOf(st, "b") != upTo(2) || streamOf(st, "c") != upTo(1) || streamOf(st, "a") != "" || counts.Waiting != 1 {
			t.Errorf("%+v", counts)
		}
	})
	bubble(t, "B4_trap_T59_the_guard_stands_in_the_store", func(t *testing.T) {
		st := memstore.New()
		runs(t, st, follows, guards(newListSource(versioned("a", 1), versioned("a", 2))))
		again := message("again", `{"order":"a","version":1}`)
		counts := runs(t, st, follows, guards(newListSource(again, versioned("a", 3))))
		if streamOf(st, "a") != upTo(3) || counts.Discarded != 1 {
			t.Errorf("%q after %+v", streamOf(st, "a"), counts)
		}
	})
	bubble(t, "B9_those_behind_one_that_is_parked_wait_until_it_is_retried", func(t *testing.T) {
		st, source := memstore.New(), newListSource(versioned("a", 1), versioned("a", 2), versioned("a", 3))
		mended := false
		handle := func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			if m.Identity.ID == "a-2" && !mended {
				return semel.Permanent(errTest)
			}
			return follows(ctx, tx, m)
		}
		counts := runs(t, st, handle, guards(source))
		if streamOf(st, "a") != upTo(1) || counts.Parked != 1 || counts.Waiting != 1 {
			t.Errorf("%q after %+v", streamOf(st, "a"), counts)
		}
		mended = true
		r := row(t, st, "a-2")
		if err := errors.Join(st.Requeue(t.Context(), store.Act{Verb: "retry", Who: "ann", Why: "mended"}, r.Seen())...); err != nil {
			t.Fatal(err)
		}
		runs(t, st, handle, working2(guards(nil)))
		if streamOf(st, "a") != upTo(3) {
			t.Errorf("%q", streamOf(st, "a"))
		}
	})
	bubble(t, "B9_a_call_puts_what_has_to_wait_into_the_inbox", func(t *testing.T) {
		st := memstore.New()
		c := mustNew(t, st, follows, guards(nil))
		for _, n := range []int{2, 1} {
			if d, err := c.Process(t.Context(), versioned("a", n)); err != nil || d.Kind != semel.Ack {
				t.Errorf("%d: %+v, %v", n, d, err)
			}
		}
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if err := mustNew(t, st, follows, guards(nil)).Work(t.Context()); err != nil || streamOf(st, "a") != upTo(2) {
			t.Errorf("%q, %v", streamOf(st, "a"), err)
		}
	})
	bubble(t, "C8_a_key_keeps_its_order_beside_versions_of_other_streams", func(t *testing.T) {
		first, second := versioned("a", 1), versioned("b", 1)
		first.Key, second.Key = []byte("k"), []byte("k")
		var ran []string
		failed := false
		handle := func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			if m.Identity.ID == "a-1" && !failed {
				failed = true
				return errTest
			}
			ran = append(ran, m.Identity.ID)
			return follows(ctx, tx, m)
		}
		c := guards(newListSource(first, second))
		c.Lanes = consumer.LanesKey
		runs(t, memstore.New(), handle, c)
		if !slices.Equal(ran, []string{"a-1", "b-1"}) {
			t.Errorf("%v", ran)
		}
	})
	bubble(t, "B4_what_cannot_keep_streams_is_refused", func(t *testing.T) {
		for says, change := range map[string]func(*consumer.Config){
			"StrategyMarker":          func(c *consumer.Config) { c.Strategy, c.NaturalReason = consumer.StrategyNatural, "of order" },
			"Version.By":              func(c *consumer.Config) { c.Version.By = identity.Stream("partition").At("offset") },
			"selector of the":         func(c *consumer.Config) { c.Version.By = identity.Stream("body:/order") },
			"Version.Start":           func(c *consumer.Config) { c.Version.Start = -1 },
			"but FirstSeen begins":    func(c *consumer.Config) { c.Version.Start, c.Version.FirstSeen = 2, true },
			"Version.Gap":             func(c *consumer.Config) { c.Version.Gap = time.Millisecond },
			"Version.Missing":         func(c *consumer.Config) { c.Version.Missing = consumer.ActionKeepFirst },
			"By: is missing":          func(c *consumer.Config) { c.Version.By = nil },
			"a store without streams": nil,
		} {
			c := guards(newListSource())
			if change == nil {
				if _, err := consumer.New(plain(memstore.New()), follows, c); !errors.Is(err, semel.ErrUnsupported) {
					t.Errorf("a store without streams: %v", err)
				}
				continue
			}
			change(&c)
			if _, err := consumer.New(memstore.New(), follows, c); err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %v", says, err)
			}
		}
	})
}
