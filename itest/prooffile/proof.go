//go:build unix

// Package prooffile proves on real input that a file's messages take effect
// once although the process that applies them is killed again and again: it
// runs the binary, kills it with SIGKILL while it works, and reads the ledger
// from the database.
package prooffile

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"time"
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

// Build builds the binary into folder and returns its path. The working
// directory is anywhere in the workspace.
func Build(ctx context.Context, folder string) (string, error) {
	binary := filepath.Join(folder, "semel")
	out, err := exec.CommandContext(ctx, "go", "build", "-o", binary, "github.com/semel-go/semel/cmd/semel").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build semel: %w\n%s", err, out)
	}
	return binary, nil
}

// Run writes the input, runs semel until it ends by itself and returns the
// ledger. An error says that the run itself failed; judge the ledger with Fault.
func (p Proof) Run(ctx context.Context) (Ledger, error) {
	size, err := p.Input.WriteFile(filepath.Join(p.Folder, inputFile))
	if err != nil {
		return Ledger{}, err
	}
	if err := writeSetup(p.Folder); err != nil {
		return Ledger{}, err
	}
	p.say("%d deliveries of %d webhooks, %.0f MB", p.Input.Deliveries, p.Input.IDs, float64(size)/1e6)
	db, err := openDatabase(ctx, p.Folder)
	if err != nil {
		return Ledger{}, err
	}
	defer db.close()
	began := time.Now()
	ledger := Ledger{Deliveries: p.Input.Deliveries, Expected: p.Input.IDs}
	if err := p.killAndFinish(ctx, db, &ledger); err != nil {
		return ledger, err
	}
	ledger.Seconds = time.Since(began).Seconds()
	return ledger, p.audit(ctx, db, &ledger)
}

// killAndFinish runs the process as often as it is killed, and once to its end.
func (p Proof) killAndFinish(ctx context.Context, db *database, ledger *Ledger) error {
	// While it is hunted the process follows its file, so that it cannot end
	// before it is killed, however slow the hunter is.
	if err := writePolicy(p.Folder, p.Batch, true); err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(p.Input.Seed, 2))
	for ledger.Kills < p.Kills {
		hunt := hunter{db: db, random: random, blind: ledger.Kills%5 == 4, mark: p.mark(ledger.Kills)}
		running, err := start(p.Binary, p.Folder)
		if err != nil {
			return err
		}
		open, err := hunt.kill(ctx, running)
		if err != nil {
			_ = running.kill()
			return fmt.Errorf("kill %d: %w; the log is %s", ledger.Kills+1, err, filepath.Join(p.Folder, logFile))
		}
		ledger.Kills++
		if open {
			ledger.Open++
		}
		done, err := db.effects(ctx)
		if err != nil {
			return err
		}
		p.say("kill %2d of %d: %5d of %d applied, open transaction: %v", ledger.Kills, p.Kills, done, p.Input.IDs, open)
	}
	if err := writePolicy(p.Folder, p.Batch, false); err != nil {
		return err
	}
	last, err := start(p.Binary, p.Folder)
	if err != nil {
		return err
	}
	if err := last.wait(0); err != nil {
		return err
	}
	if last.status.ExitStatus() != 0 {
		return fmt.Errorf("the last run did not end well (%v); its log is %s", last.status, filepath.Join(p.Folder, logFile))
	}
	return nil
}

// mark is how many effects must stand before kill k+1: kills are spread over
// the first 80 % of the effects, so that there is work left at each.
func (p Proof) mark(k int) int { return p.Input.IDs * 80 * (k + 1) / (100 * (p.Kills + 1)) }

func (p Proof) audit(ctx context.Context, db *database, ledger *Ledger) error {
	l, err := db.readLog(ctx)
	if err != nil {
		return err
	}
	aside, err := p.setAside(ctx)
	if err != nil {
		return err
	}
	missing := 0
	for i := range p.Input.IDs {
		if !l.deliveries[DeliveryID(i)] {
			missing++
		}
	}
	ledger.Applied = p.Input.IDs - missing
	ledger.Stuck = aside
	ledger.Lost = max(missing-aside, 0)
	ledger.Doubled = l.rows - l.distinct
	ledger.Absorbed = p.Input.Deliveries - ledger.Applied - missing
	ledger.Astray = l.astray
	return nil
}

// setAside counts what the last run left in flight or failed and what is parked.
func (p Proof) setAside(ctx context.Context) (int, error) {
	text, err := os.ReadFile(filepath.Join(p.Folder, summaryFile))
	if err != nil {
		return 0, err
	}
	var summary struct {
		Consumers map[string]struct {
			InFlight int `json:"in_flight"`
			Failed   int `json:"failed"`
		}
	}
	if err := json.Unmarshal(text, &summary); err != nil {
		return 0, fmt.Errorf("the summary of the last run: %w", err)
	}
	cmd := exec.CommandContext(ctx, p.Binary, "parked", "ls", "--config", policyFile, "--json")
	cmd.Dir, cmd.Stderr = p.Folder, os.Stderr
	listed, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("semel parked ls: %w", err)
	}
	var parked struct{ Rows []json.RawMessage }
	if err := json.Unmarshal(listed, &parked); err != nil {
		return 0, fmt.Errorf("semel parked ls: %w", err)
	}
	counter := summary.Consumers["counter"]
	return counter.InFlight + counter.Failed + len(parked.Rows), nil
}

func (p Proof) say(format string, args ...any) {
	fmt.Fprintf(p.Progress, format+"\n", args...)
}
