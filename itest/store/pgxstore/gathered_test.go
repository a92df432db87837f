package pgxstore

import (
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/pgxstore"
	"github.com/semel-go/semel/store"
)

// Several claims can share a transaction. A shared transaction ends when the last of its batches is killed. A store
// that closes does not wait for another transaction's lock. Killing one batch does not kill another.
func TestGatheredKilled(t *testing.T) {
	h := newFixture(t, openPool(t, services.Postgres(t)))
	for name, c := range map[string]struct {
		claims       int
		before, then []int // the batches to kill
		ended        bool
	}{
		"law_11_one_by_itself_is_cut":                       {1, nil, []int{0}, true},
		"law_11_several_are_cut_with_the_last_of_them":      {2, nil, []int{0, 1}, true},
		"law_11_one_that_was_killed_before_counts":          {2, []int{0}, []int{1}, true},
		"law_7_one_of_several_does_not_cut_what_they_share": {2, nil, []int{0, 0}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var all []admin.QueuedBatch[*pgxstore.Queue]
			for i := range c.claims {
				id := name + strconv.Itoa(i)
				marks, end := h.claim(t, id)
				b := h.Queued().Combinable(marks[0])
				b.Tx(0).ExecOne(h.inSchema(insert), []byte(id))
				all = append(all, admin.QueuedBatch[*pgxstore.Queue]{Batch: b, Ending: end})
			}
			lock, _ := sqlsuite.Begin[pgx.Tx](t, h.Store, store.TxOptions{}, h.makeMarks(t, "lock"))
			if _, err := lock.Tx(0).Exec(t.Context(), h.inSchema("lock table in.effects in exclusive mode")); err != nil {
				t.Fatal(err)
			}
			for _, i := range c.before {
				all[i].Batch.Kill()
			}
			ended := make(chan store.Result, 1)
			go func() {
				ended <- h.Queued().CommitCombined(t.Context(), store.TxOptions{EffectLock: time.Hour}, all)
			}()
			h.wantLocked(t)
			for _, i := range c.then {
				all[i].Batch.Kill()
			}
			if !c.ended {
				lock.Rollback(t.Context())
			}
			r := <-ended
			lock.Rollback(t.Context())
			if want := c.claims; !c.ended && (r.Outcome != store.Committed || h.count(t, name+"0")+h.count(t, name+"1") != want) {
				t.Errorf("%+v", r)
			}
			if c.ended && (r.Outcome == store.Committed || h.count(t, name+"0")+h.count(t, name+"1") != 0) {
				t.Errorf("%+v", r)
			}
		})
	}
}

// wantLocked waits until a statement waits for a lock on the server.
func (h *fixture) wantLocked(t testing.TB) {
	t.Helper()
	for h.number(t, "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()") == 0 {
		if t.Context().Err() != nil {
			t.Fatal("nothing waits for a lock")
		}
	}
}
