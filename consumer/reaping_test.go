package consumer_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// sendAll delivers messages in one batch. The parameter written contains, by id, the times at which the messages were
// written.
func (f *feed) sendAll(written map[string]time.Time, order ...string) {
	f.mutex.Lock()
	for _, id := range order {
		m := message(id, `{}`)
		m.Origin.Written = uint32(written[id].Unix())
		f.queue = append(f.queue, source.Delivery{Message: m, Lane: source.Lane{ID: "a", Epoch: 1}, Before: source.Unknown, Handle: id})
	}
	f.mutex.Unlock()
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// cutOff is a broker that reports its lanes and delivers nothing.
type cutOff struct{ *broker }

func (cutOff) Fetch(context.Context, source.Bound) ([]source.Delivery, error) {
	return nil, errors.New("no broker answers")
}

// readRetention returns the retention policy that the store has for the consumer "billing".
func readRetention(t *testing.T, st store.Reaper) store.StoredRetention {
	t.Helper()
	all, err := st.Retentions(t.Context(), "billing")
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	return all[0]
}

// ran stops a consumer's run and waits until the run has ended.
func ran(t *testing.T, run *runningConsumer) {
	t.Helper()
	run.stop()
	if err := run.wait(); err != nil {
		t.Error(err)
	}
}

func TestARunRecordsItsProgress(t *testing.T) {
	bubble(t, "H2_of_all_that_was_delivered_since_the_last_record_the_oldest_counts", func(t *testing.T) {
		store, source := memstore.New(), newFeed()
		run := start(t, mustNew(t, store, add, retentionConfig(source)))
		now := time.Now()
		old := now.Add(-3 * time.Hour).Truncate(time.Second)
		source.sendAll(map[string]time.Time{"1": now, "2": old, "3": now}, "1", "2", "3")
		pass(time.Second)
		source.send("4", now)
		held := false
		for range 20 {
			pass(10 * time.Second)
			k := readRetention(t, store)
			held = held || k.Held == "a" && k.Oldest.Equal(old)
		}
		if k := readRetention(t, store); !held || k.Held != "" {
			t.Errorf("the age of the old message was recorded: %t, and finally %+v", held, k)
		}
		ran(t, run)
	})
	bubble(t, "H2_what_is_still_in_memory_is_no_progress", func(t *testing.T) {
		store, source := memstore.New(), newFeed()
		release := make(chan struct{})
		c := retentionConfig(source)
		c.Timeout = 5 * time.Hour
		run := start(t, mustNew(t, store, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			<-release
			return add(ctx, tx, m)
		}, c))
		old := time.Now().Add(-30 * time.Minute).Truncate(time.Second)
		source.send("1", old)
		pass(3 * time.Hour)
		if k := readRetention(t, store); k.Cutoff.After(old.Add(-time.Hour)) {
			t.Errorf("the cutoff is %v, although a message of %v is unsettled", k.Cutoff, old)
		}
		close(release)
		pass(5 * time.Minute)
		if k := readRetention(t, store); time.Since(k.Cutoff) > 66*time.Minute {
			t.Errorf("everything is settled, and the cutoff is %v", k.Cutoff)
		}
		ran(t, run)
	})
	bubble(t, "H2_a_run_that_is_stopped_has_not_read_all", func(t *testing.T) {
		store, source := memstore.New(), newFeed()
		began := time.Now()
		run := start(t, mustNew(t, store, add, retentionConfig(source)))
		source.send("1", time.Now())
		pass(20 * time.Second) // the consumer has not recorded its progress yet
		ran(t, run)
		if k := readRetention(t, store); k.Progress.After(began) {
			t.Errorf("the recorded progress is %v after the start", k.Progress.Sub(began))
		}
	})
	bubble(t, "H2_a_run_that_hears_nothing_of_its_source_makes_no_progress", func(t *testing.T) {
		store := memstore.New()
		began := time.Now()
		running := mustNew(t, store, add, retentionConfig(cutOff{newBroker()}))
		run := start(t, running)
		pass(3 * time.Hour)
		if ready, _ := running.Ready(); ready {
			t.Fatal("it is ready")
		}
		if k := readRetention(t, store); k.Progress.Sub(began) > time.Minute {
			t.Errorf("the recorded progress is %v after the start", k.Progress.Sub(began))
		}
		ran(t, run)
	})
}

func TestAHorizonThatCannotBeAsked(t *testing.T) {
	bubble(t, "H1_it_is_asked_again_soon_and_not_an_hour_later", func(t *testing.T) {
		store, src := memstore.New(), newBroker()
		src.horizon = source.Horizon{Late: time.Minute, Why: "a topic"}
		run := start(t, mustNew(t, store, add, retentionConfig(src)))
		pass(50 * time.Minute)
		src.set(func() { src.horizon.Late, src.err = 10*time.Hour, errors.New("no broker answers") })
		pass(20 * time.Minute)
		if k := readRetention(t, store); k.Horizon > time.Hour {
			t.Errorf("without a response the horizon is %v", k.Horizon)
		}
		src.set(func() { src.err = nil })
		pass(3 * time.Minute)
		if k := readRetention(t, store); k.Horizon < 10*time.Hour {
			t.Errorf("after a response the horizon is %v", k.Horizon)
		}
		ran(t, run)
	})
}

// busyReaper is a store in which another process removes old markers.
type busyReaper struct {
	*memstore.Store
	calls int
}

func (b *busyReaper) Reap(context.Context, store.Reaping) (store.Reaped, error) {
	b.calls++
	pass(10 * time.Millisecond) // virtual time must pass, so that a loop that calls without a pause ends
	return store.Reaped{Elsewhere: true}, nil
}

// places is a store whose reaper, which removes old markers, examines five parts of the table and finds no marker to
// remove.
type places struct {
	*memstore.Store
	last         store.ReapMark
	calls, wrong int
}

func (p *places) Reap(_ context.Context, r store.Reaping) (store.Reaped, error) {
	p.calls++
	pass(10 * time.Millisecond)
	if r.After != p.last {
		p.wrong++
	}
	p.last = store.ReapMark{Scope: r.After.Scope + 1, At: 7, ID: "a"}
	if p.last.Scope < 5 {
		return store.Reaped{Kept: 10, Next: p.last}, nil
	}
	p.last.Done = true
	next := p.last
	p.last = store.ReapMark{} // the next pass begins here
	return store.Reaped{Next: next}, nil
}

func TestTheReaperBesideARun(t *testing.T) {
	bubble(t, "trap_T66_it_leaves_off_where_another_process_is_at_it", func(t *testing.T) {
		st := &busyReaper{Store: memstore.New()}
		run := start(t, mustNew(t, st, add, retentionConfig(newBroker())))
		pass(10 * time.Minute)
		ran(t, run)
		if st.calls < 9 || st.calls > 10 {
			t.Errorf("the reaper was called %d times in ten minutes, want once a minute", st.calls)
		}
	})
	bubble(t, "trap_124_it_goes_on_behind_what_it_has_looked_at", func(t *testing.T) {
		st := &places{Store: memstore.New()}
		run := start(t, mustNew(t, st, add, retentionConfig(newBroker())))
		pass(100 * time.Second)
		ran(t, run)
		if st.calls < 5 || st.wrong > 0 {
			t.Errorf("of %d calls %d did not continue at the last position", st.calls, st.wrong)
		}
	})
	bubble(t, "D7_it_goes_on_while_there_are_more_bodies_than_a_call_removes", func(t *testing.T) {
		st, source := memstore.New(), newBroker()
		running := config(source)
		running.Retention = consumer.RetentionPolicy{Keep: 24 * time.Hour, Bodies: time.Hour}
		rows := make([]store.Row, 2000)
		marks := make([]store.Mark, len(rows))
		scope, err := st.Scope(t.Context(), "billing", "", 0)
		if err != nil {
			t.Fatal(err)
		}
		for i := range rows {
			marks[i] = store.Mark{Scope: scope, ID: []byte{byte(i >> 8), byte(i)}, As: store.Applied}
			rows[i] = store.Row{Mark: i, State: store.StateCompleted, Message: message("x", `{}`)}
		}
		b, _, err := st.Begin(t.Context(), store.TxOptions{}, marks)
		if err != nil {
			t.Fatal(err)
		}
		b.Commit(t.Context(), store.Ending{Rows: rows})
		pass(2 * time.Hour)
		run := start(t, mustNew(t, st, add, running))
		pass(92 * time.Second) // a run makes at most two passes in this time
		left := 0
		all, err := st.Rows(t.Context(), store.RowFilter{Limit: len(rows)})
		for _, r := range all {
			if !r.BodyRemoved {
				left++
			}
		}
		if err != nil || len(all) != len(rows) || left > 0 {
			t.Errorf("%d of %d bodies are left, %v", left, len(all), err)
		}
		ran(t, run)
	})
}
