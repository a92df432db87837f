//go:build unix

// Pairedbench compares an earlier commit, the base, with the current tree. By default, pairedbench runs the benchmarks
// of a package. With -postgres, it measures each form of handler on PostgreSQL under the conditions of bench.Base; with
// -kafka, the path from a broker to PostgreSQL; and with -file, the binary that reads a file of webhooks into SQLite.
// Each round measures the base, the current tree, and the base again. The two runs of the base show how much the
// results of the same code differ.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/semel-go/semel/itest/bench"
	"github.com/semel-go/semel/itest/bench/paired"
	"github.com/semel-go/semel/itest/worlds/history"
)

type flags struct {
	base, packages, pattern, time string
	rounds                        int
	postgres, file                bool
	dsn                           string
	busy                          time.Duration
	against, webhooks, body       string
	kafka                         string
	deliveries                    int
}

func main() {
	var f flags
	flag.StringVar(&f.base, "base", "", "commit to compare with the current tree")
	flag.IntVar(&f.rounds, "rounds", 11, "number of rounds; each measures base, current tree, base")
	flag.StringVar(&f.packages, "packages", "./consumer", "folders whose benchmarks are compared, separated by commas")
	flag.StringVar(&f.pattern, "bench", "", "pattern of benchmarks, like `go test -bench`; if empty, all that both trees have")
	flag.StringVar(&f.time, "benchtime", "300000x", "duration of each benchmark, like `go test -benchtime`")
	flag.BoolVar(&f.postgres, "postgres", false, "compare the forms on PostgreSQL, by their ratio to a hand-written batch")
	flag.StringVar(&f.dsn, "dsn", os.Getenv("SEMEL_POSTGRES"), "with -postgres and -kafka, address of the server (postgres://…)")
	flag.DurationVar(&f.busy, "target", 500*time.Millisecond, "with -postgres, target duration of a run")
	flag.StringVar(&f.kafka, "kafka", "", "compare the path from this broker (host:port) to PostgreSQL, with real webhooks or -body, by its ratio to a loop without deduplication")
	flag.StringVar(&f.body, "body", "", "with -postgres or -kafka, lengths of bodies, such as 200B,1KiB; this tree's semelbench then also measures the base")
	flag.BoolVar(&f.file, "file", false, "compare runs of the binary that read a file of webhooks into SQLite, with GOMAXPROCS 1 and 2")
	flag.StringVar(&f.against, "against", "", "with -file, path of a semel binary to use as the base, instead of -base")
	flag.StringVar(&f.webhooks, "webhooks", os.Getenv("SEMEL_WEBHOOKS"), "with -file and -kafka, path of index.json, as scripts/fetch-webhooks prints it")
	flag.IntVar(&f.deliveries, "deliveries", 100_000, "with -file, number of lines of the file; a line has 10 KB")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "pairedbench: %q is no flag, and flags behind it would not be read; -help lists them\n", flag.Arg(0))
		os.Exit(1)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := f.compare(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "pairedbench:", err)
		os.Exit(1)
	}
}

func (f flags) check() error {
	_, length := bench.SizedBodies(f.body)
	switch {
	case f.postgres && f.file, f.kafka != "" && (f.file || f.postgres):
		return errors.New("-postgres, -kafka and -file: choose one")
	case f.against != "" && (!f.file || f.base != ""):
		return errors.New("-against names a binary for -file, in the place of -base")
	case f.body != "" && !f.postgres && f.kafka == "":
		return errors.New("-body is for -postgres and -kafka")
	case f.base == "" && f.against == "":
		return fmt.Errorf("no base: name a commit with -base; `make bench NAME=%s BASE=…`", f.target())
	case f.webhooks == "" && (f.file || f.kafka != "" && f.body == ""):
		return errors.New("no webhooks: name their file with -webhooks or SEMEL_WEBHOOKS; scripts/fetch-webhooks fetches it and prints the path")
	case f.file && f.deliveries < 10:
		return fmt.Errorf("-deliveries %d: at least 10", f.deliveries)
	case length != nil:
		return fmt.Errorf("-body: %w", length)
	case f.rounds < 1:
		return fmt.Errorf("-rounds %d: at least 1", f.rounds)
	case (f.postgres || f.kafka != "") && f.dsn == "":
		return fmt.Errorf("no server: set SEMEL_POSTGRES or -dsn; `make bench NAME=%s BASE=…` starts one", f.target())
	}
	return nil
}

// target returns the value of NAME with which `make bench` runs this comparison.
func (f flags) target() string {
	switch {
	case f.file:
		return "file"
	case f.kafka != "":
		return "kafka-against"
	case f.postgres:
		return "postgres-against"
	}
	return "against"
}

func (f flags) compare(ctx context.Context) (err error) {
	if err := f.check(); err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "semel-paired-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	t, err := f.findTrees(ctx, folder)
	if err != nil {
		return err
	}
	if f.file {
		return f.compareFile(ctx, t, folder)
	}
	if f.postgres || f.kafka != "" {
		return f.compareSemelbench(ctx, t, folder)
	}
	for pkg := range strings.SplitSeq(f.packages, ",") {
		if err := f.compareGo(ctx, t, strings.TrimSpace(pkg), folder); err != nil {
			return err
		}
	}
	return nil
}

// trees contains the two source trees and the names of their commits.
type trees struct{ base, baseName, present, presentName string }

func (f flags) findTrees(ctx context.Context, folder string) (t trees, err error) {
	if t.present, err = history.Root(ctx); err != nil {
		return t, err
	}
	if t.presentName, err = history.Commit(ctx, ""); err != nil {
		return t, err
	}
	if f.against != "" {
		t.baseName = f.against
		_, err = os.Stat(f.against)
		return t, err
	}
	t.base = filepath.Join(folder, "tree")
	if err := os.Mkdir(t.base, 0o755); err != nil {
		return t, err
	}
	if err := history.Unpack(ctx, f.base, t.base); err != nil {
		return t, err
	}
	t.baseName, err = history.Commit(ctx, f.base)
	return t, err
}

func (f flags) compareGo(ctx context.Context, t trees, pkg, folder string) error {
	g := paired.GoBenchmarks{Package: pkg, Pattern: f.pattern, Time: f.time}
	base, present, err := g.Build(ctx, folder, t.base, t.present)
	if err != nil {
		return err
	}
	fmt.Printf("%s, %s a benchmark.\n", pkg, f.time)
	return f.write(ctx, t, paired.GoTable, base, present)
}

// write runs the comparison and prints the table. After an error, write prints the rounds that were complete before the
// error.
func (f flags) write(ctx context.Context, t trees, table paired.Table, base, present paired.Measure) error {
	c, err := paired.Compare(ctx, f.rounds, base, present, os.Stderr)
	if len(c.Rounds) > 0 {
		err = errors.Join(err, table.Write(os.Stdout, c, t.baseName, t.presentName))
		fmt.Println()
	}
	return err
}
