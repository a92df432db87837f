//go:build unix

// Package alerts proves that the shipped alert rules detect their faults. A Prometheus server scrapes two
// processes of `semel run`. The proof produces one kind of fault after the other. Each alert must be pending,
// fire, and be resolved after the repair. In a healthy run no rule may fire, neither as shipped nor with
// shortened durations. The rules are those of deploy/alerts.yaml with shorter durations, so that a fault need
// not last an hour. itest/binary/alerts tests the original durations with recorded metrics.
package alerts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/services/pgproxy"
	"github.com/semel-go/semel/itest/worlds/processes"
)

// Proof is one run.
type Proof struct {
	Scale   int           `flag:"by which factor the rules' durations are shortened; at most 60, because the sampler of stores always takes 15 s"`
	Healthy time.Duration `flag:"duration of the healthy run; 5m is the range of the shipped rules"`
	Binary  string        `flag:"path of a semel binary; built if empty"`
	// Plant is the name of a fault to plant, or "": see Room.Plants.
	Plant string
}

const (
	plantPoison   = "poison"
	plantUnbroken = "unbroken"
)

// run is a running Proof.
type run struct {
	Proof
	*proof.Fleet
	proxy         *pgproxy.Proxy
	redis         *services.Redis
	prometheus    *services.Prometheus
	pool          *pgxpool.Pool
	endpoint      *endpoint
	hooks         string // address at which the process receives webhooks
	lock          pgx.Tx // the transaction that locks the table "gate", or nil
	first, second *member
	replay        *processes.Process
	sent          int
	ledger        *Ledger
}

// member is one process.
type member struct {
	*proof.Member
	address string
}

// Run runs the proof on private servers and returns the ledger. Call Ledger.Fault to see whether the proof
// succeeded. An error of Run means that the run itself failed.
func (p Proof) Run(ctx context.Context, s proof.Stage) (Ledger, error) {
	l := Ledger{Scale: p.Scale}
	r := &run{Proof: p, Fleet: &proof.Fleet{Stage: s, Binary: p.Binary}, ledger: &l}
	defer r.close()
	if err := r.prepare(ctx); err != nil {
		return l, err
	}
	began := time.Now()
	if err := r.prove(ctx); err != nil {
		return l, err
	}
	l.Seconds = proof.Seconds(time.Since(began).Seconds())
	return l, nil
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
	if r.endpoint != nil {
		r.endpoint.close()
	}
}

// prepare starts servers and creates topics and policies.
func (r *run) prepare(ctx context.Context) (err error) {
	r.OnKafka(services.KafkaOptions{Settings: []string{"offsets.topic.num.partitions=4", "group.initial.rebalance.delay.ms=0"}})
	if err := r.OnPostgres(); err != nil {
		return err
	}
	r.redis = services.StartRedis(r.T, "appendonly yes", "appendfsync always")
	r.proxy = pgproxy.Start(r.T, r.Server.DSN())
	if r.pool, err = pgxpool.New(ctx, r.Server.DSN()); err != nil {
		return err
	}
	if err := r.makeTopics(ctx); err != nil {
		return err
	}
	if r.endpoint, err = serve(); err != nil {
		return err
	}
	if r.Fleet.Binary == "" {
		if r.Fleet.Binary, err = processes.Build(ctx, r.Folder); err != nil {
			return err
		}
	}
	for name, m := range map[string]**member{"first": &r.first, "second": &r.second} {
		address, err := proof.FreeAddress()
		if err != nil {
			return err
		}
		*m = &member{Member: r.Add(), address: address}
		(*m).Policy, (*m).Log, (*m).Summary = name+".yaml", name+".log", name+".json"
		(*m).Env = []string{"DATABASE=" + r.Server.DSN(), "PROXY=" + r.proxy.DSN()}
	}
	return r.write()
}

// makeTopics creates the topics. It retries for up to three minutes, because a broker that has just started
// may answer slowly.
func (r *run) makeTopics(ctx context.Context) error {
	most, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	week := "604800000" // the retention of markers must be longer than the retention of the topic
	return proof.Until(most, time.Second, func() (bool, error) {
		made, err := r.Kafka.Admin.CreateTopics(most, partitions, -1, map[string]*string{"retention.ms": &week}, topicsOfAll...)
		for _, t := range made {
			if t.Err != nil && !errors.Is(t.Err, kerr.TopicAlreadyExists) {
				err = errors.Join(err, t.Err)
			}
		}
		return err == nil, nil
	})
}

// prove runs all processes: first for a time without faults, then through the rounds of faults.
func (r *run) prove(ctx context.Context) error {
	rules, names, err := shipped(ctx)
	if err != nil {
		return err
	}
	for _, m := range []*member{r.first, r.second} {
		if err := r.start(ctx, m); err != nil {
			return err
		}
	}
	r.prometheus = services.StartPrometheus(r.T, configuration(r.first.address, r.second.address), map[string]string{"shipped.yaml": rules, "scaled.yaml": scaled(rules, r.Scale)})
	began := time.Now()
	if err := r.healthy(ctx); err != nil || r.Plant == plantPoison {
		return err // at this point the planted fault has been detected or missed, so the rounds are not needed
	}
	for _, name := range names {
		r.ledger.Alerts = append(r.ledger.Alerts, Alert{Name: name})
	}
	for i, round := range r.rounds() {
		if err := r.round(ctx, i+1, round); err != nil {
			return err
		}
	}
	return r.ask(ctx, began)
}

func (r *run) start(ctx context.Context, m *member) (err error) {
	if err := m.Start(); err != nil {
		return err
	}
	most, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	why := ""
	err = proof.Until(most, 200*time.Millisecond, func() (ready bool, err error) {
		if alive, err := m.Running(); err != nil || !alive {
			return false, errors.Join(err, fmt.Errorf("%w: see %s", processes.ErrEnded, m.Log))
		}
		ready, why = m.ready()
		return ready, nil
	})
	if err != nil {
		return fmt.Errorf("%s: %w: %s", m.Policy, err, why)
	}
	return nil
}

func (m *member) ready() (is bool, why string) {
	answer, err := http.Get("http://" + m.address + "/readyz")
	if err != nil {
		return false, err.Error()
	}
	defer func() { _ = answer.Body.Close() }()
	said, err := io.ReadAll(answer.Body)
	return err == nil && answer.StatusCode == http.StatusOK, string(said)
}

// pause is the time between two turns.
const pause = 500 * time.Millisecond

// healthy runs without a fault for a while.
func (r *run) healthy(ctx context.Context) error {
	r.Say("healthy for %s", r.Healthy)
	r.many(repeated, 1000) // so many that a replay of one message per second lasts a whole round
	if r.Plant == plantPoison {
		r.send(billing, r.name(), made, `{"amount": "much"}`)
	}
	began := time.Now()
	err := proof.Until(ctx, pause, func() (bool, error) {
		r.trickle()
		return time.Since(began) >= r.Healthy, nil
	})
	if err != nil {
		return err
	}
	figures, err := r.prometheus.Range(`max_over_time(semel_effects_total[1m])`, time.Now(), time.Now(), time.Second)
	if err != nil {
		return err
	}
	for _, s := range figures {
		r.ledger.Effects += int(s.Points[len(s.Points)-1].Value)
	}
	fired, err := r.prometheus.Range(`max by (alertname) (ALERTS{alertstate="firing"})`, began, time.Now(), time.Second)
	for _, s := range fired {
		r.ledger.FiredHealthy = append(r.ledger.FiredHealthy, s.Labels["alertname"])
	}
	return err
}
