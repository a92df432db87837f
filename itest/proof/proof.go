// Package proof runs fault tests, also called proofs. A proof is a program that injects the worst faults of production
// and afterwards counts which messages took effect. This package has the shared parts. Each fault test has a package in
// a folder below this one:
//
//	file      kills a process that reads a file into SQLite
//	kafka     kills, freezes, adds and ends processes that read a topic, and restarts the servers;
//	          or kills one of three brokers and freezes another
//	chaos     injects all faults of a fleet at Kafka and PostgreSQL in turn; its soak injects none, and watches sizes
//	charge    kills and freezes processes that charge payments at a provider that loses answers
//	commit    cuts the connection at COMMIT
//	failover  kills the primary and promotes its standby
//	retention removes old markers while workers consume
//	reconcile searches lost and doubled messages while the consumer runs
//	replay    repairs dead letters, losses and a projection while all processes are killed
//	keyed     kills and freezes processes that call out under leased keys, and kills Redis
//	webhook   kills a receiver of webhooks while the provider retries for three days
//	alerts    produces the fault of each alert, which Prometheus must detect
//
// `go run ./itest/cmd/proof NAME` runs one proof. The tests of each package run a short form of the proof.
//
// To add a fault test, write a package below this one with three parts. The first part is a type whose method Run takes
// a [Stage], produces the faults and returns a ledger; if the run itself fails, the method ends by [Check] or [Must].
// The second part is the ledger, a struct that embeds [ledger.Balance] and has the methods Wrong and Fault (its fields
// are the report, see [Print]). The third part is a [Room], usually a [Form], which declares flags and describes the
// runs. Then add a line to itest/cmd/proof and a target to the Makefile. Each proof should have at least one fault of
// Semel that can be added on purpose (see Room.Plants), because a check that never fails proves nothing.
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

// Room registers a fault test with the command itest/cmd/proof: the flags of the test, the faults that can be added on
// purpose, and the runs.
type Room interface {
	// Flags declares the options of one fault test, with their defaults. The options of [Choice] are declared
	// elsewhere.
	Flags(*flag.FlagSet)
	// Plants returns the names of the faults that can be added on purpose.
	Plants() []string
	// Runs returns the runs for the options of Choice, in the order in which they run.
	Runs(Choice) []Run
}

// Choice has the options that every fault test has.
type Choice struct {
	// Seed determines all random choices.
	Seed uint64
	// Plant is the name of a fault to add on purpose, or "". The fault test must detect this fault.
	Plant string
	// JSON prints the ledgers (the counted results of the runs) as JSON.
	JSON bool
}

// Run is one run of a fault test.
type Run struct {
	// Title distinguishes the run from the other runs of the same fault test.
	Title string
	// Within is the time limit of the run.
	Within time.Duration
	// Prove makes the run. If the run itself fails, Prove ends early by [Check].
	Prove func(context.Context, Stage) Ledger
}

// Ledger is the result of a run.
type Ledger interface {
	// Wrong returns an error that says what Semel did wrong, or nil. If a fault was added on purpose, Wrong must return
	// an error.
	Wrong() error
	// Fault returns an error if the run proves nothing: Semel did something wrong, or too few faults happened. If the
	// run was successful, Fault returns nil.
	Fault() error
}

// Proving converts a Run method that returns a concrete ledger type to a function that returns a Ledger.
func Proving[L Ledger](prove func(context.Context, Stage) L) func(context.Context, Stage) Ledger {
	return func(ctx context.Context, s Stage) Ledger { return prove(ctx, s) }
}

// Stage is the environment in which a fault test runs.
type Stage struct {
	// T starts servers and stops them at the end.
	T testing.TB
	// Folder is the folder for all files except the servers' data.
	Folder string
	told   io.Writer // receives a line for each step
	began  time.Time
}

// InTest returns a stage for a Go test that runs the short form of a fault test.
func InTest(t testing.TB) Stage {
	return Stage{T: t, Folder: t.TempDir(), told: t.Output(), began: time.Now()}
}

// Prove makes a run in a Go test, with the Stage that InTest returns. The Go test fails if the run itself fails.
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

// Say logs a step of the fault test, with the seconds since the start.
func (s Stage) Say(format string, args ...any) {
	fmt.Fprintf(s.told, "%5.1f s  %s\n", time.Since(s.began).Seconds(), fmt.Sprintf(format, args...))
}

// Main runs all runs of a fault test with the given arguments and prints the ledgers. The error lists the runs that
// failed or prove nothing, with the reasons.
func Main(ctx context.Context, room Room, args []string, out io.Writer) error {
	c := Choice{}
	flags := flag.NewFlagSet("proof", flag.ExitOnError)
	flags.Uint64Var(&c.Seed, "seed", 1, "orders what is random")
	flags.BoolVar(&c.JSON, "json", false, "print the ledger as JSON")
	if plants := room.Plants(); plants != nil {
		flags.StringVar(&c.Plant, "plant", "", fmt.Sprintf("fault to plant, which the proof must detect; one of %v", plants))
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
		if err := run.runOnce(ctx, c, out); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", run.Title, err))
		}
	}
	return failed
}

// runOnce runs the fault test once and prints the ledger. The folder of the run is deleted only if the ledger is
// as expected.
func (r Run) runOnce(ctx context.Context, c Choice, out io.Writer) error {
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

// stage runs the fault test once. When stage returns, all servers have stopped.
func (r Run) stage(ctx context.Context, folder string) (l Ledger, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.Within)
	defer cancel()
	outside := &workload.Outside{}
	defer outside.End()
	err = Attempt(func() { l = r.Prove(ctx, Stage{T: outside, Folder: folder, told: os.Stderr, began: time.Now()}) })
	return l, err
}

// judge returns an error if the ledger is not as expected: if a fault was added on purpose, the ledger must show the
// fault; otherwise the ledger must be correct.
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
