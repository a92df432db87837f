//go:build unix

// Package alerts is a fault test: it checks that the shipped alert rules detect their faults. A Prometheus server
// scrapes two processes of `semel run`. The test produces one kind of fault after the other. Each alert must be
// pending, fire, and be resolved after the repair. In a healthy run no rule may fire, neither as shipped nor with
// shortened durations. The rules are those of deploy/alerts.yaml with shorter durations, so that a fault need not last
// an hour. itest/binary/alerts tests the original durations with recorded metrics.
package alerts

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/services/pgproxy"
	"github.com/semel-go/semel/itest/worlds/processes"
)

// Proof is the configuration of one run of the fault test.
type Proof struct {
	Scale   int           `flag:"by which factor the rules' durations are shortened; at most 60, because the sampler of stores always takes 15 s"`
	Healthy time.Duration `flag:"duration of the healthy run; 5m is the range of the shipped rules"`
	Binary  string        `flag:"path of a semel binary; built if empty"`
	// Plant is the name of a fault that is added to the test on purpose, or "": see Room.Plants.
	Plant string
}

const (
	plantPoison   = "poison"
	plantUnbroken = "unbroken"
)

// run is the state of a running Proof.
type run struct {
	Proof
	*proof.Fleet
	proxy         *pgproxy.Proxy
	redis         *services.Redis
	prometheus    *services.Prometheus
	pool          *pgxpool.Pool
	endpoint      string       // the address of the HTTP endpoint that consumers call
	slow          atomic.Int64 // the delay of the endpoint's slow answers, in nanoseconds
	endEndpoint   func()
	hooks         string // address at which the process receives webhooks
	lock          pgx.Tx // the transaction that locks the table "gate", or nil
	first, second *member
	replay        *processes.Process
	sent          int
	ledger        *Ledger
}

// member is one process of `semel run`.
type member struct {
	*proof.Member
	address string
}

// Run runs the fault test on servers of its own and returns the ledger. The methods Wrong and Fault of the ledger say
// whether the run succeeded.
func (p Proof) Run(ctx context.Context, s proof.Stage) Ledger {
	l := Ledger{Scale: p.Scale}
	r := &run{Proof: p, Fleet: &proof.Fleet{Stage: s, Binary: p.Binary}, ledger: &l}
	defer r.close()
	r.prepare(ctx)
	began := time.Now()
	r.prove(ctx)
	l.Seconds = proof.Since(began)
	return l
}

func (r *run) close() {
	r.Close()
	if r.replay != nil {
		_ = r.replay.Kill()
	}
	if r.lock != nil {
		_ = r.lock.Rollback(context.Background())
	}
	if r.pool != nil {
		r.pool.Close()
	}
	if r.endEndpoint != nil {
		r.endEndpoint()
	}
}

// prepare starts servers and creates topics and policies.
func (r *run) prepare(ctx context.Context) {
	r.OnKafka(services.KafkaOptions{Settings: []string{"offsets.topic.num.partitions=4", "group.initial.rebalance.delay.ms=0"}})
	r.OnPostgres(services.Options{})
	r.redis = services.StartRedis(r.T, "appendonly yes", "appendfsync always")
	r.proxy = pgproxy.Start(r.T, r.Server.DSN())
	r.pool = proof.Must(pgxpool.New(ctx, r.Server.DSN()))
	r.makeTopics(ctx)
	r.endpoint, r.endEndpoint = proof.Serve(r.endpointHandler())
	if r.Fleet.Binary == "" {
		r.Fleet.Binary = proof.Must(processes.Build(ctx, r.Folder))
	}
	for name, m := range map[string]**member{"first": &r.first, "second": &r.second} {
		address := proof.Must(proof.FreeAddress())
		*m = &member{Member: r.Add(), address: address}
		(*m).Policy, (*m).Log, (*m).Summary = name+".yaml", name+".log", name+".json"
		(*m).Env = []string{"DATABASE=" + r.Server.DSN(), "PROXY=" + r.proxy.DSN()}
	}
	r.write()
}

// makeTopics creates the topics. The method retries for up to three minutes, because a broker that has just started may
// answer slowly.
func (r *run) makeTopics(ctx context.Context) {
	most, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	week := "604800000" // the retention of markers must be longer than the retention of the topic
	proof.Until(most, time.Second, func() bool {
		made, err := r.Kafka.Admin.CreateTopics(most, partitions, -1, map[string]*string{"retention.ms": &week}, topicsOfAll...)
		for _, t := range made {
			if t.Err != nil && !errors.Is(t.Err, kerr.TopicAlreadyExists) {
				err = errors.Join(err, t.Err)
			}
		}
		return err == nil
	})
}

// prove runs all processes, first for a time without faults, and then through the rounds of faults.
func (r *run) prove(ctx context.Context) {
	rules, names, err := shippedRules(ctx)
	proof.Check(err)
	for _, m := range []*member{r.first, r.second} {
		r.start(ctx, m)
	}
	r.prometheus = services.StartPrometheus(r.T, configuration(r.first.address, r.second.address), map[string]string{"shipped.yaml": rules, "scaled.yaml": scaleDurations(rules, r.Scale)})
	began := time.Now()
	if r.runHealthy(ctx); r.Plant == plantPoison {
		return // by now the fault of Plant is detected or missed
	}
	for _, name := range names {
		r.ledger.Alerts = append(r.ledger.Alerts, Alert{Name: name})
	}
	for i, round := range r.faultRounds() {
		r.round(ctx, i+1, round)
	}
	r.ask(ctx, began)
}

func (r *run) start(ctx context.Context, m *member) {
	m.Start()
	m.Await(ctx, 3*time.Minute, func() bool { return proof.Ready(m.address) })
}

// The pause between two calls of trickle; see the method publishUntil.
const pause = 500 * time.Millisecond

// runHealthy runs without a fault for a while.
func (r *run) runHealthy(ctx context.Context) {
	r.Say("healthy for %s", r.Healthy)
	r.publishMany(repeated, 1000) // at one message per second, a replay of 1,000 messages lasts a whole round
	if r.Plant == plantPoison {
		r.send(billing, r.name(), made, `{"amount": "much"}`)
	}
	began := time.Now()
	proof.Until(ctx, pause, func() bool {
		r.trickle()
		return time.Since(began) >= r.Healthy
	})
	figures := proof.Must(r.prometheus.Range(`max_over_time(semel_effects_total[1m])`, time.Now(), time.Now(), time.Second))
	for _, s := range figures {
		r.ledger.Effects += int(s.Points[len(s.Points)-1].Value)
	}
	for _, s := range proof.Must(r.prometheus.Range(`max by (alertname) (ALERTS{alertstate="firing"})`, began, time.Now(), time.Second)) {
		r.ledger.FiredHealthy = append(r.ledger.FiredHealthy, s.Labels["alertname"])
	}
}
