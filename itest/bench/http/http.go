//go:build unix

// Package http measures the cost of a handler that is an HTTP endpoint and whose answers contain effects. Four
// implementations run on PostgreSQL in turns:
//
//   - the server of examples/python-effects under a load generator that only calls the server,
//   - the same server under `semel run`, with the same number of requests in flight. This implementation has twice as
//     many workers, because a worker whose answer is being committed has no request in flight,
//   - an endpoint in Go that answers at once, under `semel run`,
//   - the same statements as SQL in a policy, with one transaction for each message.
//
// A run of Semel is measured from its first to its last written row, so the start of the process does not
// count.
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
	Rounds   int  `flag:"number of rounds"`
	Messages int  `flag:"messages in a run"`
	InFlight int  `flag:"requests in flight, and workers of the SQL handler"`
	Lease    bool `flag:"claim each message for its call (strategy lease); without it the endpoint is declared pure"`
}

// Room registers this measurement with the command itest/cmd/proof.
func Room() proof.Room {
	return &proof.Form[Bench, *turns.Rates]{Title: "http", Within: time.Hour, Sizes: Bench{Rounds: 11, Messages: 12000, InFlight: 32}, Prove: Bench.Run}
}

const (
	bare    = "Python's server, under a bare load generator"
	python  = "Python's server, through Semel"
	instant = "an instant endpoint in Go, through Semel"
	asSQL   = "the same statements as SQL, a transaction a message"
)

// Run runs all implementations in turns and returns their rates.
func (p Bench) Run(ctx context.Context, s proof.Stage) *turns.Rates {
	w := &world{Bench: p, Stage: s, server: services.StartPostgres(s.T, services.Options{}), binary: proof.Must(processes.Build(ctx, s.Folder))}
	w.writeFiles()
	pythons, stopPython := startPython(ctx)
	defer stopPython()
	gos, stopGo := proof.Serve(http.HandlerFunc(answer))
	defer stopGo()
	through := func(policy string) func(context.Context) float64 {
		return func(ctx context.Context) float64 { return w.runSemel(ctx, policy) }
	}
	r := turns.Take(ctx, s.Say, p.Rounds, "%.0f",
		turns.Turn{Name: bare, Rate: func(ctx context.Context) float64 { return w.load(ctx, pythons) }},
		turns.Turn{Name: python, Rate: through(w.endpointPolicy(pythons))},
		turns.Turn{Name: instant, Rate: through(w.endpointPolicy("http://" + gos + "/transfer"))},
		turns.Turn{Name: asSQL, Rate: through(w.asStatements())})
	r.AddRatio(python+", to bare", python, bare, "%.2f")
	r.AddRatio(instant+", to SQL", instant, asSQL, "%.2f")
	r.AddServer(ctx, w.server.DSN())
	return r
}
