//go:build unix

package postgres

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/services/pgproxy"
)

func TestAPlainURLThroughAPoolerByTransaction(t *testing.T) {
	t.Run("P3_all_messages_are_applied_once", func(t *testing.T) {
		s := example(t, services.PgBouncer(t))
		s.appliesAll(t)
	})
	t.Run("P3_no_statement_fails_where_the_pooler_is_put_in_front_during_a_run", func(t *testing.T) {
		direct, pooled := services.Pooled(t)
		proxy := pgproxy.Start(t, direct)
		handler := pgproxy.Containing("insert into entries")
		var failed atomic.Int64
		proxy.Watch(func(m pgproxy.Message) {
			// for some payments the handler's own statements fail as intended
			if m.Failed() && !strings.Contains(m.SQL, "accounts") && !handler(m) {
				failed.Add(1)
			}
		})
		switched := make(chan error, 1)
		rule := proxy.HoldRequest(pgproxy.Nth(1000, handler))
		go func() {
			err := rule.Wait(t.Context())
			if err == nil {
				err = proxy.Redirect(pooled)
			}
			proxy.Sever()
			rule.Remove()
			switched <- err
		}()
		s := example(t, proxy.DSN())
		s.appliesAll(t)
		if err := <-switched; err != nil {
			t.Fatal(err)
		}
		if n := failed.Load(); n != 0 {
			t.Errorf("%d statements failed", n)
		}
	})
}

// appliesAll runs the example until its file is read to the end.
func (s fixture) appliesAll(t *testing.T) {
	t.Helper()
	var told summary
	s.runJSON(t, &told, "run", "-o", "json", "--config", "postgres.yaml")
	if n := told.Consumers["billing"]["applied"]; n != 7500 {
		t.Errorf("%d were applied, want 7500", n)
	}
}
