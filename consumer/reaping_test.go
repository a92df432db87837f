package consumer_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/contract"
	"github.com/semel-go/semel/memstore"
)

// sendAll delivers messages in one batch, of these times.
func (f *feed) sendAll(written map[string]time.Time, order ...string) {
	f.mutex.Lock()
	for _, id := range order {
		m := message(id, `{}`)
		m.Origin.Written = uint32(written[id].Unix())
		f.queue = append(f.queue, contract.Delivery{Message: m, Lane: contract.Lane{ID: "a", Epoch: 1}, Before: contract.Unknown, Handle: id})
	}
	f.mutex.Unlock()
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// cutOff is a broker that knows its lanes and delivers nothing.
type cutOff struct{ *broker }

func (cutOff) Fetch(context.Context, contract.Bound) ([]contract.Delivery, error) {
	return nil, errors.New("no broker answers")
}

// standing is what stands of the consumer billing.
func standing(t *testing.T, store contract.Reaper) contract.StoredRetention {
	t.Helper()
	all, err := store.Retentions(t.Context(), "billing")
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	return all[0]
}

// ran stops a run and takes its end.
func ran(t *testing.T, run *started) {
	t.Helper()
	run.stop()
	if err := run.wait(); err != nil {
		t.Error(err)
	}
}

func TestWhatARunRecordsOfItsProgress(t *testing.T) {
	bubble(t, "H2_of_all_that_was_delivered_since_the_last_record_the_oldest_counts", func(t *testing.T) {
		store, source := memstore.New(), newFeed()
		run := start(t, mustNew(t, store, add, keeping(source)))
		now := time.Now()
		old := now.Add(-3 * time.Hour).Truncate(time.Second)
		source.sendAll(map[string]time.Time{"1": now, "2": old, "3": now}, "1", "2", "3")
		pass(time.Second)
		source.send("4", now)
		held := false
		for range 20 {
			pass(10 * time.Second)
			k := standing(t, store)
			held = held || k.Held == "a" && k.Oldest.Equal(old)
		}
		if k := standing(t, store); !held || k.Held != "" {
			t.Errorf("that one of them was old, was recorded: %t, and at last %+v", held, k)
		}
		ran(t, run)
	})
	bubble(t, "H2_what_is_still_in_memory_is_no_progress", func(t *testing.T) {
		store, source := memstore.New(), newFeed()
		release := make(chan struct{})
		c := keeping(source)
		c.Timeout = 5 * time.Hour
		run := start(t, mustNew(t, store, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			<-release
			return add(ctx, tx, m)
		}, c))
		old := time.Now().Add(-30 * time.Minute).Truncate(time.Second)
		source.send("1", old)
		pass(3 * time.Hour)
		if k := standing(t, store); k.Cutoff.After(old.Add(-time.Hour)) {
			t.Errorf("the cutoff is %v, and a message of %v is not done", k.Cutoff, old)
		}
		close(release)
		pass(5 * time.Minute)
		if k := standing(t, store); time.Since(k.Cutoff) > 66*time.Minute {
			t.Errorf("all is done, and the cutoff is %v", k.Cutoff)
		}
		ran(t, run)
	})
	bubble(t, "H2_a_run_that_is_stopped_has_not_read_all", func(t *testing.T) {
		store, source := memstore.New(), newFeed()
		began := time.Now()
		run := start(t, mustNew(t, store, add, keeping(source)))
		source.send("1", time.Now())
		pass(20 * time.Second) // before it records anything
		ran(t, run)
		if k := standing(t, store); k.Progress.After(began) {
			t.Errorf("it has progressed until %v after its start", k.Progress.Sub(began))
		}
	})
	bubble(t, "H2_a_run_that_hears_nothing_of_its_source_makes_no_progress", func(t *testing.T) {
		store := memstore.New()
		began := time.Now()
		running := mustNew(t, store, add, keeping(cutOff{newBroker()}))
		run := start(t, running)
		pass(3 * time.Hour)
		if ready, _ := running.Ready(); ready {
			t.Fatal("it is ready")
		}
		if k := standing(t, store); k.Progress.Sub(began) > time.Minute {
			t.Errorf("it has progressed until %v after its start", k.Progress.Sub(began))
		}
		ran(t, run)
	})
}

func TestAHorizonThatCannotBeAsked(t *testing.T) {
	bubble(t, "H1_it_is_asked_again_soon_and_not_an_hour_later", func(t *testing.T) {
		store, source := memstore.New(), newBroker()
		source.horizon = contract.Horizon{Late: time.Minute, Why: "a topic"}
		run := start(t, mustNew(t, store, add, keeping(source)))
		pass(50 * time.Minute)
		source.set(func() { source.horizon.Late, source.err = 10*time.Hour, errors.New("no broker answers") })
		pass(20 * time.Minute)
		if k := standing(t, store); k.Horizon > time.Hour {
			t.Errorf("nobody answered, and the horizon is %v", k.Horizon)
		}
		source.set(func() { source.err = nil })
		pass(3 * time.Minute)
		if k := standing(t, store); k.Horizon < 10*time.Hour {
			t.Errorf("the brokers answer again, and the horizon is %v", k.Horizon)
		}
		ran(t, run)
	})
}

// busy is a store for which another process reaps.
type busy struct {
	*memstore.Store
	calls int
}

func (b *busy) Reap(context.Context, contract.Reaping) (contract.Reaped, error) {
	b.calls++
	pass(10 * time.Millisecond) // so that who asks again and again comes to an end
	return contract.Reaped{Elsewhere: true}, nil
}

// places is a store whose reaper looks at five parts of what it has, of which all stays.
type places struct {
	*memstore.Store
	last         contract.ReapMark
	calls, wrong int
}

func (p *places) Reap(_ context.Context, r contract.Reaping) (contract.Reaped, error) {
	p.calls++
	pass(10 * time.Millisecond)
	if r.After != p.last {
		p.wrong++
	}
	p.last = contract.ReapMark{Scope: r.After.Scope + 1, At: 7, ID: "a"}
	if p.last.Scope < 5 {
		return contract.Reaped{Kept: 10, Next: p.last}, nil
	}
	p.last.Done = true
	next := p.last
	p.last = contract.ReapMark{} // where the next pass begins
	return contract.Reaped{Next: next}, nil
}

func TestTheReaperBesideARun(t *testing.T) {
	bubble(t, "trap_T66_it_leaves_off_where_another_process_is_at_it", func(t *testing.T) {
		store := &busy{Store: memstore.New()}
		run := start(t, mustNew(t, store, add, keeping(newBroker())))
		pass(10 * time.Minute)
		ran(t, run)
		if store.calls < 9 || store.calls > 10 {
			t.Errorf("it asked %d times in ten minutes, want once a minute", store.calls)
		}
	})
	bubble(t, "trap_124_it_goes_on_behind_what_it_has_looked_at", func(t *testing.T) {
		store := &places{Store: memstore.New()}
		run := start(t, mustNew(t, store, add, keeping(newBroker())))
		pass(100 * time.Second)
		ran(t, run)
		if store.calls < 5 || store.wrong > 0 {
			t.Errorf("of %d calls %d went elsewhere than on", store.calls, store.wrong)
		}
	})
	bubble(t, "D7_it_goes_on_while_there_are_more_bodies_than_a_call_removes", func(t *testing.T) {
		store, source := memstore.New(), newBroker()
		running := config(source)
		running.Retention = consumer.RetentionPolicy{Keep: 24 * time.Hour, Bodies: time.Hour}
		rows := make([]contract.Row, 2000)
		marks := make([]contract.Mark, len(rows))
		scope, err := store.Scope(t.Context(), "billing", "", 0)
		if err != nil {
			t.Fatal(err)
		}
		for i := range rows {
			marks[i] = contract.Mark{Scope: scope, ID: []byte{byte(i >> 8), byte(i)}, As: contract.Applied}
			rows[i] = contract.Row{Mark: i, State: contract.StateCompleted, Message: message("x", `{}`)}
		}
		b, _, err := store.Begin(t.Context(), contract.TxOptions{}, marks)
		if err != nil {
			t.Fatal(err)
		}
		b.Commit(t.Context(), contract.Ending{Rows: rows})
		pass(2 * time.Hour)
		run := start(t, mustNew(t, store, add, running))
		pass(92 * time.Second) // two passes at most
		left := 0
		all, err := store.Rows(t.Context(), contract.RowFilter{Limit: len(rows)})
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
