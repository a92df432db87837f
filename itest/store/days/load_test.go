//go:build unix

package days

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/itest/worlds/processes"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

// load is a group of workers of a consumer that write markers and commit without a pause.
type load struct {
	store  *sqlstore.Store
	scope  int64
	day    time.Time
	marked atomic.Int64 // number of the last message that a worker began
	ended  atomic.Int64 // number of committed messages
}

// work processes one message after the other, and returns the first error.
func (l *load) work(stop <-chan struct{}) error {
	for {
		select {
		case <-stop:
			return nil
		default:
		}
		mark := []store.Mark{{Scope: l.scope, ID: []byte(uuid(l.day, 0, int(l.marked.Add(1)))), As: store.Applied}}
		for committed := false; !committed; {
			b, _, err := l.store.Begin(context.Background(), store.TxOptions{}, mark)
			if err == nil {
				err = b.Commit(context.Background(), store.Ending{}).Err
			}
			if committed = err == nil; !committed && l.store.Classify(err) != store.ClassContended {
				return err
			}
		}
		l.ended.Add(1)
	}
}

// waitCommitted waits until the number of committed messages has grown by the number in the parameter more.
func (l *load) waitCommitted(ctx context.Context, more int64) {
	for want := l.ended.Load() + more; l.ended.Load() < want && ctx.Err() == nil; {
		processes.Pause(ctx, time.Millisecond)
	}
}

func TestAMoveEndsUnderLoad(t *testing.T) {
	s := open(t)
	for n := range 5 {
		consumer, day := fmt.Sprint("billing-", n), sqlsuite.Today(t)
		commitMarks(t, s.store, consumer, store.Applied, uuid(day, -1, 1<<40))
		if err := s.store.BeginMove(t.Context(), datedOptions(consumer)); err != nil {
			t.Fatal(err)
		}
		own := s.newDatedStore(t, consumer)
		scope, err := own.Scope(t.Context(), consumer, "shop", 0)
		if err != nil {
			t.Fatal(err)
		}
		l, stop := &load{store: own, scope: scope, day: day}, make(chan struct{})
		var workers sync.WaitGroup
		for range 4 {
			workers.Add(1)
			go func() {
				defer workers.Done()
				if err := l.work(stop); err != nil {
					t.Errorf("a worker: %v", err)
				}
			}()
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		l.waitCommitted(ctx, 200)
		done, err := s.store.EndMove(ctx, consumer)
		l.waitCommitted(ctx, 200)
		cancel()
		close(stop)
		workers.Wait()
		t.Run("law_3_what_was_marked_while_it_ended_is_a_duplicate", func(t *testing.T) {
			if err != nil {
				t.Fatal(err)
			}
			var ids []string
			for i := range l.marked.Load() {
				ids = append(ids, uuid(day, 0, int(i+1)))
			}
			lost := 0
			for _, v := range askStore(t, own, consumer, ids...) {
				if v != isApplied {
					lost++
				}
			}
			if t.Logf("%d markers, %+v", len(ids), done); lost > 0 {
				t.Errorf("of %d markers %d are lost", len(ids), lost)
			}
		})
	}
}
