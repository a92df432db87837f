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

// Bench measures claims and completions of leased keys beside a bare SET NX and SET through
// the same client on the same server.
type Bench struct {
	Rounds  int `flag:"how often each takes its turn"`
	Workers int `flag:"how many messages are under way"`
}

// Room offers the measurement.
func Room() proof.Room {
	return &proof.Form[Bench, *bench.Rates]{Title: "redis", Within: time.Hour, Sizes: Bench{Rounds: 11, Workers: 64}, Prove: Bench.Run}
}

// The contestants. A message is two calls.
const (
	bare = "messages a second, bare"
	keys = "messages a second, under keys"
)

// Run measures.
func (p Bench) Run(ctx context.Context, s proof.Stage) (*bench.Rates, error) {
	server := services.StartRedis(s.T)
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{server.Address()}, DisableCache: true})
	if err != nil {
		return nil, err
	}
	defer client.Close()
	store, err := redisstore.New(ctx, client, redisstore.Options{})
	if err != nil {
		return nil, err
	}
	turns := 0
	turn := func(calls func(turn int) func(context.Context, int64) error) func(context.Context) (float64, error) {
		return func(ctx context.Context) (float64, error) {
			turns++
			if err := client.Do(ctx, client.B().Flushall().Sync().Build()).Error(); err != nil {
				return 0, err
			}
			return p.measure(ctx, calls(turns))
		}
	}
	r, err := bench.TakeTurns(ctx, s.Say, p.Rounds, "%.0f",
		bench.Turn{Name: bare, Rate: turn(func(n int) func(context.Context, int64) error { return bareCalls(client, n) })},
		bench.Turn{Name: keys, Rate: turn(func(n int) func(context.Context, int64) error { return keyCalls(store, n) })})
	if err != nil {
		return r, err
	}
	r.AddRatio("keys to bare", keys, bare, "%.3f")
	set, script, err := serverTimes(ctx, client)
	r.Add("server us a SET", set)
	r.Add("server us a script", script)
	return r, err
}

// turn is how long one measurement lasts.
const turn = 2 * time.Second

// measure is how many messages a second the workers do.
func (p Bench) measure(ctx context.Context, do func(context.Context, int64) error) (rate float64, err error) {
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
