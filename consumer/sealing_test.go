package consumer_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

var auditKey = []byte("0123456789abcdef0123456789abcdef")

// recordActs writes n audit records.
func recordActs(t *testing.T, s *memstore.Store, n int) {
	t.Helper()
	for range n {
		if err := s.Record(t.Context(), store.Act{Verb: "discard", Who: "ana", Why: "test"}); err != nil {
			t.Fatal(err)
		}
	}
}

func wantLines(t *testing.T, s *memstore.Store, want int64) {
	t.Helper()
	if end, err := s.SealHead(t.Context()); err != nil || end.Sequence != want {
		t.Errorf("%d lines are sealed, want %d: %v", end.Sequence, want, err)
	}
}

// slowReaper is a store in which each call that removes old markers takes 10 s, and in which there are always more
// markers to remove.
type slowReaper struct {
	*memstore.Store
	calls atomic.Int64
}

func (s *slowReaper) Reap(ctx context.Context, _ store.Reaping) (store.Reaped, error) {
	calls := s.calls.Add(1)
	select {
	case <-ctx.Done():
		return store.Reaped{}, ctx.Err()
	case <-time.After(10 * time.Second):
	}
	return store.Reaped{Markers: 1, Next: store.ReapMark{Scope: calls, ID: "a"}}, nil
}

func TestARunSealsActs(t *testing.T) {
	bubble(t, "G6_a_moment_later_all_of_them_beside_its_work", func(t *testing.T) {
		store, source := memstore.New(), newListSource(numbered("m", 3)...)
		source.endless = true
		recordActs(t, store, 1200)
		if _, err := store.Seal(t.Context(), admin.Sealing{Key: auditKey, Most: 1}); err != nil {
			t.Fatal(err)
		}
		var points []faults.Point
		c := config(source)
		c.AuditKey = auditKey
		running := mustNew(t, store, add, c, faults.Plan{At: func(p faults.Point, _ int) {
			if strings.HasSuffix(string(p), "Seal") && (len(points) == 0 || points[len(points)-1] != p) {
				points = append(points, p)
			}
		}})
		run := start(t, running)
		pass(10 * time.Second)
		wantLines(t, store, 1200)
		recordActs(t, store, 1)
		pass(10 * time.Second)
		wantLines(t, store, 1201)
		run.stop()
		if err := run.wait(); err != nil {
			t.Error(err)
		}
		if len(points) < 3 || points[0] != faults.BeforeSeal || points[1] != faults.WithinSeal || points[2] != faults.AfterSeal {
			t.Errorf("the points are %q", points)
		}
	})
	bubble(t, "G6_also_while_the_reaper_has_much_to_remove", func(t *testing.T) {
		store := &slowReaper{Store: memstore.New()}
		run := start(t, mustNew(t, store, add, retentionConfig(newBroker())))
		for n := int64(1); store.calls.Load() < 3; n++ {
			recordActs(t, store.Store, 1)
			pass(17 * time.Second) // the duration of one call of the reaper plus the interval between two calls of the sealer
			wantLines(t, store.Store, n)
			if n == 20 {
				t.Fatalf("in 340 s the reaper was called %d times", store.calls.Load())
			}
		}
		ran(t, run)
	})
	bubble(t, "G6_it_begins_no_chain_under_a_key_and_says_so_once", func(t *testing.T) {
		store := memstore.New()
		recordActs(t, store, 1)
		sealsNothing(t, store, auditKey, 0, "there is no chain of changes")
	})
	bubble(t, "G6_without_the_key_of_the_others_it_says_so_once_and_goes_on", func(t *testing.T) {
		store := memstore.New()
		recordActs(t, store, 1)
		if _, err := store.Seal(t.Context(), admin.Sealing{Key: auditKey}); err != nil {
			t.Fatal(err)
		}
		recordActs(t, store, 1)
		sealsNothing(t, store, nil, 1, "no longer sealed")
	})
	t.Run("G6_a_key_that_could_be_guessed_is_refused", func(t *testing.T) {
		c := config(newListSource())
		c.AuditKey = []byte("short")
		if _, err := consumer.New(memstore.New(), add, c); err == nil || !strings.Contains(err.Error(), "AuditKey: a key of 5 bytes") {
			t.Errorf("it says %v", err)
		}
	})
}

// sealsNothing runs a consumer with a key for a minute. The consumer must apply its messages, leave the audit
// records unchanged, and log the reason once.
func sealsNothing(t *testing.T, store *memstore.Store, key []byte, lines int64, why string) {
	t.Helper()
	source := newListSource(numbered("m", 3)...)
	source.endless = true
	var said log
	c := config(source)
	c.AuditKey, c.Logger = key, said.logger()
	running := mustNew(t, store, add, c)
	run := start(t, running)
	pass(time.Minute)
	wantLines(t, store, lines)
	if n := strings.Count(said.String(), why); n != 1 || running.Counts().Applied != 3 {
		t.Errorf("told %d times, %+v:\n%s", n, running.Counts(), said.String())
	}
	run.stop()
	if err := run.wait(); err != nil {
		t.Error(err)
	}
}
