package pgxstore

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/pgxstore"
)

// listener receives a consumer's notifications from a store.
type listener struct {
	heard chan struct{}
	ended chan error
	stop  context.CancelFunc
}

// startListener starts a listener for a consumer, and returns when the listener is connected.
func startListener(t *testing.T, s *pgxstore.Store, consumer string) *listener {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	l := &listener{make(chan struct{}, 100), make(chan error, 1), stop}
	t.Cleanup(stop)
	go func() { l.ended <- s.Listen(ctx, consumer, func() { l.heard <- struct{}{} }) }()
	l.expectNotification(t)
	return l
}

// expectNotification fails unless a notification arrives within the time limit.
func (l *listener) expectNotification(t *testing.T) {
	t.Helper()
	select {
	case <-l.heard:
	case err := <-l.ended:
		t.Fatalf("it has ended: %v", err)
	case <-time.After(2 * time.Minute):
		t.Fatal("nothing is heard")
	}
}

// expectSilence fails if a notification arrived. Notifications arrive in order, so a later notification shows that
// none is missing.
func (l *listener) expectSilence(t *testing.T) {
	t.Helper()
	select {
	case <-l.heard:
		t.Error("it hears what is not for it")
	default:
	}
}

func newStore(t *testing.T, pool *pgxpool.Pool, o pgxstore.Options) *pgxstore.Store {
	t.Helper()
	s, err := pgxstore.New(pool, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func notify(t *testing.T, s *pgxstore.Store, consumer string) {
	t.Helper()
	if err := s.Notify(t.Context(), consumer); err != nil {
		t.Fatal(err)
	}
}

func TestNotificationsThroughTheDatabase(t *testing.T) {
	dsn := services.Postgres(t)
	pool := openPool(t, dsn)
	count := func(t *testing.T, query string) (n int) {
		t.Helper()
		if err := pool.QueryRow(t.Context(), query).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	const listeners = "select count(*) from pg_stat_activity where query = 'listen semel_due' and datname = current_database()"
	t.Run("D6_each_consumer_hears_its_own_over_one_connection_of_the_process", func(t *testing.T) {
		here, there := newStore(t, pool, pgxstore.Options{Listen: dsn}), newStore(t, openPool(t, dsn), pgxstore.Options{Listen: dsn})
		billing, search := startListener(t, here, "billing"), startListener(t, here, "search")
		if n := count(t, listeners); n != 1 {
			t.Errorf("%d connections listen", n)
		}
		notify(t, there, "billing")
		billing.expectNotification(t)
		search.expectSilence(t)
		notify(t, newStore(t, pool, pgxstore.Options{Listen: dsn, Prefix: "other_"}), "search")
		notify(t, there, "search")
		search.expectNotification(t)
		search.expectSilence(t)
		billing.expectSilence(t)
		billing.stop() // if billing's listener holds the shared connection, another listener takes the connection over
		if err := <-billing.ended; err != nil {
			t.Error(err)
		}
		search.expectNotification(t)
		notify(t, there, "search")
		search.expectNotification(t)
	})
	t.Run("D6_a_connection_that_is_ended_is_told_and_can_be_made_again", func(t *testing.T) {
		s := newStore(t, pool, pgxstore.Options{Listen: dsn})
		l := startListener(t, s, "billing")
		// The server may still be closing the connections of earlier listeners.
		for deadline := time.Now().Add(time.Minute); count(t, "select count(*) from pg_stat_activity where query = 'listen semel_due' and datname = current_database()") > 1 && time.Now().Before(deadline); {
			pass(t, 10*time.Millisecond)
		}
		if n := count(t, "select count(pg_terminate_backend(pid)) from pg_stat_activity where query = 'listen semel_due' and datname = current_database()"); n != 1 {
			t.Fatalf("%d connections were ended", n)
		}
		if err := <-l.ended; err == nil || !strings.Contains(err.Error(), "the listening connection has ended") {
			t.Error(err)
		}
		again := startListener(t, s, "billing")
		notify(t, s, "billing")
		again.expectNotification(t)
	})
	t.Run("D6_without_an_address_nobody_listens_and_nothing_is_sent", func(t *testing.T) {
		s := newStore(t, pool, pgxstore.Options{})
		if err := s.Listen(t.Context(), "billing", func() {}); !errors.Is(err, semel.ErrUnsupported) {
			t.Error(err)
		}
		l := startListener(t, newStore(t, pool, pgxstore.Options{Listen: dsn}), "billing")
		notify(t, s, "billing")
		l.expectSilence(t)
	})
	t.Run("D6_an_address_that_cannot_be_used_is_refused_without_showing_it", func(t *testing.T) {
		_, err := pgxstore.New(pool, pgxstore.Options{Listen: "postgres://me:hunter2@host:port/db"})
		if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "Options.Listen") {
			t.Error(err)
		}
	})
}

func TestNotificationsBehindAPooler(t *testing.T) {
	direct := services.Postgres(t)
	pooler := services.StartPgBouncer(t, direct)
	pool := openPool(t, pooler)
	t.Run("D6_a_pooler_that_keeps_what_is_heard_is_found_at_the_start", func(t *testing.T) {
		s := newStore(t, pool, pgxstore.Options{Listen: pooler})
		err := s.Listen(t.Context(), "billing", func() { t.Error("it says that it hears") })
		if err == nil || !strings.Contains(err.Error(), "set Options.Listen to the address") {
			t.Error(err)
		}
	})
	t.Run("D6_what_the_pooler_sends_is_heard_at_the_server", func(t *testing.T) {
		s := newStore(t, pool, pgxstore.Options{Listen: direct})
		l := startListener(t, s, "billing")
		notify(t, s, "billing")
		l.expectNotification(t)
	})
}
