package pgproxy

import (
	"testing"
	"time"

	"github.com/semel-go/semel/itest/must"
	"github.com/semel-go/semel/itest/services"
)

func TestACommitThatWaitsForItsStandbyWhenTheConnectionIsCut(t *testing.T) {
	t.Run("trap_89_a_look_up_lies_while_the_commit_waits_for_a_standby_and_marking_again_waits", func(t *testing.T) {
		server := services.StartPostgres(t, services.Options{Standby: true})
		w := newWorld(t, server.DSN())
		tx := w.beginMarked()
		server.Standby().Freeze()
		w.proxy.DropCancels(true)
		w.proxy.CutInFlight(Commit)
		if err := tx.Commit(w.ctx); err == nil {
			t.Fatal("a commit that was cut off succeeded")
		}
		w.want("markers", 0)
		if _, err := w.markAgain("50ms"); code(err) != "55P03" {
			t.Errorf("markAgain returned %v, want that the lock was not available", err)
		}
		server.Standby().Thaw()
		if fresh, err := w.markAgain("30s"); fresh || err != nil {
			t.Errorf("markAgain returned fresh %v (%v), want seen", fresh, err)
		}
		w.want("markers", 1)
	})
}

// untilItWaits waits until a commit waits for the standby.
func (w *world) untilItWaits() {
	w.t.Helper()
	for waiting := 0; waiting == 0; {
		must.OK(w.t, w.direct.QueryRow(w.ctx, "select count(*) from pg_stat_activity where wait_event = 'SyncRep'").Scan(&waiting))
	}
}

// Some drivers send a request to cancel when their connection breaks. After a request to cancel, the server stops
// waiting for the standby. The transaction becomes visible on the primary, although it is lost if the primary is lost.
func TestACommitWhoseWaitForItsStandbyIsCancelled(t *testing.T) {
	visible := func(t *testing.T) (*world, *services.Server) {
		server := services.StartPostgres(t, services.Options{Standby: true})
		w := newWorld(t, server.DSN())
		tx := w.beginMarked()
		server.Standby().Freeze()
		release := w.proxy.HoldCancels()
		w.proxy.CutInFlight(Commit)
		if err := tx.Commit(w.ctx); err == nil {
			t.Fatal("a commit that was cut off succeeded")
		}
		w.untilItWaits()
		release()
		if fresh, err := w.markAgain("30s"); fresh || err != nil {
			t.Fatalf("markAgain returned fresh %v (%v), want seen", fresh, err)
		}
		return w, server
	}
	t.Run("trap_106_what_marking_again_has_seen_is_lost_in_a_failover", func(t *testing.T) {
		_, server := visible(t)
		server.Kill()
		server.Standby().Kill() // like a loss of the data in the kernel's buffers
		server.Standby().Start()
		server.Standby().Promote()
		services.Exec(t, server.Standby().DSN(), "insert into markers values (1)")
	})
	t.Run("trap_106_a_record_of_ones_own_waits_for_the_standby_to_have_all_that_was_seen", func(t *testing.T) {
		w, server := visible(t)
		said := make(chan error, 1)
		go func() {
			_, err := w.direct.Exec(w.ctx, "select pg_logical_emit_message(true, '', '')")
			said <- err
		}()
		select {
		case err := <-said:
			t.Errorf("the record did not wait for the standby (%v)", err)
		case <-time.After(200 * time.Millisecond):
		}
		server.Standby().Thaw()
		must.OK(t, <-said)
		server.Kill()
		server.Standby().Promote()
		services.Exec(t, server.Standby().DSN(), "do $$ begin if not exists (select from markers) then raise 'lost'; end if; end $$")
	})
}
