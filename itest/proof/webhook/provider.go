//go:build unix

package webhook

import (
	"bytes"
	"container/heap"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/semel-go/semel/itest/http/signers"
	"github.com/semel-go/semel/itest/worlds/processes"
)

// kind is the kind of a request.
type kind int

const (
	genuine kind = iota
	forged       // signed with another secret
	touched      // another body under a right signature
	old          // rightly signed an hour ago
	kinds
)

// event is an event that the provider, or an attacker, sends to the service.
type event struct {
	id   string
	kind kind
	// tries is how often the event was sent since its answer, or since the beginning.
	tries int
	// more is how often the event is sent again after its answer.
	more int
	due  time.Time
}

// repeats are the provider's retry delays: short at first, and three days in all.
func repeats() []time.Duration {
	all := []time.Duration{0, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour}
	for at := 14 * time.Hour; at <= 72*time.Hour; at += 4 * time.Hour {
		all = append(all, at)
	}
	return all
}

// provider sends events to one address until each is answered. When run returns, all its
// clients have ended.
type provider struct {
	Proof
	url string
	// crooked: an attacker sends too.
	crooked bool
	client  *http.Client
	ready   chan *event

	mutex   sync.Mutex // guards the fields below
	random  *rand.Rand
	queue   queue
	open    int // events that are not done
	resting bool
	heard   chan struct{} // closed at the next 2xx, where it is not nil
	Counts
	// sent are the events that were answered with 2xx.
	sent []string
}

// Counts are the numbers of requests and answers of a provider.
type Counts struct {
	Attempts int `json:"attempts"`
	// Unanswered attempts had no answer, or 5xx or 429, and were retried.
	Unanswered int `json:"unanswered_or_put_off"`
	// Again are events that were sent again after their answer.
	Again int `json:"sent_again_after_2xx"`
	// GivenUp events had no 2xx for three days.
	GivenUp int `json:"given_up_after_three_days"`
	// Refused are forged or old requests that were answered with 401; Believed are those that
	// were answered with 2xx.
	Refused  int `json:"forged_or_old_refused"`
	Believed int `json:"forged_or_old_believed"`
}

const (
	clients = 16
	// forgedOf and repeatedOf are percentages.
	forgedOf, repeatedOf, hangUpOf = 6, 15, 3
)

func newProvider(p Proof, url string, crooked bool) *provider {
	transport := &http.Transport{MaxIdleConnsPerHost: clients, DisableCompression: true}
	return &provider{Proof: p, url: url, crooked: crooked, random: rand.New(rand.NewPCG(p.Seed, 7)), ready: make(chan *event, clients),
		client: &http.Client{Transport: transport, Timeout: 10 * time.Second}}
}

// run sends until ctx ends.
func (p *provider) run(ctx context.Context) {
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			for e := range p.ready {
				p.deliver(ctx, e)
			}
		})
	}
	began, made := time.Now(), 0
	for ; ctx.Err() == nil; processes.Pause(ctx, time.Millisecond) {
		for _, e := range p.take(began, &made) {
			select {
			case p.ready <- e:
			case <-ctx.Done():
			}
		}
	}
	close(p.ready)
	all.Wait()
}

// take creates the events up to now, and returns those that are due to be sent.
func (p *provider) take(began time.Time, made *int) (due []*event) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	now := time.Now()
	rate := float64(p.Events) / float64(p.Publish)
	for *made < int(rate*float64(now.Sub(began))) && (*made < p.Events || !p.resting) {
		p.make(*made, now)
		*made++
	}
	for len(p.queue) > 0 && !p.queue[0].due.After(now) {
		due = append(due, heap.Pop(&p.queue).(*event))
	}
	return due
}

// make creates an event, and now and then a forged one.
func (p *provider) make(n int, now time.Time) {
	e := &event{id: fmt.Sprintf("evt_%d", n), due: now}
	if p.random.IntN(100) < repeatedOf {
		e.more = 1 + p.random.IntN(3)
	}
	p.open++
	heap.Push(&p.queue, e)
	if p.crooked && p.random.IntN(100) < forgedOf {
		p.open++
		heap.Push(&p.queue, &event{id: fmt.Sprintf("no_%d", n), kind: forged + kind(n)%(kinds-forged), due: now})
	}
}

// rest limits the provider to its minimum number of events.
func (p *provider) rest() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.resting = true
}

// settled reports whether all events are done.
func (p *provider) settled() bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.resting && p.open == 0 && len(p.sent)+p.GivenUp >= p.Events
}

// tell returns a channel that is closed at the next 2xx.
func (p *provider) tell() <-chan struct{} {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.heard = make(chan struct{})
	return p.heard
}

// deliver makes one attempt.
func (p *provider) deliver(ctx context.Context, e *event) {
	p.mutex.Lock()
	hangsUp := p.random.IntN(100) < hangUpOf
	patience := time.Duration(p.random.Int64N(int64(20 * time.Millisecond)))
	p.mutex.Unlock()
	if hangsUp {
		short, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		ctx = short
	}
	p.note(e, p.post(ctx, e))
}

// post returns the status of the response, or 0 without one.
func (p *provider) post(ctx context.Context, e *event) int {
	body := fmt.Appendf(nil, `{"id":%q,"object":"event","type":"charge.succeeded","data":{"object":{"amount":%d}}}`, e.id, len(e.id))
	at, by := time.Now(), secret
	switch {
	case e.kind == old:
		at = at.Add(-time.Hour)
	case e.kind == forged && p.Plant != plantLeaked:
		by = "whsec_of_somebody_who_guesses"
	}
	signature := signers.Stripe(by, at, body)
	if e.kind == touched {
		body = append(body, ' ')
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, bytes.NewReader(body))
	if err != nil {
		return 0
	}
	q.Header.Set(signers.StripeHeader, signature)
	a, err := p.client.Do(q)
	if err != nil {
		return 0
	}
	defer func() { _ = a.Body.Close() }()
	_, _ = io.Copy(io.Discard, a.Body)
	return a.StatusCode
}

// note marks an event as done, or as due again.
func (p *provider) note(e *event, status int) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.Attempts++
	if p.Plant == plantEarly && e.kind == genuine {
		status = http.StatusOK // a proxy in front answers before anything is stored
	}
	good := status/100 == 2
	switch {
	case e.kind != genuine && good:
		p.Believed++
		p.open--
	case e.kind != genuine && status == http.StatusUnauthorized:
		p.Refused++
		p.open--
	case good:
		p.acknowledged(e)
	default:
		p.Unanswered++
		p.again(e)
	}
}

func (p *provider) acknowledged(e *event) {
	if p.heard != nil {
		close(p.heard)
		p.heard = nil
	}
	if e.tries >= 0 {
		p.sent = append(p.sent, e.id)
	}
	if e.more == 0 {
		p.open--
		return
	}
	e.more--
	e.tries = -1 // it was answered, and gives nobody up
	p.Again++
	e.due = time.Now().Add(time.Duration(p.random.Int64N(int64(24 * time.Hour / time.Duration(p.Scale)))))
	heap.Push(&p.queue, e)
}

// again schedules the next attempt, for up to three days.
func (p *provider) again(e *event) {
	schedule := repeats()
	if e.tries < 0 { // a copy of what was answered
		p.open--
		return
	}
	if e.tries++; e.tries == len(schedule) {
		p.GivenUp++
		p.open--
		return
	}
	e.due = time.Now().Add((schedule[e.tries] - schedule[e.tries-1]) / time.Duration(p.Scale))
	heap.Push(&p.queue, e)
}

// queue is ordered by the time at which events are due.
type queue []*event

// Len implements heap.Interface.
func (q queue) Len() int { return len(q) }

// Less implements heap.Interface.
func (q queue) Less(i, j int) bool { return q[i].due.Before(q[j].due) }

// Swap implements heap.Interface.
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Push implements heap.Interface.
func (q *queue) Push(e any) { *q = append(*q, e.(*event)) }

// Pop implements heap.Interface.
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}
