// Package turns runs the implementations that a measurement compares in turns, and reports their rates.
package turns

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/itest/bench"
	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/worlds/history"
)

// Turn is one of the implementations that a measurement compares.
type Turn struct {
	// Name is the name of the implementation's row in the report.
	Name string
	// Rate does the work and returns the amount of work per second.
	Rate func(context.Context) float64
}

// Rates is the report of a measurement. Rates implements proof.Ledger and never returns errors, because people judge
// the rates.
type Rates struct {
	proof.Fields
	by map[string][]float64
}

// Take runs every implementation once in each round, in a random order. The report describes the machine and has the
// quartiles of each implementation's rates. The parameter format is the format of a rate.
func Take(ctx context.Context, say func(format string, args ...any), rounds int, format string, all ...Turn) *Rates {
	r := &Rates{by: map[string][]float64{}}
	commit, err := history.Commit(ctx, "")
	if err != nil {
		commit = "unknown"
	}
	r.Add("commit", commit)
	r.Add("machine", fmt.Sprintf("%d cores, %s, load %s", runtime.NumCPU(), runtime.Version(), bench.Load()))
	r.Add("rounds", rounds)
	random := rand.New(rand.NewPCG(1, 2))
	for n := range rounds {
		for _, i := range random.Perm(len(all)) {
			rate := 0.0
			proof.During(all[i].Name, func() { rate = all[i].Rate(ctx) })
			r.by[all[i].Name] = append(r.by[all[i].Name], rate)
			say("round %d of %d, %s: "+format+" a second", n+1, rounds, all[i].Name, rate)
		}
	}
	for _, t := range all {
		r.Add(t.Name, bench.QuartilesOf(r.by[t.Name]).Text(format))
	}
	return r
}

// AddRatio divides the rate of one implementation by the rate of another in each round, and adds the quartiles to the
// report.
func (r *Rates) AddRatio(name, of, to, format string) {
	var all []float64
	for i := range r.by[of] {
		all = append(all, r.by[of][i]/r.by[to][i])
	}
	r.Add(name, bench.QuartilesOf(all).Text(format))
}

// AddServer adds the version of the PostgreSQL server to the report.
func (r *Rates) AddServer(ctx context.Context, dsn string) {
	c := proof.Must(pgx.Connect(ctx, dsn))
	defer func() { _ = c.Close(ctx) }()
	r.Add("PostgreSQL on the same host", c.PgConn().ParameterStatus("server_version"))
}

// Wrong implements proof.Ledger.
func (*Rates) Wrong() error { return nil }

// Fault implements proof.Ledger.
func (*Rates) Fault() error { return nil }
