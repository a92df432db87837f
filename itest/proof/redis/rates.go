// Package redis measures what leased keys in Redis cost beside the bare commands.
package redis

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/itest/bench"
	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/redisstore"
	"github.com/semel-go/semel/store"
)

// Rates measures claims and completions of leased keys beside a bare SET NX and SET through
// the same client on the same server, in rounds that take turns.
type Rates struct {
	Rounds  int `flag:"how often each takes its turn"`
	Workers int `flag:"how many messages are under way"`
}

// RatesLedger are the quartiles of all rounds.
type RatesLedger struct {
	Workers int `json:"workers"`
	// Bare and Keys are thousands of messages a second, of two calls each; Ratio is the one
	// by the other in the same round.
	Bare  string `json:"bare_k_per_second"`
	Keys  string `json:"keys_k_per_second"`
	Ratio string `json:"keys_to_bare"`
	// Set and Script are the server's microseconds a call.
	Set    float64 `json:"server_us_a_set"`
	Script float64 `json:"server_us_a_script"`
}

// Wrong implements proof.Ledger: figures are read by people.
func (RatesLedger) Wrong() error { return nil }

// Fault implements proof.Ledger.
func (RatesLedger) Fault() error { return nil }

// Run measures.
func (p Rates) Run(ctx context.Context, s proof.Stage) (RatesLedger, error) {
	server := services.StartRedis(s.T)
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{server.Address()}, DisableCache: true})
	if err != nil {
		return RatesLedger{}, err
	}
	defer client.Close()
	store, err := redisstore.New(ctx, client, redisstore.Options{})
	if err != nil {
		return RatesLedger{}, err
	}
	var bare, keys, ratio []float64
	for round := range p.Rounds {
		for i, do := range []func(context.Context, int64) error{bareCalls(client, round), keyCalls(store, round)} {
			rate, err := p.measure(ctx, do)
			if err != nil {
				return RatesLedger{}, err
			}
			to := []*[]float64{&bare, &keys}[i]
			*to = append(*to, rate/1000)
		}
		ratio = append(ratio, keys[round]/bare[round])
		s.Say("round %d of %d: %.0f thousand messages a second bare, %.0f with keys", round+1, p.Rounds, bare[round], keys[round])
		if err := client.Do(ctx, client.B().Flushall().Sync().Build()).Error(); err != nil {
			return RatesLedger{}, err
		}
	}
	l := RatesLedger{Workers: p.Workers, Bare: bench.QuartilesOf(bare).Text("%.0f"), Keys: bench.QuartilesOf(keys).Text("%.0f"), Ratio: bench.QuartilesOf(ratio).Text("%.3f")}
	l.Set, l.Script, err = serverTimes(ctx, client)
	return l, err
}

// turn is how long one measurement lasts.
const turn = 2 * time.Second

// measure is how many messages a second the workers do.
func (p Rates) measure(ctx context.Context, do func(context.Context, int64) error) (rate float64, err error) {
	var all sync.WaitGroup
	var number atomic.Int64
	var failed atomic.Pointer[error]
	began := time.Now()
	for range p.Workers {
		all.Go(func() {
			for time.Since(began) < turn && failed.Load() == nil {
				if err := do(ctx, number.Add(1)); err != nil {
					failed.Store(&err)
				}
			}
		})
	}
	all.Wait()
	if e := failed.Load(); e != nil {
		return 0, *e
	}
	return float64(number.Load()) / time.Since(began).Seconds(), nil
}

// id is an id of 200 bytes.
func id(round int, n int64) string {
	return fmt.Sprintf("%0180d-%04d-%014d", 0, round, n)
}

const keep = time.Hour

func bareCalls(client rueidis.Client, round int) func(context.Context, int64) error {
	return func(ctx context.Context, n int64) error {
		name := "bare:" + id(round, n)
		if err := client.Do(ctx, client.B().Set().Key(name).Value("processing").Nx().Px(keep).Build()).Error(); err != nil {
			return err
		}
		return client.Do(ctx, client.B().Set().Key(name).Value("done").Px(keep).Build()).Error()
	}
}

func keyCalls(st *redisstore.Store, round int) func(context.Context, int64) error {
	return func(ctx context.Context, n int64) error {
		c := store.KeyClaim{Key: semel.Key{Consumer: "billing", Source: "shop", ID: id(round, n)}, Token: store.NewToken(), Lease: time.Minute, Keep: keep}
		a, err := st.ClaimKey(ctx, c)
		if err == nil && a.State != store.KeyClaimed {
			err = fmt.Errorf("a new key is %v", a.State)
		}
		if err != nil {
			return err
		}
		return st.EndKey(ctx, c.Key, c.Token, store.KeyEnding{Event: store.KeyComplete, Keep: keep})
	}
}

// serverTimes are what the server says that a SET and a script take.
func serverTimes(ctx context.Context, client rueidis.Client) (set, script float64, err error) {
	text, err := client.Do(ctx, client.B().Info().Section("commandstats").Build()).ToString()
	for line := range strings.Lines(text) {
		for name, to := range map[string]*float64{"cmdstat_set:": &set, "cmdstat_evalsha:": &script} {
			if figures, found := strings.CutPrefix(line, name); found {
				_, after, _ := strings.Cut(figures, "usec_per_call=")
				number, _, _ := strings.Cut(after, ",")
				*to, err = strconv.ParseFloat(number, 64)
			}
		}
	}
	return set, script, err
}
