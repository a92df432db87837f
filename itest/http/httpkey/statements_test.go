package httpkey

import (
	"context"
	"database/sql"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/httpkey"
	"github.com/semel-go/semel/itest/must"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/services/pgproxy"
	"github.com/semel-go/semel/pgxstore"
)

// send runs a statement in the transaction of the request, for every type of transaction.
func send(ctx context.Context, statement string) error {
	if tx, err := httpkey.TxFrom[*sql.Tx](ctx); err == nil {
		_, err = tx.ExecContext(ctx, statement)
		return err
	}
	if tx, err := httpkey.TxFrom[*pgxstore.Queue](ctx); err == nil {
		tx.Exec(statement)
		return nil
	}
	tx, err := httpkey.TxFrom[pgx.Tx](ctx)
	if err == nil {
		_, err = tx.Exec(ctx, statement)
	}
	return err
}

// sendOnce protects a handler with a new guard, and sends a request with a key.
func sendOnce(t *testing.T, s *storeFixture, key string, h http.HandlerFunc) *httptest.ResponseRecorder {
	t.Helper()
	g := must.Get(s.newGuard(config(), lease()))(t)
	r := httptest.NewRequest(http.MethodPost, "/orders", nil)
	r.Header.Set("X-Account", "a")
	r.Header.Set(httpkey.Header, `"`+key+`"`)
	w := httptest.NewRecorder()
	g.ProtectFunc(h).ServeHTTP(w, r)
	return w
}

// handleOrder is a handler that has one effect.
func (s *storeFixture) handleOrder(w http.ResponseWriter, r *http.Request) {
	a, _ := httpkey.AttemptFrom(r.Context())
	status(w, s.writeEffect(r.Context(), a.Key))
}

func TestLaw3AStatementThatFailedUntoldLeavesNothing(t *testing.T) {
	for _, name := range []string{"postgres", "pgx", "pgx_queued"} {
		t.Run("F2_"+name, func(t *testing.T) {
			t.Parallel()
			s := openers()[name](t)
			w := sendOnce(t, s, "k", func(w http.ResponseWriter, r *http.Request) {
				if err := s.writeEffect(r.Context(), "k"); err != nil {
					t.Error(err)
				}
				_ = send(r.Context(), "insert into nowhere values (1)")
				w.WriteHeader(http.StatusCreated) // the handler reports success although its statement failed
			})
			if w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), "not-committed") || s.count(t, "k") != 0 {
				t.Errorf("%d: %s, %d effects", w.Code, w.Body, s.count(t, "k"))
			}
			if w := sendOnce(t, s, "k", s.handleOrder); w.Code != http.StatusCreated || s.count(t, "k") != 1 {
				t.Errorf("the next: %d: %s", w.Code, w.Body)
			}
		})
	}
}

func TestLaw1AHandlerThatEndsItsTransactionLeavesNoEffectWithoutItsKey(t *testing.T) {
	for _, name := range []string{"postgres", "pgx", "pgx_queued"} {
		for _, end := range []string{"commit", "rollback"} {
			t.Run("F2_"+name+"_"+end, func(t *testing.T) {
				t.Parallel()
				s := openers()[name](t)
				w := sendOnce(t, s, "k", func(w http.ResponseWriter, r *http.Request) {
					if err := s.writeEffect(r.Context(), "k"); err != nil {
						t.Error(err)
					}
					_ = send(r.Context(), end)
					w.WriteHeader(http.StatusCreated)
				})
				if w.Code < 500 || s.count(t, "k") != 0 {
					t.Errorf("%d: %s, %d effects", w.Code, w.Body, s.count(t, "k"))
				}
				if w := sendOnce(t, s, "k", s.handleOrder); w.Code != http.StatusCreated || s.count(t, "k") != 1 {
					t.Errorf("the next: %d: %s", w.Code, w.Body)
				}
			})
		}
	}
}

func TestCase3ACommitIsFoundOut(t *testing.T) {
	for name, c := range map[string]struct {
		cut    func(*pgproxy.Proxy) *pgproxy.Rule
		status int // 0 accepts success and error, because the status depends on whether the server executed the statement
	}{
		"case_3_whose_answer_was_cut": {func(p *pgproxy.Proxy) *pgproxy.Rule { return p.CutReply(pgproxy.Nth(1, pgproxy.Commit)) }, 201},
		"case_3_cut_under_way":        {func(p *pgproxy.Proxy) *pgproxy.Rule { return p.CutInFlight(pgproxy.Nth(1, pgproxy.Commit)) }, 0},
		"case_3_that_was_never_sent":  {func(p *pgproxy.Proxy) *pgproxy.Rule { return p.CutRequest(pgproxy.Nth(1, pgproxy.Commit)) }, 503},
	} {
		for kind, open := range map[string]func(testing.TB, string) *storeFixture{"pgx": newPgxFixture, "queued": newQueueFixture} {
			t.Run(name+"_"+kind, func(t *testing.T) {
				t.Parallel()
				proxy := pgproxy.Start(t, services.Postgres(t))
				s := open(t, proxy.DSN())
				if w := sendOnce(t, s, "warm", s.handleOrder); w.Code != http.StatusCreated {
					t.Fatalf("%d: %s", w.Code, w.Body)
				}
				rule := c.cut(proxy)
				w := sendOnce(t, s, "k", s.handleOrder)
				effects, told := s.count(t, "k"), 0
				if w.Code == http.StatusCreated {
					told = 1
				}
				if rule.Hits() != 1 || effects != told || c.status != 0 && w.Code != c.status {
					t.Errorf("%d: %s, %d effects, %d cuts", w.Code, w.Body, effects, rule.Hits())
				}
				w = sendOnce(t, s, "k", s.handleOrder)
				if replayed := w.Header().Get(httpkey.ReplayedHeader) == "true"; w.Code != http.StatusCreated || replayed != (effects == 1) || s.count(t, "k") != 1 {
					t.Errorf("the copy: %d, replayed: %t, %d effects", w.Code, replayed, s.count(t, "k"))
				}
			})
		}
	}
}
