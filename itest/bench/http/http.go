//go:build unix

// Package http measures what a handler behind HTTP costs whose answers are effects. Four
// contestants take turns on PostgreSQL:
//
//   - the server of examples/python-effects under a load generator that does nothing else,
//   - the same server under `semel run`, with as many requests in flight and twice as many
//     workers, since a worker whose answer is being committed has no request in flight,
//   - an endpoint in Go that answers at once, under `semel run`,
//   - the same statements as SQL in a policy, one transaction for each message.
//
// The time of a turn through Semel is that between its first and its last written row, without
// the start of the process.
package http

import (
	"context"
	"net/http"
	"time"

	"github.com/semel-go/semel/itest/bench/turns"
	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/worlds/processes"
)

// Bench is the configuration of a run.
type Bench struct {
	Rounds   int  `flag:"how often the contestants take turns"`
	Messages int  `flag:"messages of a turn"`
	InFlight int  `flag:"requests in flight, and workers of the SQL handler"`
	Lease    bool `flag:"claim each message for its call, as for an endpoint with effects of its own; otherwise it only answers (pure)"`
}

// Room offers the measurement.
func Room() proof.Room {
	return &proof.Form[Bench, *turns.Rates]{Title: "http", Within: time.Hour, Sizes: Bench{Rounds: 11, Messages: 12000, InFlight: 32}, Prove: Bench.Run}
}

// The contestants.
const (
	bare    = "Python's server, under a bare load generator"
	python  = "Python's server, through Semel"
	instant = "an instant endpoint in Go, through Semel"
	asSQL   = "the same statements as SQL, a transaction a message"
)

// Run lets the contestants take turns.
func (p Bench) Run(ctx context.Context, s proof.Stage) *turns.Rates {
	w := &world{Bench: p, Stage: s, server: services.StartPostgres(s.T, services.Options{}), binary: proof.Must(processes.Build(ctx, s.Folder))}
	w.files()
	pythons, stopPython := startPython(ctx)
	defer stopPython()
	gos, stopGo := proof.Serve(http.HandlerFunc(answer))
	defer stopGo()
	through := func(policy string) func(context.Context) float64 {
		return func(ctx context.Context) float64 { return w.through(ctx, policy) }
	}
	r := turns.Take(ctx, s.Say, p.Rounds, "%.0f",
		turns.Turn{Name: bare, Rate: func(ctx context.Context) float64 { return w.load(ctx, pythons) }},
		turns.Turn{Name: python, Rate: through(w.behind(pythons))},
		turns.Turn{Name: instant, Rate: through(w.behind("http://" + gos + "/transfer"))},
		turns.Turn{Name: asSQL, Rate: through(w.asStatements())})
	r.AddRatio(python+", to bare", python, bare, "%.2f")
	r.AddRatio(instant+", to SQL", instant, asSQL, "%.2f")
	r.AddServer(ctx, w.server.DSN())
	return r
}
