//go:build unix

// Package webhook is a fault test: it checks that a webhook that was answered with 2xx takes effect once. A process of
// `semel run` receives a provider's events into PostgreSQL. The test kills the process at random times and at each
// named point. The provider retries by its schedule of three days, at a shorter time scale, and also repeats some
// events that were answered with 2xx. An attacker forges requests and replays old requests. A naive receiver gets the
// same requests and kills: it answers before it stores an event and keeps no markers. The lost and doubled events of
// the naive receiver show which failures Semel prevents.
package webhook

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/services/pgproxy"
)

// Proof is the configuration of one run of the fault test.
type Proof struct {
	// Events is the minimum number of events. The provider sends further events until all kills have happened.
	Events   int           `flag:"events, each with an id of its own"`
	Publish  time.Duration `flag:"minimum duration of sending"`
	Kills    int           `flag:"kills at random moments"`
	Rounds   int           `flag:"kills at each named point"`
	Ends     int           `flag:"ends by SIGTERM while requests wait"`
	Restarts int           `flag:"restarts of PostgreSQL, half of them by SIGKILL"`
	Scale    int           `flag:"by which factor the provider's three days are shortened"`
	// Plant is the name of a fault that the run must detect, or "": see Room.Plants.
	Plant string
	Seed  uint64
}

const (
	plantEarly     = "early"
	plantForgetful = "forgetful"
	plantLeaked    = "leaked"
)

// The provider's signing secret.
const secret = "whsec_of_the_proof_that_nobody_guesses"

// run is the state of a running Proof.
type run struct {
	Proof
	*proof.Fleet
	proxy *pgproxy.Proxy
	// The field receiver is the process of semel, and the field naive is the naive receiver. Each receiver has its own
	// provider.
	receiver, naive           *proof.Member
	receiverAt, naiveAt       string
	provider, providerOfNaive *provider
	random                    *rand.Rand
	ledger                    *Ledger
}

// Run runs the fault test on a server of its own and returns the ledger. Call Ledger.Wrong and Ledger.Fault to see
// whether the test succeeded.
func (p Proof) Run(ctx context.Context, s proof.Stage) Ledger {
	l := Ledger{At: map[string]int{}, least: p}
	r := &run{Proof: p, ledger: &l, Fleet: proof.NewFleet(ctx, s, setup, &proof.Tally{}), random: rand.New(rand.NewPCG(p.Seed, 5))}
	defer r.Close()
	r.OnPostgres(services.Options{})
	r.prepare(ctx)
	began := time.Now()
	r.prove(ctx)
	l.Seconds = proof.Since(began)
	r.audit(ctx)
	return l
}

// SQL that creates the effect logs. The effect logs have no unique key, so only Semel prevents a second effect.
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
func (r *run) prepare(ctx context.Context) {
	r.proxy = pgproxy.Start(r.T, r.Server.DSN())
	r.receiverAt, r.naiveAt = proof.Must(proof.FreeAddress()), proof.Must(proof.FreeAddress())
	r.receiver, r.naive = r.Add(), r.Add()
	r.receiver.Env = []string{"DATABASE=" + r.proxy.DSN() + "&application_name=" + r.receiver.Name, "SECRET=" + secret}
	r.naive.Own(Command, r.naiveAt)
	r.Write(r.receiver.Policy, fmt.Sprintf(policy, r.receiverAt))
	r.receiver.Start()
	waitListening(ctx, r.receiver, r.receiverAt) // the receiver creates the tables
	r.naive.Start()
	waitListening(ctx, r.naive, r.naiveAt)
}

// waitListening waits until a process listens at an address.
func waitListening(ctx context.Context, m *proof.Member, address string) {
	m.Await(ctx, time.Minute, func() bool {
		c, err := net.Dial("tcp", address)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
}

// prove runs the providers and kills the receivers until every event has its answer and its effect.
func (r *run) prove(ctx context.Context) {
	r.provider = newProvider(r.Proof, "http://"+r.receiverAt+"/hooks", true)
	r.providerOfNaive = newProvider(r.Proof, "http://"+r.naiveAt+"/hooks", false)
	sending, stop := context.WithCancel(ctx)
	var sends sync.WaitGroup
	defer sends.Wait()
	defer stop()
	sends.Go(func() { r.provider.run(sending) })
	sends.Go(func() { r.providerOfNaive.run(sending) })
	r.harmAll(ctx)
	r.provider.rest()
	r.providerOfNaive.rest()
	r.Until(ctx, func() bool { return r.provider.isSettled() && r.providerOfNaive.isSettled() })
	r.Say("all events are answered")
	r.Patiently(ctx, 2*time.Minute, 0, func(ctx context.Context) bool {
		return r.Count(ctx, `select count(*) from semel_inbox where state <> 'COMPLETED'`) == 0
	})
	for _, m := range []*proof.Member{r.receiver, r.naive} { // the ledger reports events without an effect
		proof.Check(m.End())
	}
}
