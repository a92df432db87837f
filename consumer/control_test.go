package consumer_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/eventkind"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// pause stores an operator's command that pauses or resumes a consumer.
func pause(t *testing.T, s admin.Controls, name string, paused bool) {
	t.Helper()
	verb := map[bool]string{true: "pause", false: "resume"}[paused]
	if err := s.Pause(context.Background(), name, paused, store.Act{Verb: verb, Who: "ana", Why: "the disk\nis full"}); err != nil {
		t.Fatal(err)
	}
}

// heard is a time after which a consumer has surely noticed an operator's command.
const heard = 3 * time.Second

// pausedText is the reason that Ready returns after pause.
const pausedText = `paused by ana: the disk\nis full`

func TestAPausedConsumer(t *testing.T) {
	bubble(t, "I0_it_takes_nothing_more_and_ends_what_is_in_memory", func(t *testing.T) {
		store, src := memstore.New(), newListSource(numbered("m", 4)...)
		src.endless = true
		release := make(chan struct{})
		handle := func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			<-release
			return add(ctx, tx, m)
		}
		c, seen := config(src), &witness{}
		c.Workers, c.MaxUnacked.Messages, c.Timeout = 1, 2, time.Hour
		c.Observers = []semel.Observer{seen}
		running := mustNew(t, store, handle, c)
		run := start(t, running)
		synctest.Wait()
		pause(t, store, "billing", true)
		pass(heard)
		close(release)
		synctest.Wait()
		pass(time.Hour)
		if n := running.Counts(); n.Applied != 2 || n.Deliveries != 2 || n.InFlight != 0 {
			t.Errorf("while paused: %+v", n)
		}
		if ready, why := running.Ready(); !ready || why != pausedText {
			t.Errorf("ready %t: %q", ready, why)
		}
		pause(t, store, "billing", false)
		pass(heard)
		if n := running.Counts(); n.Applied != 4 {
			t.Errorf("after it was resumed: %+v", n)
		}
		if ready, why := running.Ready(); !ready || why != "" {
			t.Errorf("ready %t: %q", ready, why)
		}
		told := seen.eventsOf(eventkind.Control)
		if len(told) != 2 || told[0].Consumer != "billing" || told[0].Reason != semel.ReasonPaused || told[0].Err == nil || told[0].Err.Error() != pausedText || told[1].Reason != "" {
			t.Errorf("told %+v", told)
		}
		run.stop()
		if err := run.wait(); err != nil {
			t.Error(err)
		}
	})
	bubble(t, "I0_one_that_starts_paused_takes_nothing_and_is_ready", func(t *testing.T) {
		store, src := memstore.New(), newListSource(numbered("m", 3)...)
		pause(t, store, "billing", true)
		running := mustNew(t, store, add, config(src))
		run := start(t, running)
		pass(time.Hour)
		if ready, why := running.Ready(); src.fetches != 0 || !ready || why != pausedText {
			t.Errorf("%d fetches, ready %t: %q", src.fetches, ready, why)
		}
		pause(t, store, "billing", false)
		if err := run.wait(); err != nil || running.Counts().Applied != 3 {
			t.Errorf("%+v, %v", running.Counts(), err)
		}
	})
	bubble(t, "I0_a_stop_ends_it_at_once", func(t *testing.T) {
		store, src := memstore.New(), newListSource(numbered("m", 3)...)
		pause(t, store, "billing", true)
		run := start(t, mustNew(t, store, add, config(src)))
		pass(time.Minute)
		began := time.Now()
		run.stop()
		if err := run.wait(); err != nil || time.Since(began) > time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
	bubble(t, "I0_it_is_not_idle", func(t *testing.T) {
		store, src := memstore.New(), newListSource(numbered("m", 3)...)
		src.endless = true
		c := config(src)
		c.IdleExit = 5 * time.Second
		pause(t, store, "billing", true)
		running := mustNew(t, store, add, c)
		run := start(t, running)
		pass(time.Hour)
		select {
		case err := <-run.ended:
			t.Fatalf("it ended: %v", err)
		default:
		}
		pause(t, store, "billing", false)
		if err := run.wait(); err != nil || running.Counts().Applied != 3 {
			t.Errorf("%+v, %v", running.Counts(), err)
		}
	})
	bubble(t, "I0_one_that_was_about_to_end_idle_does_not", func(t *testing.T) {
		store, src := memstore.New(), newListSource(numbered("m", 3)...)
		src.endless = true
		c := config(src)
		c.IdleExit = 2*time.Second + 2*time.Millisecond // the consumer notices the pause after 2 s
		run := start(t, mustNew(t, store, add, c))
		pass(time.Second)
		pause(t, store, "billing", true)
		pass(time.Hour)
		select {
		case err := <-run.ended:
			t.Fatalf("it ended: %v", err)
		default:
		}
		run.stop()
		if err := run.wait(); err != nil {
			t.Error(err)
		}
	})
	bubble(t, "I0_the_fetch_under_way_ends_and_lanes_are_taken_away_as_ever", func(t *testing.T) {
		store, src := memstore.New(), newListSource(numbered("m", 3)...)
		src.endless = true
		c := config(src)
		c.IdleExit = time.Minute
		running := mustNew(t, store, add, c)
		run := start(t, running)
		pass(time.Second)
		synctest.Wait()
		fetches := src.fetches
		pause(t, store, "billing", true)
		pass(time.Hour)
		synctest.Wait()
		src.pending = newListSource(numbered("m", 6)[3:]...).pending
		pass(time.Hour)
		synctest.Wait()
		if n := running.Counts(); n.Deliveries != 3 || src.fetches != fetches {
			t.Errorf("%+v, %d fetches and %d before", n, src.fetches, fetches)
		}
		began := time.Now()
		within, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		src.observer.Revoking(within, source.Lane{ID: "m", Epoch: 1})
		src.observer.Given(source.Lane{ID: "m", Epoch: 2})
		if time.Since(began) > time.Second {
			t.Errorf("the lane was lost after %v", time.Since(began))
		}
		for i := range src.pending {
			src.pending[i].Lane.Epoch = 2
		}
		pause(t, store, "billing", false)
		if err := run.wait(); err != nil || running.Counts().Applied != 6 {
			t.Errorf("%+v, %v", running.Counts(), err)
		}
	})
	bubble(t, "I0_another_consumer_of_its_store_goes_on", func(t *testing.T) {
		store := memstore.New()
		pause(t, store, "billing", true)
		first, other := newListSource(numbered("m", 3)...), newListSource(numbered("m", 3)...)
		run := start(t, mustNew(t, store, add, config(first)))
		c := config(other)
		c.Name = "search"
		if n := runs(t, store, add, c); n.Applied != 3 {
			t.Errorf("%+v", n)
		}
		pass(heard)
		if first.fetches != 0 {
			t.Error("the paused consumer has fetched")
		}
		run.stop()
		if err := run.wait(); err != nil {
			t.Error(err)
		}
	})
}

func TestAPausedInbox(t *testing.T) {
	bubble(t, "I0_no_row_is_claimed_and_the_run_waits_until_it_is_resumed", func(t *testing.T) {
		store := memstore.New()
		c := config(nil)
		c.Strategy = consumer.StrategyInbox
		receive(t, store, c, numbered("m", 3)...)
		pause(t, store, "billing", true)
		running := mustNew(t, store, add, c)
		ended := make(chan error, 1)
		go func() { ended <- running.Work(t.Context()) }()
		pass(time.Hour)
		if n := running.Counts(); n.Inbox.Claimed != 0 {
			t.Errorf("while paused: %+v", n)
		}
		pause(t, store, "billing", false)
		if err := <-ended; err != nil || running.Counts().Inbox.Applied != 3 {
			t.Errorf("%+v, %v", running.Counts(), err)
		}
	})
	bubble(t, "I0_a_run_with_a_source_stops_claiming_and_goes_on_in_time", func(t *testing.T) {
		store, source := memstore.New(), newListSource()
		source.endless = true
		c := config(source)
		c.Strategy = consumer.StrategyInbox
		running := mustNew(t, store, add, c)
		run := start(t, running)
		pass(time.Minute)
		pause(t, store, "billing", true)
		pass(heard)
		other := c
		other.Source = nil
		receive(t, store, other, numbered("m", 3)...)
		pass(time.Hour)
		if n := running.Counts(); n.Inbox.Claimed != 0 {
			t.Errorf("while paused: %+v", n)
		}
		pause(t, store, "billing", false)
		pass(heard)
		if n := running.Counts(); n.Inbox.Applied != 3 {
			t.Errorf("after it was resumed: %+v", n)
		}
		run.stop()
		if err := run.wait(); err != nil {
			t.Error(err)
		}
	})
}

func TestPausedCalls(t *testing.T) {
	bubble(t, "I0_a_handler_without_a_transaction_is_not_called_while_it_is_paused", func(t *testing.T) {
		store := memstore.New()
		c := config(nil)
		c.Strategy = consumer.StrategyInbox
		receive(t, store, c, numbered("m", 3)...)
		pause(t, store, "billing", true)
		called := 0
		c.Workers = 1
		running := mustNewLeased(t, store, func(context.Context, consumer.Call, *semel.Message) error { called++; return nil }, c)
		ended := make(chan error, 1)
		go func() { ended <- running.Work(t.Context()) }()
		pass(time.Hour)
		if synctest.Wait(); called != 0 {
			t.Errorf("%d calls while paused", called)
		}
		pause(t, store, "billing", false)
		if err := <-ended; err != nil || called != 3 {
			t.Errorf("%d calls, %v", called, err)
		}
	})
}

// receive stores messages in the inbox, like Accept of the consumer.
func receive(t *testing.T, s *memstore.Store, c consumer.Config, messages ...*semel.Message) {
	t.Helper()
	b, _, err := s.Begin(t.Context(), store.TxOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := mustNew(t, s, add, c).Accept(t.Context(), b.Tx(store.All), messages...); err != nil {
		t.Fatal(err)
	}
	if r := b.Commit(t.Context(), store.Ending{}); r.Outcome != store.Committed {
		t.Fatalf("%+v", r)
	}
}

func TestPausedProcess(t *testing.T) {
	bubble(t, "I0_it_hands_back_with_a_reason_and_no_charge", func(t *testing.T) {
		store := memstore.New()
		pause(t, store, "billing", true)
		running := mustNew(t, store, add, config(nil))
		all := numbered("m", 2)
		for range 2 {
			d, err := running.ProcessAll(t.Context(), all)
			if err != nil || len(d) != 2 || d[1].Kind != semel.Nack || d[1].After <= 0 || d[1].Reason != semel.ReasonPaused || d[1].Charged {
				t.Errorf("%+v, %v", d, err)
			}
		}
		pause(t, store, "billing", false)
		pass(heard)
		if d, err := running.Process(t.Context(), all[0]); err != nil || d.Kind != semel.Ack {
			t.Errorf("%+v, %v", d, err)
		}
		limit(t, store, 1)
		pass(heard)
		began := time.Now()
		for _, m := range numbered("n", 10) {
			if d, err := running.Process(t.Context(), m); err != nil || d.Kind != semel.Ack {
				t.Errorf("%+v, %v", d, err)
			}
		}
		if time.Since(began) > time.Second {
			t.Errorf("10 calls took %v: they are not limited", time.Since(began))
		}
		if err := running.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestAControlThatCannotBeRead(t *testing.T) {
	bubble(t, "I0_what_was_wanted_last_stays_and_it_is_said_once", func(t *testing.T) {
		var down atomic.Bool
		store := memstore.New(memstore.Fail(func(op string) error {
			if op == "control" && down.Load() {
				return errTest
			}
			return nil
		}))
		source, lines := newListSource(numbered("m", 3)...), &log{}
		c := config(source)
		c.Logger = lines.logger()
		pause(t, store, "billing", true)
		running := mustNew(t, store, add, c)
		run := start(t, running)
		pass(heard)
		down.Store(true)
		pass(time.Hour)
		if _, why := running.Ready(); source.fetches != 0 || why != pausedText {
			t.Errorf("%d fetches, %q", source.fetches, why)
		}
		down.Store(false)
		pause(t, store, "billing", false)
		if err := run.wait(); err != nil || running.Counts().Applied != 3 {
			t.Errorf("%+v, %v", running.Counts(), err)
		}
		if n := strings.Count(lines.String(), "cannot be read"); n != 1 {
			t.Errorf("it is logged %d times:\n%s", n, lines)
		}
	})
	bubble(t, "I0_nothing_is_taken_where_it_is_not_known_at_the_start", func(t *testing.T) {
		store := memstore.New(memstore.Fail(func(op string) error {
			if op == "control" {
				return errTest
			}
			return nil
		}))
		source := newListSource(numbered("m", 3)...)
		if err := mustNew(t, store, add, config(source)).Run(t.Context()); !errors.Is(err, errTest) || source.fetches != 0 {
			t.Errorf("%d fetches, %v", source.fetches, err)
		}
	})
}
