//go:build unix

// Package webhook proves that a webhook that was answered with 2xx takes effect once. A process of `semel
// run` receives a provider's events into PostgreSQL. The proof kills the process at random times and at each
// named point. The provider retries by its schedule of three days, at a shorter time scale. It also repeats
// some events that were answered with 2xx. An attacker forges requests and replays old ones. A naive receiver
// gets the same requests and kills: it answers before it stores an event and keeps no markers. Its lost and
// doubled events show which failures Semel prevents.
package webhook

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"time"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/services/pgproxy"
	"github.com/semel-go/semel/itest/worlds/processes"
)

// Proof is one run.
type Proof struct {
	// Events is the minimum number of events. The provider sends more until all kills have happened.
	Events   int           `flag:"events, each with an id of its own"`
	Publish  time.Duration `flag:"minimum duration of sending"`
	Kills    int           `flag:"kills at random moments"`
	Rounds   int           `flag:"kills at each named point"`
	Ends     int           `flag:"ends by SIGTERM while requests wait"`
	Restarts int           `flag:"restarts of PostgreSQL, half of them by SIGKILL"`
	Scale    int           `flag:"by which factor the provider's three days are shortened"`
	// Plant is the name of a fault to plant, or "": see Room.Plants.
	Plant string
	Seed  uint64
}

const (
	plantEarly     = "early"
	plantForgetful = "forgetful"
	plantLeaked    = "leaked"
)

// secret is the provider's signing secret.
const secret = "whsec_of_the_proof_that_nobody_guesses"

// run is a running Proof.
type run struct {
	Proof
	*proof.Fleet
	proxy *pgproxy.Proxy
	// receiver is the process of semel. naive is the naive receiver. Each has its own provider.
	receiver, naive           *proof.Member
	receiverAt, naiveAt       string
	provider, providerOfNaive *provider
	tally                     proof.Tally
	random                    *rand.Rand
	ledger                    *Ledger
}

// Run runs the proof on a private server and returns the ledger. Call Ledger.Fault to see whether the proof
// succeeded. An error of Run means that the run itself failed.
func (p Proof) Run(ctx context.Context, s proof.Stage) (Ledger, error) {
	l := Ledger{At: map[string]int{}, least: p}
	r := &run{Proof: p, ledger: &l, random: rand.New(rand.NewPCG(p.Seed, 5))}
	var err error
	if r.Fleet, err = proof.NewFleet(ctx, s, setup, &r.tally); err != nil {
		return l, err
	}
	defer r.Close()
	if err := r.OnPostgres(); err != nil {
		return l, err
	}
	if err := r.prepare(ctx); err != nil {
		return l, err
	}
	began := time.Now()
	if err := r.prove(ctx); err != nil {
		return l, err
	}
	l.Seconds = proof.Seconds(time.Since(began).Seconds())
	return l, r.audit(ctx)
}

// setup creates the effect logs. They have no unique key, so only Semel prevents a second effect.
const setup = `create table effects (delivery text not null);
create table naive_effects (delivery text not null);
`

const policy = `version: 1
stores:
  shop:
    postgres: {url: "${DATABASE}"}
    migrate: true
    setup: setup.sql
sources:
  payments:
    webhook: {listen: %q, path: /hooks, scheme: stripe, secret: "${SECRET}", wait: 5s}
consumers:
  ` + proof.Consumer + `:
    from: payments
    store: shop
    identity: {id: "body:/id"}
    strategy: inbox
    ack: after_receipt
    lanes: none
    inbox: {lease: 2s, poll: 100ms, max_crashes: 100} # no message kills its process here
    timeout: 1s
    retry: {max_attempts: 1000, initial_delay: 50ms, max_delay: 500ms}
    alerts: {pending_age: 60s}
    handler:
      sql:
        params: {id: "body:/id"}
        statements: [insert into effects (delivery) values (:id)]
`

// prepare starts both receivers and waits until they listen.
func (r *run) prepare(ctx context.Context) (err error) {
	r.proxy = pgproxy.Start(r.T, r.Server.DSN())
	r.receiver, r.naive = r.Add(), r.Add()
	r.receiver.Env = []string{"DATABASE=" + r.proxy.DSN() + "&application_name=" + r.receiver.Name, "SECRET=" + secret}
	if r.receiverAt, err = proof.FreeAddress(); err != nil {
		return err
	}
	if r.naiveAt, err = proof.FreeAddress(); err != nil {
		return err
	}
	if r.naive.Binary, err = os.Executable(); err != nil {
		return err
	}
	r.naive.Args, r.naive.Env = []string{Command}, []string{variable + "=" + r.naiveAt, "DATABASE=" + r.Server.DSN()}
	if err := os.WriteFile(r.receiver.Path(r.receiver.Policy), fmt.Appendf(nil, policy, r.receiverAt), 0o600); err != nil {
		return err
	}
	if err := r.receiver.Start(); err != nil {
		return err
	}
	if err := r.listens(ctx, r.receiver, r.receiverAt); err != nil { // this process creates the tables
		return err
	}
	if err := r.naive.Start(); err != nil {
		return err
	}
	return r.listens(ctx, r.naive, r.naiveAt)
}

// listens waits until a process listens at this address.
func (r *run) listens(ctx context.Context, m *proof.Member, address string) error {
	most, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return proof.Until(most, 5*time.Millisecond, func() (bool, error) {
		if alive, err := m.Running(); err != nil || !alive {
			return false, fmt.Errorf("%s: %w (%v); its last log line is %q", m.Name, processes.ErrEnded, err, m.LastWords())
		}
		c, err := net.Dial("tcp", address)
		if err == nil {
			_ = c.Close()
		}
		return err == nil, nil
	})
}

// prove runs the providers and kills the receivers until every event has its answer and its effect.
func (r *run) prove(ctx context.Context) error {
	r.provider = newProvider(r.Proof, "http://"+r.receiverAt+"/hooks", true)
	r.providerOfNaive = newProvider(r.Proof, "http://"+r.naiveAt+"/hooks", false)
	sending, stop := context.WithCancel(ctx)
	defer stop()
	over := make(chan struct{}, 2)
	for _, p := range []*provider{r.provider, r.providerOfNaive} {
		go func() { p.run(sending); over <- struct{}{} }()
	}
	defer func() { stop(); <-over; <-over }()
	if err := r.harmAll(ctx); err != nil {
		return err
	}
	r.provider.rest()
	r.providerOfNaive.rest()
	err := r.Until(ctx, func() (bool, error) { return r.provider.settled() && r.providerOfNaive.settled(), nil })
	if err != nil {
		return err
	}
	r.Say("all events are answered")
	_, err = r.Patiently(ctx, 2*time.Minute, 0, func(ctx context.Context) (bool, error) {
		var left int
		err := r.Activity.DB.QueryRowContext(ctx, `select count(*) from semel_inbox where state <> 'COMPLETED'`).Scan(&left)
		return left == 0, err
	})
	if err != nil {
		return err
	}
	for _, m := range []*proof.Member{r.receiver, r.naive} { // the ledger reports events without an effect
		if err := m.End(); err != nil {
			return err
		}
	}
	return nil
}
