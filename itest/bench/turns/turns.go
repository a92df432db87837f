// Package turns runs the contestants of a measurement in turns and reports their rates.
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

// Turn is one contestant of a measurement.
type Turn struct {
	// Name is the contestant's row in the report.
	Name string
	// Rate does the work and returns the amount of work per second.
	Rate func(context.Context) (float64, error)
}

// Rates is the report of a measurement. It implements proof.Ledger and never has faults, because people judge
// the rates.
type Rates struct {
	proof.Fields
	by map[string][]float64
}

// Take runs every contestant once in each round, in a random order. The report describes the machine and has
// the quartiles of each contestant's rates. format is the format of a rate.
func Take(ctx context.Context, say func(format string, args ...any), rounds int, format string, all ...Turn) (*Rates, error) {
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
			rate, err := all[i].Rate(ctx)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", all[i].Name, err)
			}
			r.by[all[i].Name] = append(r.by[all[i].Name], rate)
			say("round %d of %d, %s: "+format+" a second", n+1, rounds, all[i].Name, rate)
		}
	}
	for _, t := range all {
		r.Add(t.Name, bench.QuartilesOf(r.by[t.Name]).Text(format))
	}
	return r, nil
}

// AddRatio divides one contestant's rate by another's in each round, and adds the quartiles to the report.
func (r *Rates) AddRatio(name, of, to, format string) {
	var all []float64
	for i := range r.by[of] {
		all = append(all, r.by[of][i]/r.by[to][i])
	}
	r.Add(name, bench.QuartilesOf(all).Text(format))
}

// AddServer adds the version of the PostgreSQL server to the report.
func (r *Rates) AddServer(ctx context.Context, dsn string) error {
	c, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close(ctx) }()
	r.Add("PostgreSQL on the same host", c.PgConn().ParameterStatus("server_version"))
	return nil
}

// Wrong implements proof.Ledger.
func (*Rates) Wrong() error { return nil }

// Fault implements proof.Ledger.
func (*Rates) Fault() error { return nil }
