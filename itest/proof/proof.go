// Package proof runs the proofs: programs that do to Semel what happens in the
// worst nights of production, and afterwards add up what took effect. What they
// share is here; each has a room of its own below, with what only it does:
//
//	file      a process that reads a file into SQLite is killed
//	kafka     a fleet that reads a topic is killed, frozen, added and ended, servers restart;
//	          or of three brokers one is killed and another frozen
//	charge    who charges payments is killed and frozen, and the provider loses answers
//	commit    the connection is cut at COMMIT
//	failover  the primary is killed and its standby promoted
//	retention old markers are removed while workers consume
//	reconcile what was lost and doubled is found beside a consumer that runs
//	replay    dead letters, losses and a projection are repaired while everybody is killed
//	keyed     processes that call out under leased keys are killed and frozen, and Redis is killed
//	webhook   who receives webhooks is killed while the provider repeats for three days
//	alerts    each fault that an alert is for is produced, and a Prometheus must find it
//
// `go run ./itest/cmd/proof NAME` runs one, its tests run a short form.
//
// A further proof is a package below this one with three things: a type whose
// Run takes a [Stage], does its harm and returns a ledger; the ledger, a struct
// that embeds [ledger.Balance] and has Wrong and Fault (its fields are the
// report, see [Print]); and a [Room], mostly a [Form], which declares flags and says what is run.
// Then a line in itest/cmd/proof and a target in the Makefile. A fault that it
// can plant is a name in Plants, and each proof should have one: a check that
// no fault has failed proves nothing.
package proof

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/semel-go/semel/itest/worlds/workload"
)

// Room is one kind of proof, as the program offers it.
type Room interface {
	// Flags declares what can be chosen beside [Choice], with its defaults.
	Flags(*flag.FlagSet)
	// Plants are the names of the faults that can be planted.
	Plants() []string
	// Runs are what is proved, one after the other, with what was chosen.
	Runs(Choice) []Run
}

// Choice is what can be chosen for every proof.
type Choice struct {
	// Seed orders what is random.
	Seed uint64
	// Plant is the name of a fault, which must be found; "" plants none.
	Plant string
	// JSON has the ledgers printed for machines.
	JSON bool
}

// Run is one run of a proof.
type Run struct {
	// Title tells it from the other runs of its room.
	Title string
	// Within is how long it may take.
	Within time.Duration
	// Prove does it. An error says that the run itself failed.
	Prove func(context.Context, Stage) (Ledger, error)
}

// Ledger is what came out of a run.
type Ledger interface {
	// Wrong says what was wrong with Semel; nil if nothing was. It is what a
	// planted fault must bring about.
	Wrong() error
	// Fault says why the ledger is no proof: something was wrong, or too little
	// happened; nil if it is one.
	Fault() error
}

// Proving is a method that proves, with the type of its ledger hidden.
func Proving[L Ledger](prove func(context.Context, Stage) (L, error)) func(context.Context, Stage) (Ledger, error) {
	return func(ctx context.Context, s Stage) (Ledger, error) { return prove(ctx, s) }
}

// Stage is where a proof happens.
type Stage struct {
	// T is who starts servers, and cleans up after them.
	T testing.TB
	// Folder holds everything that is written, but for the servers' data.
	Folder string
	told   io.Writer // of each step
	began  time.Time
}

// InTest is a stage for the short form of a proof.
func InTest(t testing.TB) Stage {
	return Stage{T: t, Folder: t.TempDir(), told: t.Output(), began: time.Now()}
}

// Say tells of a step, with the seconds since the start.
func (s Stage) Say(format string, args ...any) {
	fmt.Fprintf(s.told, "%5.1f s  %s\n", time.Since(s.began).Seconds(), fmt.Sprintf(format, args...))
}

// Main does all runs of a room as these arguments say, and prints their
// ledgers. An error says which of them are no proof and why.
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
		return fmt.Errorf("%q is no flag, and flags behind it would not be read; -help lists them", rest[0])
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

// do proves and prints. The folder is left behind unless all is well.
func (r Run) do(ctx context.Context, c Choice, out io.Writer) error {
	folder, err := os.MkdirTemp("", "semel-proof-")
	if err != nil {
		return err
	}
	ledger, err := r.stage(ctx, folder)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("it was interrupted, and proves nothing: %w", err)
	}
	if err == nil {
		err = Print(out, ledger, c.JSON)
	}
	if err == nil {
		err = judge(out, ledger, c.Plant)
	}
	if err != nil {
		return fmt.Errorf("%w; everything is in %s", err, folder)
	}
	return os.RemoveAll(folder)
}

// stage proves, and has ended all servers when it returns.
func (r Run) stage(ctx context.Context, folder string) (Ledger, error) {
	ctx, cancel := context.WithTimeout(ctx, r.Within)
	defer cancel()
	outside := &workload.Outside{}
	defer outside.End()
	return r.Prove(ctx, Stage{T: outside, Folder: folder, told: os.Stderr, began: time.Now()})
}

// judge says why a ledger is not what it was to be.
func judge(out io.Writer, l Ledger, plant string) error {
	if plant == "" {
		return l.Fault()
	}
	found := l.Wrong()
	if found == nil {
		return errors.New("the planted fault was not found")
	}
	_, err := fmt.Fprintf(out, "the planted fault is found: %v\n", found)
	return err
}
