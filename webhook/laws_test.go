package webhook_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/worker"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/sourcetest"
	"github.com/semel-go/semel/webhook"
)

// duplicateProvider is a provider that sends each message again until the response is 200.
type duplicateProvider struct {
	t       testing.TB
	clients worker.Group
	ctx     context.Context

	mutex sync.Mutex
	now   *webhook.Receiver // guarded by mutex
}

func (p *duplicateProvider) receiver() *webhook.Receiver {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.now
}

// Publish implements sourcetest.Broker.
func (p *duplicateProvider) Publish(_ int, m *semel.Message) error {
	p.clients.Go(func() {
		for p.ctx.Err() == nil {
			if r := p.receiver(); r != nil && post(r, paidRequest(string(m.Body)).WithContext(p.ctx)).Code == 200 {
				return
			}
			select {
			case <-time.After(time.Second):
			case <-p.ctx.Done():
			}
		}
	})
	synctest.Wait() // the message has arrived
	return nil
}

// End implements sourcetest.Broker, and is never called.
func (p *duplicateProvider) End() error { return nil }

// Open implements sourcetest.Broker.
func (p *duplicateProvider) Open() (source.Source, error) {
	r, err := webhook.New(webhook.Config{Name: "hooks", Scheme: webhook.Stripe(), Secrets: []string{stripeSecret}, Wait: time.Hour})
	p.mutex.Lock()
	p.now = r
	p.mutex.Unlock()
	<-time.After(2 * time.Second) // each client has sent its request again
	return r, err
}

func TestTheLawsOfSources(t *testing.T) {
	sourcetest.Run(t, sourcetest.Harness{
		Virtual: true,
		Start: func(t testing.TB) sourcetest.Broker {
			ctx, stop := context.WithCancel(context.Background())
			p := &duplicateProvider{t: t, ctx: ctx}
			t.Cleanup(func() {
				stop()
				p.clients.Wait()
			})
			return p
		},
		Can: sourcetest.Can{Lanes: 1, Live: true, Reopens: true, Remembers: true, HandsBack: true, Pauses: true, Dated: true},
	})
}
