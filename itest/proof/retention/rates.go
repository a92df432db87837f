package retention

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/internal/timing"
	"github.com/semel-go/semel/itest/bench"
	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/pgxstore"
	"github.com/semel-go/semel/store"
)

// Rates measures what a retention costs while no marker is due, and what many markers cost. In each round, the results
// are compared with an empty table of a consumer without a retention.
type Rates struct {
	// Markers is the number of markers that stay. Rounds is the number of rounds.
	Markers, Rounds int
	Seed            uint64
}

// contestant is one of the variants whose speed is compared. Each variant has a schema with a store.
type contestant struct {
	name  string
	store *pgxstore.Store
	scope int64
	v4    bool
	// If the field aged is true, the messages have a timestamp, and the store compares the timestamp with the low-water
	// mark.
	aged bool
	// If the field walked is true, a reaper walks through the table during the measurement, without a pause between two
	// passes.
	walked bool
	rates  []float64
}

// RatesLedger has the quartiles of each variant's rate, divided by the plain table's rate in the same round.
type RatesLedger struct {
	Markers int    `json:"markers"`
	Kept    string `json:"with_a_retention"`
	ManyV7  string `json:"many_uuid_v7"`
	Walked  string `json:"many_uuid_v7_while_the_reaper_walks"`
	ManyV4  string `json:"many_uuid_v4"`
	EmptyV4 string `json:"empty_uuid_v4"`
}

// Wrong implements proof.Ledger. Wrong always returns nil, because people judge the measured rates.
func (RatesLedger) Wrong() error { return nil }

// Fault implements proof.Ledger.
func (RatesLedger) Fault() error { return nil }

// Run measures the rates on a private server.
func (p Rates) Run(ctx context.Context, s proof.Stage) RatesLedger {
	server := services.StartPostgres(s.T, services.Options{Settings: []string{"max_connections = 100", "shared_buffers = 1GB", "max_wal_size = 8GB", "autovacuum = off"}})
	pool := proof.Must(pgxpool.New(ctx, server.DSN()))
	defer pool.Close()
	plain, all := p.newContestants(ctx, s, pool)
	everyone := append([]*contestant{plain}, all...)
	for round := range p.Rounds {
		p.round(ctx, pool, everyone, rand.New(rand.NewPCG(p.Seed, uint64(round))))
		s.Say("round %d of %d: %.0f messages a second without a retention, %.3f of it with", round+1, p.Rounds, plain.rates[round], all[0].rates[round]/plain.rates[round])
	}
	l := RatesLedger{Markers: p.Markers}
	for i, to := range []*string{&l.Kept, &l.ManyV7, &l.Walked, &l.ManyV4, &l.EmptyV4} {
		*to = formatRatios(all[i].rates, plain.rates)
	}
	return l
}

// round measures every variant several times, in a random order. One measurement for each variant would depend on luck,
// because the speed of the machine changes within seconds, and because the flushes of one variant slow down the next
// variant.
func (p Rates) round(ctx context.Context, pool *pgxpool.Pool, everyone []*contestant, random *rand.Rand) {
	proof.Must(pool.Exec(ctx, "checkpoint"))
	applied, took := make([]int, len(everyone)), make([]time.Duration, len(everyone))
	for range turns {
		for _, i := range random.Perm(len(everyone)) {
			done, in, err := everyone[i].measure(ctx, random)
			proof.Check(err)
			applied[i] += done
			took[i] += in
		}
	}
	for i, c := range everyone {
		c.rates = append(c.rates, float64(applied[i])/took[i].Seconds())
	}
}

// formatRatios divides the rates of one variant by the rates of another variant in the same rounds, and returns
// the quartiles of these fractions.
func formatRatios(rates, of []float64) string {
	each := make([]float64, len(rates))
	for i := range rates {
		each[i] = rates[i] / of[i]
	}
	return bench.QuartilesOf(each).Text("%.3f")
}

// newContestants returns two results: the variant whose consumer has no retention, and the list of all
// variants, including this one.
func (p Rates) newContestants(ctx context.Context, s proof.Stage, pool *pgxpool.Pool) (plain *contestant, all []*contestant) {
	for i, c := range []struct {
		name    string
		kept    bool
		markers string
		v4      bool
	}{
		{name: "plain"},
		{name: "kept", kept: true},
		{name: "many_v7", kept: true, markers: "decode('01' || lpad(to_hex((extract(epoch from now()) * 1000)::bigint - 3600000 * 24 + n / 10), 12, '0') || '7' || substr(md5(n::text), 1, 19), 'hex')"},
		{name: "many_v4", markers: "decode('01' || md5(n::text), 'hex')", v4: true},
		{name: "empty_v4", v4: true},
	} {
		one := &contestant{name: c.name, v4: c.v4, aged: c.kept}
		one.store = proof.Must(pgxstore.New(pool, pgxstore.Options{Schema: c.name}))
		proof.Must(one.store.Migrate(ctx))
		one.scope = proof.Must(one.store.Scope(ctx, "billing", "shop", 0))
		statements := []string{fmt.Sprintf("create table %s.effects (id text not null)", c.name)}
		if c.markers != "" {
			s.Say("%s: %d markers are written", c.name, p.Markers)
			statements = append(statements, fmt.Sprintf(`insert into %s.semel_markers (scope, id, outcome, version, at)
select %d, %s, 1, 0, now() - interval '1 day' + n * interval '1 millisecond' from generate_series(1, %d) n`, c.name, one.scope, c.markers, p.Markers),
				fmt.Sprintf("vacuum analyze %s.semel_markers", c.name))
		}
		for _, statement := range statements {
			proof.Must(pool.Exec(ctx, statement))
		}
		if c.kept { // no marker is due for removal
			proof.Check(one.store.Retain(ctx, store.Retention{Consumer: "billing", Keep: keep}))
			proof.Must(one.store.Advance(ctx, "billing"))
		}
		if i == 0 {
			plain = one
			continue
		}
		all = append(all, one)
		if c.kept && c.markers != "" {
			walked := *one
			walked.walked = true
			all = append(all, &walked)
		}
	}
	return plain, all
}

// The constant turn is the duration of one measurement of a variant. The constant turns is the number of measurements
// of each variant in a round.
const (
	turn  = 500 * time.Millisecond
	turns = 8
)

// walk makes the same calls as a reaper (which removes old markers) during a pass.
func (c *contestant) walk(ctx context.Context, until time.Time) error {
	var at store.ReapMark
	for time.Now().Before(until) {
		began := time.Now()
		done, err := c.store.Reap(ctx, store.Reaping{Consumer: "billing", Most: 10_000, After: at})
		if err != nil {
			return err
		}
		if at = done.Next; at.Done {
			at = store.ReapMark{}
		}
		if !timing.Wait(ctx, 3*time.Since(began)) {
			return ctx.Err()
		}
	}
	return nil
}

// measure makes four workers apply new messages in batches of 500 for one turn. The results are the number of messages
// and the duration.
func (c *contestant) measure(ctx context.Context, random *rand.Rand) (applied int, took time.Duration, err error) {
	var all sync.WaitGroup
	var mutex sync.Mutex
	until, began := time.Now().Add(turn), time.Now()
	if c.walked {
		all.Go(func() {
			if failed := c.walk(ctx, until); failed != nil {
				mutex.Lock()
				defer mutex.Unlock()
				err = failed
			}
		})
	}
	for n := range 4 {
		own := rand.New(rand.NewPCG(random.Uint64(), uint64(n)))
		all.Go(func() {
			for time.Now().Before(until) {
				done, failed := c.apply(ctx, own)
				mutex.Lock()
				applied += done
				if failed != nil {
					err = failed
				}
				mutex.Unlock()
				if failed != nil {
					return
				}
			}
		})
	}
	all.Wait()
	return applied, time.Since(began), err
}

func (c *contestant) apply(ctx context.Context, random *rand.Rand) (int, error) {
	marks := make([]store.Mark, 500)
	now := time.Now()
	for i := range marks {
		id := newID(now, random)
		if c.v4 {
			id = fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", random.Uint32(), random.IntN(1<<16), random.IntN(1<<12), random.IntN(1<<12), random.Int64N(1<<48))
		}
		marks[i] = store.Mark{Scope: c.scope, ID: []byte(id), As: store.Applied}
		if c.aged {
			marks[i].Age = now
		}
	}
	b, verdicts, err := c.store.Queued().Begin(ctx, store.TxOptions{}, marks)
	if err != nil {
		return 0, err
	}
	for i := range verdicts {
		b.Tx(i).Exec("insert into "+c.name+".effects values ($1)", string(marks[i].ID))
	}
	if r := b.Commit(ctx, store.Ending{}); r.Outcome != store.Committed {
		return 0, fmt.Errorf("a batch: %v, %w", r.Outcome, r.Err)
	}
	return len(marks), nil
}
