//go:build unix

package file

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"

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
	ledger, err := p.Run(t.Context(), stage)
	if err != nil {
		t.Fatal(err)
	}
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
		if err := doctored.Audit(t.Context(), db.Conn, p.Input.sent(), 0, true); err != nil {
			t.Fatal(err)
		}
		if doctored.Lost != 1 || doctored.Doubled != 1 || doctored.Astray == 0 {
			t.Errorf("%+v", doctored)
		}
	})
}

// change runs SQL statements on the database in a proof's folder.
func change(t *testing.T, folder, statements string) *processes.SQLite {
	t.Helper()
	db, err := processes.OpenSQLite(t.Context(), filepath.Join(folder, databaseFile))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if _, err := db.Conn.ExecContext(t.Context(), statements); err != nil {
		t.Fatal(err)
	}
	return db
}

func TestAnOpenTransactionIsSeenOnlyWhileItIsOpen(t *testing.T) {
	ctx, folder := context.Background(), t.TempDir()
	db := change(t, folder, `pragma journal_mode = wal; create table t (x)`)
	writing := func(want bool) {
		t.Helper()
		got, err := db.Writing(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("an open transaction: %v, not %v", got, want)
		}
	}
	other, err := sql.Open("sqlite", filepath.Join(folder, databaseFile))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	writing(false)
	tx, err := other.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(`insert into t values (1)`); err != nil {
		t.Fatal(err)
	}
	writing(true)
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
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

func TestEveryIDIsDeliveredAndTheOrderIsTheSeeds(t *testing.T) {
	in := smallInput()
	seen := map[int]bool{}
	for _, id := range in.order() {
		seen[id] = true
	}
	if len(seen) != in.IDs || len(in.order()) != in.Deliveries {
		t.Errorf("%d ids in %d deliveries", len(seen), len(in.order()))
	}
	if fmt.Sprint(in.order()) != fmt.Sprint(smallInput().order()) {
		t.Error("the same seed gave two orders")
	}
}
