// Package proof runs proofs: programs that expose Semel to the worst faults of production, and
// afterwards count what took effect. This package has the shared parts. Each proof has a
// package below it:
//
//	file      a process that reads a file into SQLite is killed
//	kafka     a fleet that reads a topic is killed, frozen, added and ended, servers restart;
//	          or one of three brokers is killed and another frozen
//	charge    processes that charge payments are killed and frozen, and the provider loses answers
//	commit    the connection is cut at COMMIT
//	failover  the primary is killed and its standby promoted
//	retention old markers are removed while workers consume
//	reconcile lost and doubled messages are found while the consumer runs
//	replay    dead letters, losses and a projection are repaired while all processes are killed
//	keyed     processes that call out under leased keys are killed and frozen, and Redis is killed
//	webhook   a receiver of webhooks is killed while the provider retries for three days
//	alerts    the fault of each alert is produced, and a Prometheus must detect it
//
// `go run ./itest/cmd/proof NAME` runs one. The tests run a short form.
//
// To add a proof, write a package below this one with three parts: a type whose Run takes a
// [Stage], produces the faults and returns a ledger, and ends by [Check] or [Must] if the run
// itself fails; the ledger, a struct that embeds [ledger.Balance] and has the methods Wrong and
// Fault (its fields are the report, see [Print]); and a [Room], usually a [Form], which declares
// flags and describes the runs. Then add a line to itest/cmd/proof and a target to the Makefile.
// Each proof should be able to plant a fault, listed in Plants, because a check that never fails
// proves nothing.
package proof

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/semel-go/semel/itest/worlds/workload"
)

// Room is one kind of proof.
type Room interface {
	// Flags declares the options other than [Choice], with their defaults.
	Flags(*flag.FlagSet)
	// Plants returns the names of the faults that can be planted.
	Plants() []string
	// Runs returns the runs for these options, in order.
	Runs(Choice) []Run
}

// Choice has the options of every proof.
type Choice struct {
	// Seed determines the random choices.
	Seed uint64
	// Plant is the name of a planted fault, which the proof must detect; "" plants none.
	Plant string
	// JSON prints the ledgers as JSON.
	JSON bool
}

// Run is one run of a proof.
type Run struct {
	// Title distinguishes the run from the other runs of its room.
	Title string
	// Within is the time limit.
	Within time.Duration
	// Prove makes the run. It ends early by [Check] if the run itself fails.
	Prove func(context.Context, Stage) Ledger
}

// Ledger is the result of a run.
type Ledger interface {
	// Wrong returns what Semel did wrong, or nil. A planted fault must cause it.
	Wrong() error
	// Fault returns why the ledger is no proof: Semel did something wrong, or too few faults
	// happened. Fault returns nil if the ledger is a proof.
	Fault() error
}

// Proving converts a method that returns a concrete ledger.
func Proving[L Ledger](prove func(context.Context, Stage) L) func(context.Context, Stage) Ledger {
	return func(ctx context.Context, s Stage) Ledger { return prove(ctx, s) }
}

// Stage is the environment of a proof.
type Stage struct {
	// T starts servers and cleans up after them.
	T testing.TB
	// Folder is the folder for all files except the servers' data.
	Folder string
	told   io.Writer // of each step
	began  time.Time
}

// InTest returns a stage for the short form of a proof.
func InTest(t testing.TB) Stage {
	return Stage{T: t, Folder: t.TempDir(), told: t.Output(), began: time.Now()}
}

// Prove makes a run on the stage of a test. The test fails if the run itself fails.
func Prove[L Ledger](s Stage, run func(context.Context, Stage) L) (l L) {
	s.T.Helper()
	if err := Attempt(func() { l = run(s.T.Context(), s) }); err != nil {
		s.T.Fatal(err)
	}
	return l
}

// Path returns the path of a file in the folder.
func (s Stage) Path(name string) string { return filepath.Join(s.Folder, name) }

// Write writes a file into the folder.
func (s Stage) Write(name, text string) { Check(os.WriteFile(s.Path(name), []byte(text), 0o644)) }

// Say logs a step, with the seconds since the start.
func (s Stage) Say(format string, args ...any) {
	fmt.Fprintf(s.told, "%5.1f s  %s\n", time.Since(s.began).Seconds(), fmt.Sprintf(format, args...))
}

// Main makes all runs of a room with these arguments and prints their ledgers. An error lists
// the runs that are no proof, with the reasons.
func Main(ctx context.Context, room Room, args []string, out io.Writer) error {
	c := Choice{}
	flags := flag.NewFlagSet("proof", flag.ExitOnError)
	flags.Uint64Var(&c.Seed, "seed", 1, "orders what is random")
	flags.BoolVar(&c.JSON, "json", false, "print the ledger as JSON")
	if plants := room.Plants(); plants != nil {
		flags.StringVar(&c.Plant, "plant", "", fmt.Sprintf("a fault that must be found, one of %v", plants))
	}
	room.Flags(flags)
	if err := flags.Parse(args); err != nil {
		return err
	}
	if rest := flags.Args(); len(rest) > 0 {
		return fmt.Errorf("%q is no flag, and flags after it would be ignored; -help lists all flags", rest[0])
	}
	if c.Plant != "" && !slices.Contains(room.Plants(), c.Plant) {
		return fmt.Errorf("-plant %s is unknown; there are %v", c.Plant, room.Plants())
	}
	var failed error
	for _, run := range room.Runs(c) {
		if err := run.do(ctx, c, out); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", run.Title, err))
		}
	}
	return failed
}

// do makes a run and prints its ledger. The folder is kept unless everything is correct.
func (r Run) do(ctx context.Context, c Choice, out io.Writer) error {
	folder, err := os.MkdirTemp("", "semel-proof-")
	if err != nil {
		return err
	}
	ledger, err := r.stage(ctx, folder)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("the proof was interrupted and has no result: %w", err)
	}
	if err == nil {
		err = Print(out, ledger, c.JSON)
	}
	if err == nil {
		err = judge(out, ledger, c.Plant)
	}
	if err != nil {
		return fmt.Errorf("%w; the files are in %s", err, folder)
	}
	return os.RemoveAll(folder)
}

// stage makes a run. When it returns, all servers have ended.
func (r Run) stage(ctx context.Context, folder string) (l Ledger, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.Within)
	defer cancel()
	outside := &workload.Outside{}
	defer outside.End()
	err = Attempt(func() { l = r.Prove(ctx, Stage{T: outside, Folder: folder, told: os.Stderr, began: time.Now()}) })
	return l, err
}

// judge returns an error if the ledger is not as expected.
func judge(out io.Writer, l Ledger, plant string) error {
	if plant == "" {
		return l.Fault()
	}
	found := l.Wrong()
	if found == nil {
		return errors.New("the planted fault was not detected")
	}
	_, err := fmt.Fprintf(out, "the planted fault is found: %v\n", found)
	return err
}
