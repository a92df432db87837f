package sqlsuite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/itest/must"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// Followed is a store with a log of versions in the same database.
type Followed[Tx any] struct {
	Store store.TxStore[Tx]
	// Append writes a version of a stream to the log in a handler's transaction. Versions returns the
	// committed versions in the order in which they were written.
	Append   func(ctx context.Context, tx Tx, stream string, version int) error
	Versions func(t testing.TB, stream string) []int
}

// step is the body of a message with a version.
type step struct {
	Order   string `json:"order"`
	Version int    `json:"version"`
}

// listSource is a source that delivers a few messages and after these no further messages.
type listSource struct {
	singleSource
	messages []*semel.Message
}

func (s *listSource) Fetch(ctx context.Context, most source.Bound) (all []source.Delivery, err error) {
	if len(s.messages) == 0 {
		<-ctx.Done()
		return nil, nil
	}
	n := min(most.Messages, len(s.messages), 20)
	for _, m := range s.messages[:n] {
		all = append(all, source.Delivery{Message: m, Lane: onlyLane, Before: source.Unknown})
	}
	s.messages = s.messages[n:]
	return all, nil
}

func (s *listSource) Settle(context.Context, []source.Settlement) ([]int, error) { return nil, nil }

// shuffleVersions returns versions of streams, shuffled within a window. Some versions occur twice.
func shuffleVersions(random *rand.Rand, streams, length, window int) (all []*semel.Message) {
	for n := range length {
		for s := range streams {
			m := &semel.Message{Headers: semel.Headers{{Name: "id", Value: fmt.Appendf(nil, "s%d-%d", s, n+1)}}, Body: fmt.Appendf(nil, `{"order":"s%d","version":%d}`, s, n+1)}
			if all = append(all, m); random.IntN(10) == 0 {
				all = append(all, m)
			}
		}
	}
	for i := range all {
		j := min(len(all)-1, i+random.IntN(window))
		all[i], all[j] = all[j], all[i]
	}
	return all
}

// Versions runs two consumers of versions at the same time, as in two processes.
func Versions[Tx any](t *testing.T, f Followed[Tx]) {
	t.Run("B4_B9_trap_T53_two_processes_apply_the_versions_of_each_stream_in_their_order", func(t *testing.T) {
		const streams, length = 30, 20
		random := rand.New(rand.NewPCG(1, 1))
		all := shuffleVersions(random, streams, length, 3*streams)
		failing := map[string]bool{}
		for _, m := range all {
			if random.IntN(20) == 0 {
				failing[string(m.Headers[0].Value)] = true
			}
		}
		var mutex sync.Mutex
		handle := func(ctx context.Context, tx Tx, m *semel.Message) error {
			v, err := semel.JSON[step](m)
			if err == nil {
				err = f.Append(ctx, tx, v.Order, v.Version)
			}
			mutex.Lock()
			defer mutex.Unlock()
			if err == nil && failing[m.Identity.ID] {
				delete(failing, m.Identity.ID)
				err = errors.New("once")
			}
			return err
		}
		var group sync.WaitGroup
		counts := make([]semel.Counts, 2)
		for i := range counts {
			var mine []*semel.Message // some messages are delivered to both consumers
			for n, m := range all {
				if n%2 == i || n%7 == 0 {
					mine = append(mine, m)
				}
			}
			c := f.follower(t, handle, &listSource{messages: mine})
			group.Go(func() {
				if err := c.Run(t.Context()); err != nil {
					t.Error(err)
				}
				counts[i] = c.Counts()
			})
		}
		group.Wait()
		for s := range streams {
			want := make([]int, length)
			for n := range want {
				want[n] = n + 1
			}
			if got := f.Versions(t, fmt.Sprint("s", s)); !slices.Equal(got, want) {
				t.Errorf("the stream s%d is %v", s, got)
			}
		}
		t.Logf("%+v", counts)
	})
}

func (f Followed[Tx]) follower(t testing.TB, handle func(context.Context, Tx, *semel.Message) error, src source.Source) *consumer.Consumer[Tx] {
	t.Helper()
	c, err := consumer.New(f.Store, handle, consumer.Config{
		Name: "history", Source: src, Identity: identity.By("header:id"), Lanes: consumer.LanesNone, Workers: 4,
		Version: &consumer.VersionPolicy{By: identity.Stream("body:/order").At("body:/version")},
		Retry:   consumer.RetryPolicy{InitialDelay: 10 * time.Millisecond, MaxDelay: 50 * time.Millisecond, SerialAfter: 1000},
		Inbox:   consumer.InboxPolicy{Poll: 50 * time.Millisecond}, IdleExit: 3 * time.Second, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	must.OK(t, err)
	return c
}

// Column returns the first column of a query, as numbers.
func Column(t testing.TB, db *sql.DB, query string, args ...any) (all []int) {
	t.Helper()
	rows := must.Get(db.QueryContext(t.Context(), query, args...))(t)
	defer rows.Close()
	for rows.Next() {
		var n int
		must.OK(t, rows.Scan(&n))
		all = append(all, n)
	}
	must.OK(t, rows.Err())
	return all
}
