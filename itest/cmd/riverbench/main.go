package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/semel-go/semel/itest/bench"
)

// sizes is what a run is made of.
type sizes struct{ rounds, jobs, workers, rivers, insert int }

func main() {
	dsn := flag.String("dsn", os.Getenv("SEMEL_POSTGRES"), "address of the server (postgres://…)")
	commit := flag.String("commit", "unknown", "what is measured, for the head of the table")
	var s sizes
	flag.IntVar(&s.rounds, "rounds", 11, "how often the contestants take turns")
	flag.IntVar(&s.jobs, "jobs", 5000, "jobs of a turn")
	flag.IntVar(&s.workers, "workers", 16, "Semel's workers where a job has a transaction of its own; on two cores fewer and more were slower")
	flag.IntVar(&s.rivers, "river-workers", 24, "River's workers; on two cores fewer and more were slower")
	flag.IntVar(&s.insert, "insert", 500, "jobs enqueued in a transaction, on each side")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *dsn, *commit, s)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "riverbench:", err)
		os.Exit(1)
	}
}

// database is the name of the database that a run makes and drops.
const database = "semel_beside_river"

func run(ctx context.Context, dsn, commit string, s sizes) (err error) {
	if dsn == "" {
		return errors.New("no server: set SEMEL_POSTGRES or -dsn; `make bench NAME=river` starts one")
	}
	admin, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, admin.Close(context.WithoutCancel(ctx))) }()
	if _, err := admin.Exec(ctx, "drop database if exists "+database+" with (force)"); err != nil {
		return err
	}
	if _, err := admin.Exec(ctx, "create database "+database); err != nil {
		return err
	}
	defer func() {
		_, dropped := admin.Exec(context.WithoutCancel(ctx), "drop database "+database+" with (force)")
		err = errors.Join(err, dropped)
	}()
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return err
	}
	config.ConnConfig.Database, config.MaxConns = database, int32(max(s.workers, s.rivers)+12)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return err
	}
	defer pool.Close()
	began := time.Now()
	rates, err := measure(ctx, pool, s)
	if err != nil {
		return err
	}
	var version string
	if err := pool.QueryRow(ctx, "show server_version").Scan(&version); err != nil {
		return err
	}
	print(rates, s, fmt.Sprintf("PostgreSQL %s on the same host, commit %s, %s", version, commit, time.Since(began).Round(time.Second)))
	return nil
}

// contestants in the order in which they take turns.
const (
	riverTx      = "River, JobCompleteTx, a transaction a job"
	semelTx      = "Semel, a transaction a job"
	semelQueue   = "Semel, a transaction a job, its statements queued"
	semelBatches = "Semel, in batches of 500, their statements queued"
	riverBatches = "River, completed in batches, apart from the effect"
)

func measure(ctx context.Context, pool *pgxpool.Pool, s sizes) (map[string][]float64, error) {
	w, err := newWorld(ctx, pool, s)
	if err != nil {
		return nil, err
	}
	rates := map[string][]float64{}
	for round := range s.rounds {
		for _, c := range []struct {
			name string
			turn func(context.Context) error
		}{
			{riverTx, func(ctx context.Context) error { return w.river(ctx, true) }},
			{semelTx, func(ctx context.Context) error { return w.semel(ctx, false, 1, s.workers) }},
			{semelQueue, func(ctx context.Context) error { return w.semel(ctx, true, 1, s.workers) }},
			{semelBatches, func(ctx context.Context) error { return w.semel(ctx, true, 500, 2) }},
			{riverBatches, func(ctx context.Context) error { return w.river(ctx, false) }},
		} {
			if err := w.clear(ctx); err != nil {
				return nil, err
			}
			began := time.Now()
			if err := c.turn(ctx); err != nil {
				return nil, fmt.Errorf("%s: %w", c.name, err)
			}
			took := time.Since(began)
			if err := w.complete(ctx); err != nil {
				return nil, fmt.Errorf("%s: %w", c.name, err)
			}
			rates[c.name] = append(rates[c.name], float64(s.jobs)/took.Seconds())
			fmt.Fprintf(os.Stderr, "round %d of %d, %s: %.0f a second\n", round+1, s.rounds, c.name, float64(s.jobs)/took.Seconds())
		}
	}
	return rates, nil
}

func print(rates map[string][]float64, s sizes, conditions string) {
	fmt.Printf("%s; %d jobs a turn, %d workers (River %d), enqueued %d at a time, %d rounds; lower quartile – **median** – upper quartile\n\n", conditions, s.jobs, s.workers, s.rivers, s.insert, s.rounds)
	fmt.Println("| | jobs a second | to River's with a transaction a job |\n| --- | --- | --- |")
	for _, name := range []string{riverTx, semelTx, semelQueue, semelBatches, riverBatches} {
		var ratios []float64
		for i, r := range rates[name] {
			ratios = append(ratios, r/rates[riverTx][i])
		}
		fmt.Printf("| %s | %s | %s |\n", name, bench.QuartilesOf(rates[name]).Text("%.0f"), bench.QuartilesOf(ratios).Text("%.2f"))
	}
}
