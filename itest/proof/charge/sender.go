//go:build unix

package charge

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/itest/worlds/provider"
	"github.com/semel-go/semel/kafka"
	"github.com/semel-go/semel/pgxstore"
	"github.com/semel-go/semel/store"
)

// consume books orders from the topic, and writes the intent to charge in the same transaction.
func (o *order) consume(ctx context.Context, store *pgxstore.Store, t *traps) error {
	source := kafka.Config{Brokers: o.Brokers, Topics: []string{topic}, Group: bookings, SessionTimeout: 6 * time.Second, RevokeTimeout: 5 * time.Second}
	if o.Number > 0 { // Every process but the first is a static member of the group, so its restart causes no rebalance.
		source.Instance = fmt.Sprintf("consumer-%d", o.Number)
	}
	orders, err := kafka.New(source)
	if err != nil {
		return err
	}
	intents, err := consumer.NewIntents(store)
	if err != nil {
		return err
	}
	c, err := consumer.New(store, func(ctx context.Context, tx pgx.Tx, m *semel.Message) error {
		p, err := semel.JSON[provider.Payment](m)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "insert into effects values ($1, $2)", p.Reference, p.Cents); err != nil {
			return err
		}
		return intents.Write(ctx, tx, m, intentOf(m, p))
	}, consumer.Config{Name: bookings, Source: orders, Identity: identity.CloudEvents(), Timeout: 5 * time.Second}, faults.Plan{At: t.onPoint})
	if err != nil {
		return err
	}
	return c.Run(ctx)
}

// intentOf returns the intent to charge an order.
func intentOf(m *semel.Message, p provider.Payment) semel.Intent {
	return semel.Intent{To: charges, Purpose: "charge", Recipient: p.Card, Body: m.Body}
}

// send charges the payments of intents.
func (o *order) send(ctx context.Context, store *pgxstore.Store, t *traps) error {
	s := &sender{Client: o.client(), traps: t, plant: o.Proof.Plant}
	c, err := consumer.NewLeased(lossyStore{store, t}, s.charge, o.Proof.senderConfig(s), faults.Plan{At: t.onPoint})
	if err != nil {
		return err
	}
	return c.Run(ctx)
}

func (p *Proof) senderConfig(s *sender) consumer.Config {
	window, most := p.Window, attempts
	if p.Plant == "forgotten" { // the attempts last longer than the provider remembers keys
		window, most = consumer.WindowAlways, 3*attempts
	}
	return consumer.Config{
		Name: charges, Identity: identity.CloudEvents(), Strategy: consumer.StrategyInbox, Workers: workers, Timeout: p.Timeout,
		Inbox:    consumer.InboxPolicy{Lease: p.Lease, Poll: 100 * time.Millisecond, MaxCrashes: 50},
		Retry:    consumer.RetryPolicy{MaxAttempts: most, InitialDelay: 100 * time.Millisecond, MaxDelay: p.Most, SerialAfter: 10_000, Budget: consumer.RetryBudget{PerSecond: 10_000}},
		Provider: consumer.Provider{Window: window, Lookup: s.ask},
	}
}

// The maximum number of attempts, which is enough for all calls within the window and for several queries afterwards.
const attempts = 35

// sender is the handler that sends the intents.
type sender struct {
	provider.Client
	traps *traps
	plant string
}

func (s *sender) charge(ctx context.Context, _ consumer.Call, m *semel.Message) error {
	p, err := semel.JSON[provider.Payment](m)
	if err != nil {
		return err
	}
	key := m.IntentKey("charge")
	switch s.plant {
	case "new-key":
		key = rand.Text()
	case "settle-first":
		time.AfterFunc(50*time.Millisecond, func() { _, _ = s.Charge(context.WithoutCancel(ctx), key, p) })
		return nil
	}
	s.traps.onPoint(beforeCall, 1)
	_, err = s.Charge(ctx, key, p)
	s.traps.onPoint(afterCall, 1)
	return judge(err)
}

// judge returns the handler's result for the provider's answer.
func judge(err error) error {
	var answer *provider.StatusError
	var dial *net.OpError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &dial) && dial.Op == "dial":
		return semel.Retry(err) // the request was not sent
	case !errors.As(err, &answer) || answer.Status >= http.StatusInternalServerError:
		return semel.Unknown(err)
	case answer.Status == http.StatusTooManyRequests:
		return semel.RetryAfter(err, answer.After)
	case answer.Status == http.StatusConflict: // an earlier call with this key is still running at the provider
		return semel.Retry(err)
	}
	return semel.Permanent(err)
}

// ask queries the provider for the outcome of earlier calls. The consumer calls ask when the provider may have
// forgotten the key of the payment.
func (s *sender) ask(ctx context.Context, m *semel.Message) (consumer.LookupResult, error) {
	p, err := semel.JSON[provider.Payment](m)
	if err != nil {
		return consumer.StillUnknown, err
	}
	switch i, err := s.Ask(ctx, p.Reference); {
	case err != nil || i.UnderWay:
		return consumer.StillUnknown, err
	case i.Charges > 0:
		return consumer.Happened, nil
	}
	return consumer.DidNotHappen, nil
}

// lossyStore is a store that sometimes loses the answer of End. When the answer of End is lost, End has released the
// claims, but the caller gets an error.
type lossyStore struct {
	*pgxstore.Store
	traps *traps
}

// End implements store.Leases.
func (f lossyStore) End(ctx context.Context, all []store.ClaimEnding) ([]int, error) {
	lost, err := f.Store.End(ctx, all)
	if err == nil && f.traps.losesAnswer() {
		return nil, errors.New("the answer was lost")
	}
	return lost, err
}
