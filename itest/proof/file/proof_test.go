//go:build unix

package file

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/semel-go/semel/itest/must"
	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/proof/ledger"
	"github.com/semel-go/semel/itest/worlds/processes"
	"github.com/semel-go/semel/itest/worlds/webhooks"
)

// smallInput returns generated webhooks. Only `make proof NAME=file` downloads the real payloads.
func smallInput() Input {
	return Input{Webhooks: webhooks.MadeUp(40, 0), Deliveries: 2_000, IDs: 1_600, Seed: 7}
}

func TestAProcessThatIsKilledLosesAndDoublesNothing(t *testing.T) {
	p, stage := Proof{Input: smallInput(), Batch: 1, Kills: 3, Open: 2}, proof.InTest(t)
	ledger := proof.Prove(stage, p.Run)
	if err := ledger.Fault(); err != nil {
		t.Errorf("%v: %+v", err, ledger)
	}
	if ledger.Kills != 3 || ledger.Absorbed != 400 {
		t.Errorf("%+v", ledger)
	}
	t.Run("the_audit_sees_what_is_wrong", func(t *testing.T) {
		db := change(t, stage.Folder, `
			delete from effects where rowid = 1;
			insert into effects select delivery, type, repository from effects where rowid = 2;
			update counters set n = n + 1 where rowid = 1`)
		var doctored proof.Tally
		doctored.Audit(t.Context(), db.Conn, p.Input.sentIDs(), 0, true)
		if doctored.Lost != 1 || doctored.Doubled != 1 || doctored.Astray == 0 {
			t.Errorf("%+v", doctored)
		}
	})
}

// change runs SQL statements on the database in the folder of a fault test.
func change(t *testing.T, folder, statements string) *processes.SQLite {
	t.Helper()
	db := must.Get(processes.OpenSQLite(t.Context(), filepath.Join(folder, databaseFile)))(t)
	t.Cleanup(func() { _ = db.Close() })
	must.Get(db.Conn.ExecContext(t.Context(), statements))(t)
	return db
}

func TestAnOpenTransactionIsSeenOnlyWhileItIsOpen(t *testing.T) {
	ctx, folder := context.Background(), t.TempDir()
	db := change(t, folder, `pragma journal_mode = wal; create table t (x)`)
	writing := func(want bool) {
		t.Helper()
		got := must.Get(db.Writing(ctx))(t)
		if got != want {
			t.Errorf("an open transaction: %v, not %v", got, want)
		}
	}
	other := must.Get(sql.Open("sqlite", filepath.Join(folder, databaseFile)))(t)
	defer other.Close()
	writing(false)
	tx := must.Get(other.Begin())(t)
	must.Get(tx.Exec(`insert into t values (1)`))(t)
	writing(true)
	must.OK(t, tx.Rollback())
	writing(false)
}

func TestALedgerIsAProofOnlyIfNothingIsWrong(t *testing.T) {
	good := Ledger{Deliveries: 10, Absorbed: 5, Tally: proof.Tally{Balance: ledger.Balance{Expected: 5, Applied: 5}, Kills: 30, Open: 20}, least: 20}
	proof.Spoil(t, good, map[string]func(*Ledger){
		"lost":    func(l *Ledger) { l.Lost, l.Applied = 1, 4 },
		"doubled": func(l *Ledger) { l.Doubled = 1 },
		"stuck":   func(l *Ledger) { l.Stuck, l.Applied = 1, 4 },
		"astray":  func(l *Ledger) { l.Astray = 1 },
		"tame":    func(l *Ledger) { l.Open = 19 },
	})
}
