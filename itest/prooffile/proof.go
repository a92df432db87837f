//go:build unix

// Package prooffile proves on real input that a file's messages take effect
// once although the process that applies them is killed again and again: it
// runs the binary, kills it with SIGKILL while it works, and reads the ledger
// from the database.
package prooffile

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"time"

	"github.com/semel-go/semel/itest/ledger"
	"github.com/semel-go/semel/itest/processes"
)

// Proof is one run.
type Proof struct {
	Input Input
	// Binary is the built semel; Folder holds everything the run writes.
	Binary, Folder string
	// Batch is the most messages of a transaction.
	Batch int
	// Kills is how often the process is killed before it may end. Every
	// fifth kill is blind; for the others the process is frozen until it has
	// a transaction open.
	Kills int
	// Progress gets a line for each step.
	Progress io.Writer
}

// Ledger is what came out.
type Ledger struct {
	Deliveries int `json:"deliveries"`
	// Expected are ids, Applied those in the effect log.
	Expected int `json:"expected"`
	Applied  int `json:"applied"`
	// Lost ids have no effect and stand nowhere; Stuck ones were set aside or
	// left in flight; Doubled are effects beyond the first of an id.
	Lost    int `json:"lost"`
	Doubled int `json:"doubled"`
	Stuck   int `json:"stuck"`
	// Absorbed are the deliveries of the file that had no effect because
	// their message had taken effect; what the restarts delivered again comes
	// on top and is not counted.
	Absorbed int `json:"duplicates_absorbed"`
	// Astray are counters that differ from the log.
	Astray int `json:"counters_unlike_log"`
	Kills  int `json:"kills"`
	// Open are kills that met an open write transaction.
	Open    int     `json:"kills_in_open_transaction"`
	Seconds float64 `json:"seconds"`
}

// Run writes the input, runs semel until it ends by itself and returns the
// ledger. An error says that the run itself failed; judge the ledger with Fault.
func (p Proof) Run(ctx context.Context) (Ledger, error) {
	size, err := p.Input.WriteFile(filepath.Join(p.Folder, inputFile))
	if err != nil {
		return Ledger{}, err
	}
	if err := writeSetup(p.Folder, setup); err != nil {
		return Ledger{}, err
	}
	p.say("%d deliveries of %d webhooks, %.0f MB", p.Input.Deliveries, p.Input.IDs, float64(size)/1e6)
	db, err := processes.OpenSQLite(ctx, filepath.Join(p.Folder, databaseFile))
	if err != nil {
		return Ledger{}, err
	}
	defer func() { _ = db.Close() }()
	began := time.Now()
	ledger := Ledger{Deliveries: p.Input.Deliveries, Expected: p.Input.IDs}
	if err := p.killAndFinish(ctx, db, &ledger); err != nil {
		return ledger, err
	}
	ledger.Seconds = time.Since(began).Seconds()
	return ledger, p.audit(ctx, db, &ledger)
}

// killAndFinish runs the process as often as it is killed, and once to its end.
func (p Proof) killAndFinish(ctx context.Context, db *processes.SQLite, ledger *Ledger) error {
	// While it is hunted the process follows its file, so that it cannot end
	// before it is killed, however slow the hunter is.
	if err := writePolicy(p.Folder, p.Batch, true); err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(p.Input.Seed, 2))
	for ledger.Kills < p.Kills {
		hunt := hunter{db: db, random: random, blind: ledger.Kills%5 == 4, mark: p.mark(ledger.Kills)}
		running, err := p.command().Start()
		if err != nil {
			return err
		}
		open, err := hunt.kill(ctx, running)
		if err != nil {
			_ = running.Kill()
			return fmt.Errorf("kill %d: %w; the log is %s", ledger.Kills+1, err, filepath.Join(p.Folder, logFile))
		}
		ledger.Kills++
		if open {
			ledger.Open++
		}
		done, err := db.Effects(ctx)
		if err != nil {
			return err
		}
		p.say("kill %2d of %d: %5d of %d applied, open transaction: %v", ledger.Kills, p.Kills, done, p.Input.IDs, open)
	}
	if err := writePolicy(p.Folder, p.Batch, false); err != nil {
		return err
	}
	last, err := p.command().Start()
	if err != nil {
		return err
	}
	if err := last.Wait(0); err != nil {
		return err
	}
	if last.Status.ExitStatus() != 0 {
		return fmt.Errorf("the last run did not end well (%v); its log is %s", last.Status, filepath.Join(p.Folder, logFile))
	}
	return nil
}

// mark is how many effects must stand before kill k+1: kills are spread over
// the first 80 % of the effects, so that there is work left at each.
func (p Proof) mark(k int) int { return p.Input.IDs * 80 * (k + 1) / (100 * (p.Kills + 1)) }

func (p Proof) audit(ctx context.Context, db *processes.SQLite, l *Ledger) error {
	e, err := ledger.ReadEffects(ctx, db.Conn)
	if err != nil {
		return err
	}
	left, err := p.command().Left("counter")
	if err != nil {
		return err
	}
	parked, err := p.command().Parked()
	if err != nil {
		return err
	}
	aside := left + parked
	absent := missing(e, p.Input.IDs)
	l.Applied = p.Input.IDs - absent
	l.Stuck = aside
	l.Lost = max(absent-aside, 0)
	l.Doubled = e.Doubled()
	l.Absorbed = p.Input.Deliveries - l.Applied - absent
	l.Astray = e.Astray
	return nil
}

func (p Proof) command() processes.Command {
	return processes.Command{Binary: p.Binary, Folder: p.Folder, Policy: policyFile, Log: logFile, Summary: summaryFile}
}

func (p Proof) say(format string, args ...any) {
	fmt.Fprintf(p.Progress, format+"\n", args...)
}
