// Semelbench compares Semel on PostgreSQL with hand-written batches and with the textbook loop, and prints the table.
// With -kafka, the command measures the path from a broker to PostgreSQL. The command creates a database on the server,
// and drops this database at the end.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/semel-go/semel/itest/bench"
)

type flags struct {
	dsn, forms, only, commit, profile string
	rounds                            int
	target                            time.Duration
	quick, base, json, hot            bool
	kafka                             string
	messages                          int
	body, webhooks                    string
}

func main() {
	var f flags
	flag.StringVar(&f.dsn, "dsn", os.Getenv("SEMEL_POSTGRES"), "address of the server (postgres://…)")
	flag.StringVar(&f.forms, "forms", "", "forms to measure, separated by semicolons; all if empty")
	flag.StringVar(&f.only, "only", "", "measure only rows whose description contains this text")
	flag.StringVar(&f.commit, "commit", "unknown", "name of the measured commit, for the head of the table")
	flag.StringVar(&f.profile, "profile", "", "file for a profile of this process's CPU time")
	flag.IntVar(&f.rounds, "rounds", 11, "number of rounds")
	flag.DurationVar(&f.target, "target", 500*time.Millisecond, "target duration of a run")
	flag.BoolVar(&f.quick, "quick", false, "3 rounds of 150 ms; takes about five minutes")
	flag.BoolVar(&f.base, "base", false, "measure only the base row of each form")
	flag.BoolVar(&f.hot, "hot", false, "measure lanes by key: 1,000 keys, some of them hot, handlers of 5 ms, 16 workers, one partition")
	flag.BoolVar(&f.json, "json", false, "print every run as JSON")
	flag.StringVar(&f.kafka, "kafka", "", "measure the path from this broker (host:port) to PostgreSQL, compared with a loop without deduplication")
	flag.IntVar(&f.messages, "messages", 100_000, "with -kafka, messages in the topic; fewer if they would exceed 200 MB")
	flag.StringVar(&f.body, "body", "", "lengths of generated bodies, separated by commas, such as 200B,1KiB,10KiB; 29B if empty")
	flag.StringVar(&f.webhooks, "webhooks", "", "also measure with real webhooks; path of index.json, as scripts/fetch-webhooks prints it")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := measure(ctx, f)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "semelbench:", err)
		os.Exit(1)
	}
}

func measure(ctx context.Context, f flags) (err error) {
	o, err := f.options()
	if err != nil {
		return err
	}
	w, err := bench.NewWorld(ctx, f.dsn)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close(context.WithoutCancel(ctx))) }()
	if f.hot {
		row, err := w.MeasureHot(ctx, bench.Hot{Keys: 1000, Workers: 16, Messages: 2000, Weight: 1.1, Handler: 5 * time.Millisecond}, o.Rounds)
		return errors.Join(err, row.Write(os.Stdout))
	}
	began := time.Now()
	r := bench.Report{Rounds: o.Rounds, Target: o.Target}
	if r.Head, err = w.Describe(ctx, f.commit); err != nil {
		return err
	}
	r.Rows, err = runProfiled(f.profile, func() ([]bench.Row, error) { return f.rows(ctx, w, o) })
	r.Elapsed, r.Head.LoadAfter = time.Since(began), bench.Load()
	if f.json {
		return errors.Join(err, json.NewEncoder(os.Stdout).Encode(r))
	}
	if f.kafka != "" {
		return errors.Join(err, r.WriteKafka(os.Stdout))
	}
	return errors.Join(err, r.Write(os.Stdout)) // also prints the results before the error
}

func (f flags) rows(ctx context.Context, w *bench.World, o bench.Options) ([]bench.Row, error) {
	if f.kafka == "" {
		return w.Measure(ctx, o)
	}
	return w.MeasureKafka(ctx, bench.KafkaOptions{Brokers: strings.Split(f.kafka, ","), Rounds: o.Rounds, Messages: f.messages, Bodies: o.Bodies, Only: o.Only, Progress: kafkaProgress})
}

func (f flags) options() (bench.Options, error) {
	o := bench.Options{Rounds: f.rounds, Target: f.target, Forms: bench.Forms(), Progress: progress}
	if f.dsn == "" {
		return o, errors.New("no server: set SEMEL_POSTGRES or -dsn; `make bench NAME=postgres` starts one")
	}
	if f.quick {
		o.Rounds, o.Target = 3, 150*time.Millisecond
	}
	var err error
	if o.Bodies, err = f.selectedBodies(); err != nil {
		return o, err
	}
	o.Only = func(c bench.Conditions) bool {
		return strings.Contains(c.String(), f.only) && (!f.base || c.IsBase())
	}
	if f.forms == "" {
		return o, nil
	}
	o.Forms = nil
	for name := range strings.SplitSeq(f.forms, ";") {
		form := bench.Form(strings.TrimSpace(name))
		if !slices.Contains(bench.Forms(), form) {
			return o, fmt.Errorf("no form %q; there are %q", form, bench.Forms())
		}
		o.Forms = append(o.Forms, form)
	}
	return o, nil
}

// selectedBodies returns the kinds of message bodies that the flags select. Without flags for bodies, messages have
// no body.
func (f flags) selectedBodies() (all []bench.Body, err error) {
	if all, err = bench.SizedBodies(f.body); err != nil {
		return nil, fmt.Errorf("-body: %w", err)
	}
	if f.webhooks != "" {
		body, err := bench.WebhookBody(f.webhooks)
		if err != nil {
			return nil, fmt.Errorf("-webhooks: %w", err)
		}
		all = append(all, body)
	}
	if len(all) == 0 {
		all = []bench.Body{{}}
	}
	return all, nil
}

func kafkaProgress(done, of int, r bench.Row) {
	ratio := r.Ratio(bench.Semel, bench.Hand)
	fmt.Fprintf(os.Stderr, "%d of %d: %v: %.0f/s, %.2f of the loop without deduplication\n", done, of, r.Conditions, r.Rate(bench.Semel).Median, ratio.Median)
}

func progress(done, of int, r bench.Row) {
	ratio, loop := r.Ratio(bench.Semel, bench.Hand), r.Ratio(bench.Semel, bench.Textbook)
	fmt.Fprintf(os.Stderr, "%d of %d: %v: %.0f/s, %.2f of the batch by hand, %.1f of the loop\n",
		done, of, r.Conditions, r.Rate(bench.Semel).Median, ratio.Median, loop.Median)
}
