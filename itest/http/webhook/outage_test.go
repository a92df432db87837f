package webhook

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/itest/must"
	"github.com/semel-go/semel/itest/services"
)

// outage has functions that begin and end a fault. During the fault the store cannot write rows.
type outage struct{ begins, ends func(t *testing.T) }

func outages(pool *pgxpool.Pool, locker func(*testing.T) (lock, unlock func())) map[string]outage {
	exec := func(statements ...string) func(*testing.T) {
		return func(t *testing.T) {
			t.Helper()
			for _, statement := range statements {
				must.Get(pool.Exec(t.Context(), statement))(t)
			}
		}
	}
	var unlock func()
	return map[string]outage{
		"a_lock_on_the_inbox": {
			func(t *testing.T) {
				var lock func()
				lock, unlock = locker(t)
				lock()
			},
			func(*testing.T) { unlock() },
		},
		// The fault "a_full_disk" raises the server's error for a full disk. The package itest/store/postgres_faults
		// tests with a really full disk.
		"a_full_disk": {
			exec(`create function full_disk() returns trigger language plpgsql as
				$$ begin raise exception 'could not extend file: No space left on device' using errcode = '53100'; end $$`,
				`create trigger full_disk before insert on semel_inbox for each row execute function full_disk()`),
			exec(`drop trigger full_disk on semel_inbox`, `drop function full_disk()`),
		},
	}
}

// sendUntilAccepted sends an event again and again until the receiver accepts it, as a provider does. On a busy
// machine the first attempt may exceed the receiver's timeout.
func sendUntilAccepted(t *testing.T, url, id string) {
	t.Helper()
	for began := time.Now(); ; {
		status, text := send(url, id)
		if status == 200 {
			return
		}
		if time.Since(began) > time.Minute {
			t.Fatalf("%s is not received within a minute: %d %s", id, status, text)
		}
	}
}

func TestWhatCameDuringAnOutage(t *testing.T) {
	for _, name := range []string{"a_lock_on_the_inbox", "a_full_disk"} {
		t.Run("F3_trap_140_is_answered_with_503_and_takes_effect_once_though_some_never_come_again/"+name, func(t *testing.T) {
			dsn := services.Postgres(t)
			s, pool := newPostgresFixtureOn(t, dsn)
			locker := func(t *testing.T) (lock, unlock func()) {
				tx := must.Get(pool.Begin(t.Context()))(t)
				return func() {
						must.Get(tx.Exec(t.Context(), `lock table semel_inbox in access exclusive mode`))(t)
					}, func() {
						if err := tx.Rollback(context.Background()); err != nil {
							t.Error(err)
						}
					}
			}
			o := outages(pool, locker)[name]
			p := s.serve(t, 300*time.Millisecond)
			sendUntilAccepted(t, p.server.URL, "before")
			s.expectOnce(t, "before")
			o.begins(t)
			var clients sync.WaitGroup
			for i := range 20 {
				clients.Go(func() {
					if status, text := send(p.server.URL, fmt.Sprint("evt_", i)); status != 503 {
						t.Errorf("during it: %d %s", status, text)
					}
				})
			}
			clients.Wait()
			o.ends(t)
			for i := range 10 { // events with higher numbers are in progress and need not be sent again
				sendUntilAccepted(t, p.server.URL, fmt.Sprint("evt_", i))
			}
			for i := range 20 {
				s.expectOnce(t, fmt.Sprint("evt_", i))
			}
			p.end(t)
		})
	}
}
