// Httpbench measures what a handler behind HTTP whose answers are effects costs, on
// PostgreSQL, in turns of four contestants:
//
//   - the server of examples/python-effects under a load generator that does nothing else,
//   - the same server under `semel run`, with as many requests in flight, and with twice as
//     many workers: those whose answer is being committed have no request in flight,
//   - an endpoint in Go that answers at once, under `semel run`,
//   - the same statements as SQL of a policy, a transaction a message.
//
// What passes through Semel is counted by what its statements wrote, from the first to
// the last: starting a process and reading its file do not count.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/itest/bench"
)

// sizes is what a run is made of.
type sizes struct {
	rounds, messages, inFlight int
	lease                      bool
}

func main() {
	dsn := flag.String("dsn", os.Getenv("SEMEL_POSTGRES"), "address of the server (postgres://…)")
	commit := flag.String("commit", "unknown", "what is measured, for the head of the table")
	var s sizes
	flag.IntVar(&s.rounds, "rounds", 11, "how often the contestants take turns")
	flag.IntVar(&s.messages, "messages", 12000, "messages of a turn")
	flag.IntVar(&s.inFlight, "in-flight", 32, "requests in flight, and workers of the SQL handler")
	flag.BoolVar(&s.lease, "lease", false, "claim each message for its call, as for an endpoint with effects of its own; otherwise it only answers (pure)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *dsn, *commit, s)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "httpbench:", err)
		os.Exit(1)
	}
}

// The contestants, in the order in which they take turns.
const (
	bare    = "Python's server, under a bare load generator"
	python  = "Python's server, through Semel"
	instant = "an instant endpoint in Go, through Semel"
	asSQL   = "the same statements as SQL, a transaction a message"
)

func run(ctx context.Context, dsn, commit string, s sizes) (err error) {
	if dsn == "" {
		return errors.New("no server: set SEMEL_POSTGRES or -dsn; `make bench NAME=http` starts one")
	}
	folder, err := os.MkdirTemp("", "semel-httpbench")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	w := &world{dsn: dsn, folder: folder, binary: filepath.Join(folder, "semel"), sizes: s}
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", w.binary, "github.com/semel-go/semel/cmd/semel").CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	began := time.Now()
	rates, err := w.measure(ctx)
	if err != nil {
		return err
	}
	version, err := w.version(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("%d rounds of %d messages, %d in flight; PostgreSQL %s on the same host, %d cores, commit %s, %s. Lower quartile – **median** – upper quartile.\n\n",
		s.rounds, s.messages, s.inFlight, version, runtime.NumCPU(), commit, time.Since(began).Round(time.Second))
	fmt.Print("| contestant | messages a second |\n|---|---|\n")
	for _, name := range []string{bare, python, instant, asSQL} {
		fmt.Printf("| %s | %s |\n", name, bench.QuartilesOf(rates[name]).Text("%.0f"))
	}
	fmt.Printf("\n| of one round | ratio |\n|---|---|\n| %s to bare | %s |\n| %s to SQL | %s |\n",
		python, ratio(rates[python], rates[bare]).Text("%.2f"), instant, ratio(rates[instant], rates[asSQL]).Text("%.2f"))
	return nil
}

// ratio is of rates of the same rounds.
func ratio(of, to []float64) bench.Quartiles {
	var all []float64
	for i := range of {
		all = append(all, of[i]/to[i])
	}
	return bench.QuartilesOf(all)
}

func (w *world) version(ctx context.Context) (version string, err error) {
	c, err := pgx.Connect(ctx, w.dsn)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, c.Close(ctx)) }()
	err = c.QueryRow(ctx, "show server_version").Scan(&version)
	return version, err
}
