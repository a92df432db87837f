// Package webhook tests the webhook source with every store that has an inbox, over real connections.
package webhook

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "modernc.org/sqlite"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/itest/must"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/pgxstore"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/webhook"
)

const secret = "a secret of tests that nobody guesses"

// unsigned is a header of the messages that the signature does not cover.
const unsigned = "X-Delivery"

var stores = map[string]func(*testing.T) fixture{"memory": memory, "sqlite": sqlite, "postgres": postgres}

// runner is a consumer with any type of transaction.
type runner interface{ Run(context.Context) error }

// fixture creates consumers on one store. The handlers of the consumers write an effect for each message.
type fixture struct {
	consumer func(source.Source) (runner, error)
	count    func(t *testing.T, id string) int
}

func made[Tx any](st store.TxStore[Tx], effect func(ctx context.Context, tx Tx, id string) error) func(source.Source) (runner, error) {
	return func(s source.Source) (runner, error) {
		return consumer.New(st, func(ctx context.Context, tx Tx, m *semel.Message) error { return effect(ctx, tx, m.Identity.ID) }, consumer.Config{
			Name: "billing", Source: s, Identity: identity.By("body:/id"), Strategy: consumer.StrategyInbox, AckOnReceipt: true,
			Lanes: consumer.LanesNone, Inbox: consumer.InboxPolicy{Poll: 50 * time.Millisecond}, Logger: slog.New(slog.DiscardHandler),
		})
	}
}

func memory(*testing.T) fixture {
	store := memstore.New()
	return fixture{
		made(store, func(_ context.Context, tx *memstore.Tx, id string) error { return tx.Add(id, 1) }),
		func(_ *testing.T, id string) int {
			n, _ := strconv.Atoi(string(store.Get(id)))
			return n
		},
	}
}

func sqlite(t *testing.T) fixture {
	t.Helper()
	db := must.Get(sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "shop.db")+"?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(off)"))(t)
	t.Cleanup(func() { _ = db.Close() })
	store, err := sqlstore.SQLite(db, sqlstore.Options{})
	if err == nil {
		_, err = store.Migrate(t.Context())
	}
	if err == nil {
		_, err = db.Exec("create table effects (name text not null)")
	}
	must.OK(t, err)
	return fixture{
		made(store, func(ctx context.Context, tx *sql.Tx, id string) error {
			_, err := tx.ExecContext(ctx, "insert into effects values (?)", id)
			return err
		}),
		func(t *testing.T, id string) (n int) {
			t.Helper()
			must.OK(t, db.QueryRow("select count(*) from effects where name = ?", id).Scan(&n))
			return n
		},
	}
}

func postgres(t *testing.T) fixture {
	t.Helper()
	s, _ := newPostgresFixtureOn(t, services.Postgres(t))
	return s
}

func newPostgresFixtureOn(t *testing.T, dsn string) (fixture, *pgxpool.Pool) {
	t.Helper()
	pool := must.Get(pgxpool.New(t.Context(), dsn+"&pool_max_conns=10"))(t)
	t.Cleanup(pool.Close)
	store, err := pgxstore.New(pool, pgxstore.Options{})
	if err == nil {
		_, err = store.Migrate(t.Context())
	}
	if err == nil {
		_, err = pool.Exec(t.Context(), "create table effects (name text not null)")
	}
	must.OK(t, err)
	return fixture{
		made(store, func(ctx context.Context, tx pgx.Tx, id string) error {
			_, err := tx.Exec(ctx, "insert into effects values ($1)", id)
			return err
		}),
		func(t *testing.T, id string) (n int) {
			t.Helper()
			must.OK(t, pool.QueryRow(t.Context(), "select count(*) from effects where name = $1", id).Scan(&n))
			return n
		},
	}, pool
}

// service is a process that receives webhooks: an HTTP server and its consumer.
type service struct {
	server *httptest.Server
	stop   context.CancelFunc
	ended  chan error
}

func (s fixture) serve(t *testing.T, wait time.Duration) *service {
	t.Helper()
	hooks, err := webhook.New(webhook.Config{Name: "hooks", Scheme: webhook.GitHub(), Secrets: []string{secret}, Wait: wait,
		Unsigned: webhook.Unsigned{Headers: []string{unsigned}, Because: "nothing goes by it"}})
	must.OK(t, err)
	c := must.Get(s.consumer(hooks))(t)
	ctx, stop := context.WithCancel(context.Background())
	p := &service{httptest.NewServer(hooks), stop, make(chan error, 1)}
	go func() { p.ended <- c.Run(ctx) }()
	return p
}

func (p *service) end(t *testing.T) {
	t.Helper()
	p.stop()
	if err := <-p.ended; err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("the run ended: %v", err)
	}
	p.server.Close()
}

// send makes one attempt to deliver an event, and returns the status and the body of the response.
func send(url, id string) (int, string) {
	body := fmt.Sprintf(`{"id":%q}`, id)
	h := hmac.New(sha256.New, []byte(secret))
	_, _ = h.Write([]byte(body))
	q, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return 0, err.Error()
	}
	q.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(h.Sum(nil)))
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		return 0, err.Error()
	}
	defer a.Body.Close()
	text, _ := io.ReadAll(a.Body)
	return a.StatusCode, string(text)
}

// expectOnce waits until an event has taken effect, and fails if the event has two effects.
func (s fixture) expectOnce(t *testing.T, id string) {
	t.Helper()
	n := 0
	for began := time.Now(); n == 0 && time.Since(began) < time.Minute; {
		n = s.count(t, id)
	}
	if n != 1 {
		t.Errorf("event %s took effect %d times", id, n)
	}
}

func TestEveryStore(t *testing.T) {
	for name, open := range stores {
		t.Run("F3_two_hundred_at_once_of_one_event_are_received_once/"+name, func(t *testing.T) {
			s := open(t)
			p := s.serve(t, time.Minute)
			var clients sync.WaitGroup
			var received, duplicates atomic.Int64
			for range 200 {
				clients.Go(func() {
					switch status, text := send(p.server.URL, "evt"); {
					case status != 200:
						t.Errorf("%d %s", status, text)
					case strings.Contains(text, "received"):
						received.Add(1)
					case strings.Contains(text, "duplicate"):
						duplicates.Add(1)
					}
				})
			}
			clients.Wait()
			s.expectOnce(t, "evt")
			p.end(t)
			if received.Load() != 1 || duplicates.Load() != 199 {
				t.Errorf("%d received, %d duplicates", received.Load(), duplicates.Load())
			}
		})
		t.Run("F3_a_provider_that_repeats_over_three_restarts_has_each_event_once/"+name, func(t *testing.T) {
			s := open(t)
			for round := range 4 {
				p := s.serve(t, time.Minute)
				for i := range 10 + 5*round {
					if status, text := send(p.server.URL, fmt.Sprint("evt_", i)); status != 200 {
						t.Errorf("round %d, event %d: %d %s", round, i, status, text)
					}
				}
				p.end(t)
			}
			p := s.serve(t, time.Minute)
			for i := range 25 {
				s.expectOnce(t, fmt.Sprint("evt_", i))
			}
			p.end(t)
		})
	}
}
