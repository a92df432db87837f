package pgxstore

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/pgxstore"
	"github.com/semel-go/semel/store"
)

// commitArgument is an argument that makes pgx send COMMIT instead of the statement.
type commitArgument struct{}

// RewriteQuery implements pgx.QueryRewriter.
func (commitArgument) RewriteQuery(context.Context, *pgx.Conn, string, []any) (string, []any, error) {
	return "commit", nil, nil
}

// claim returns the marker to write for a message that was received and claimed, and the results to commit
// its batch with.
func (h *fixture) claim(t *testing.T, id string) ([]store.Mark, store.Ending) {
	t.Helper()
	marks := h.makeMarks(t, id)
	marks[0].As = store.Waiting
	b, _ := sqlsuite.Begin[pgx.Tx](t, h.Store, store.TxOptions{}, marks)
	wantCommitted(t, b.Commit(t.Context(), store.Ending{Rows: []store.Row{{State: store.StateReceived, Message: &semel.Message{Body: []byte(id)}}}}))
	got, err := h.Claim(t.Context(), store.ClaimOptions{Consumer: "billing", Token: store.NewToken(), Most: 1, Lease: time.Minute})
	if err != nil || len(got) != 1 {
		t.Fatalf("%d claims, %v", len(got), err)
	}
	marks[0].Claim, marks[0].As = got[0].Claim, store.Applied
	return marks, store.Ending{Claims: []store.ClaimEnding{{Claim: got[0].Claim, State: store.StateCompleted, Ran: true}}}
}

// If handlers of a batch of claims queue statements, the store sends everything together with COMMIT. The batch needs
// no guard row (which makes other COMMITs fail) until a handler reads.
func TestQueuedClaims(t *testing.T) {
	h := newFixture(t, openPool(t, services.Postgres(t)))
	// claimed returns a batch with the claim of a waiting message, and the results to commit the batch with.
	claimed := func(t *testing.T, id string) (store.Batch[*pgxstore.Queue], store.Ending) {
		t.Helper()
		marks, end := h.claim(t, id)
		q, v := sqlsuite.Begin[*pgxstore.Queue](t, h.Queued(), store.TxOptions{}, marks)
		if v[0].Kind != store.Fresh {
			t.Fatalf("the claim is %v", v[0])
		}
		return q, end
	}
	state := func(id string) (s string) {
		t.Helper()
		if err := h.pool.QueryRow(t.Context(), h.inSchema("select state from in.semel_inbox where payload = $1"), []byte(id)).Scan(&s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	t.Run("law_1_effect_and_end_are_one_commit", func(t *testing.T) {
		b, end := claimed(t, "a")
		b.Tx(0).ExecOne(h.inSchema(insert), []byte("a"))
		wantCommitted(t, b.Commit(t.Context(), end))
		if n := h.count(t, "a"); n != 1 || state("a") != "COMPLETED" {
			t.Errorf("%d effects of a row that is %s", n, state("a"))
		}
	})
	t.Run("law_1_one_that_reads_has_a_guard", func(t *testing.T) {
		b, end := claimed(t, "b")
		b.Tx(0).ExecOne(h.inSchema(insert), []byte("b"))
		guards := -1
		b.Tx(0).Query(h.inSchema("select count(*) from in.semel_guard")).Do(func(rows pgx.Rows) (err error) {
			guards, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[int])
			return err
		})
		wantCommitted(t, b.Commit(t.Context(), end))
		if n := h.count(t, "b"); guards != 1 || n != 1 || state("b") != "COMPLETED" || h.number(t, "select count(*) from in.semel_guard") != 0 {
			t.Errorf("%d guards, %d effects of a row that is %s", guards, n, state("b"))
		}
	})
	t.Run("law_1_an_argument_cannot_make_a_commit_of_a_statement", func(t *testing.T) {
		b, end := claimed(t, "c")
		b.Tx(0).ExecOne(h.inSchema(insert), []byte("c"))
		b.Tx(0).Exec("select 1", commitArgument{})
		if r := b.Commit(t.Context(), end); r.Outcome != store.NotCommitted || r.Class != store.ClassPermanent || r.Culprit != 0 {
			t.Errorf("%+v", r)
		}
		if n := h.count(t, "c"); n != 0 || state("c") != "IN_PROGRESS" {
			t.Errorf("%d effects of a row that is %s", n, state("c"))
		}
	})
	t.Run("law_5_a_claim_that_does_not_stand_begins_nothing", func(t *testing.T) {
		for id, lost := range map[string]string{
			"token": "token = token + 1", "state": "state = 'RECEIVED', token = null, locked_until = null", "lease": "locked_until = now() - interval '1 second'",
		} {
			marks, _ := h.claim(t, id)
			h.exec(t, "update in.semel_inbox set "+lost+" where payload = '"+id+"'")
			b, v := sqlsuite.Begin[*pgxstore.Queue](t, h.Queued(), store.TxOptions{}, marks)
			if b.Rollback(t.Context()); v[0].Kind != store.ClaimLost {
				t.Errorf("a claim that has lost its %s is %v", id, v[0])
			}
		}
	})
	t.Run("law_5_a_stale_claim_commits_no_effect", func(t *testing.T) {
		b, end := claimed(t, "d")
		b.Tx(0).ExecOne(h.inSchema(insert), []byte("d"))
		h.exec(t, "update in.semel_inbox set token = token + 1 where payload = 'd'")
		if r := b.Commit(t.Context(), end); r.Outcome != store.NotCommitted || r.Class != store.ClassClaimLost {
			t.Errorf("%+v", r)
		}
		if n := h.count(t, "d"); n != 0 {
			t.Errorf("%d effects of a claim that was lost", n)
		}
	})
}

func TestQueuedClaimsOnAConnectionWhoseSettingsWereChanged(t *testing.T) {
	t.Run("one_that_refuses_writes_is_closed", func(t *testing.T) {
		h := newFixture(t, openPool(t, services.Postgres(t), func(c *pgxpool.Config) { c.MaxConns = 1 }))
		spoils, end := h.claim(t, "spoils")
		next, endOfNext := h.claim(t, "next")
		b, _ := sqlsuite.Begin[*pgxstore.Queue](t, h.Queued(), store.TxOptions{}, spoils)
		b.Tx(0).Exec("set session characteristics as transaction read only")
		wantCommitted(t, b.Commit(t.Context(), end))
		if _, _, err := h.Queued().Begin(t.Context(), store.TxOptions{}, next); err == nil || h.Classify(err) != store.ClassDown {
			t.Fatalf("the situation did not occur, or a message is blamed: %v", err)
		}
		b, _ = sqlsuite.Begin[*pgxstore.Queue](t, h.Queued(), store.TxOptions{}, next)
		b.Tx(0).ExecOne(h.inSchema(insert), []byte("next"))
		wantCommitted(t, b.Commit(t.Context(), endOfNext))
		h.wantApplied(t, "next")
	})
	t.Run("one_of_another_role_works", func(t *testing.T) {
		dsn := services.Postgres(t)
		h := newFixture(t, openPool(t, dsn, func(c *pgxpool.Config) { c.MaxConns = 1 }))
		h.exec(t, "drop role if exists semel_worker")
		h.exec(t, "create role semel_worker superuser")
		t.Cleanup(func() { h.exec(t, "reset role"); h.exec(t, "drop role semel_worker") })
		h.exec(t, "set role semel_worker")
		for _, id := range []string{"first", "second"} {
			marks, end := h.claim(t, id)
			b, _ := sqlsuite.Begin[*pgxstore.Queue](t, h.Queued(), store.TxOptions{}, marks)
			b.Tx(0).ExecOne(h.inSchema(insert), []byte(id))
			wantCommitted(t, b.Commit(t.Context(), end))
			h.wantApplied(t, id)
		}
	})
}
