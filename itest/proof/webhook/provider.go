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

// kind is the kind of a request: genuine, or forged in one of several ways.
type kind int

const (
	genuine kind = iota
	forged       // signed with a wrong secret
	touched      // the signature belongs to another body
	old          // correctly signed an hour ago
	kinds
)

// event is an event that the provider, or an attacker, sends to the service.
type event struct {
	id   string
	kind kind
	// The number of attempts since the event was answered or, if it was not answered yet, since it was created.
	tries int
	// The number of times that the event is still sent again after it was answered.
	more int
	due  time.Time
}

// retryDelays returns the provider's retry delays. The first delays are short, and together they last three
// days.
func retryDelays() []time.Duration {
	all := []time.Duration{0, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour}
	for at := 14 * time.Hour; at <= 72*time.Hour; at += 4 * time.Hour {
		all = append(all, at)
	}
	return all
}

// provider sends events to one address until each event is answered. When the method run returns, no client is running.
type provider struct {
	Proof
	url string
	// hasAttacker is true if an attacker also sends requests.
	hasAttacker bool
	client      *http.Client
	ready       chan *event

	mutex   sync.Mutex // mutex guards the fields below
	random  *rand.Rand
	queue   queue
	open    int // number of events that are not done
	resting bool
	heard   chan struct{} // closed at the next 2xx; nil if nobody waits for it
	Counts
	// The ids of the events that were answered with 2xx.
	sent []string
}

// Counts has the numbers of a provider's requests and of the answers.
type Counts struct {
	Attempts int `json:"attempts"`
	// Unanswered is the number of attempts that were retried because they had no answer, or a 5xx or 429.
	Unanswered int `json:"unanswered_or_put_off"`
	// Again is the number of events that were sent again after they were answered.
	Again int `json:"sent_again_after_2xx"`
	// GivenUp is the number of events that got no 2xx for three days.
	GivenUp int `json:"given_up_after_three_days"`
	// Refused is the number of forged or old requests that were answered with 401. Believed is the number of forged or
	// old requests that were answered with 2xx.
	Refused  int `json:"forged_or_old_refused"`
	Believed int `json:"forged_or_old_believed"`
}

const (
	clients = 16
	// The constants are percentages: forgedOf of forged requests, repeatedOf of repeated events, and hangUpOf of
	// requests whose connection is closed early.
	forgedOf, repeatedOf, hangUpOf = 6, 15, 3
)

func newProvider(p Proof, url string, crooked bool) *provider {
	transport := &http.Transport{MaxIdleConnsPerHost: clients, DisableCompression: true}
	return &provider{Proof: p, url: url, hasAttacker: crooked, random: rand.New(rand.NewPCG(p.Seed, 7)), ready: make(chan *event, clients),
		client: &http.Client{Transport: transport, Timeout: 10 * time.Second}}
}

// run creates and sends events until ctx ends.
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

// take creates the events whose time has come, and returns the events that are due to be sent.
func (p *provider) take(began time.Time, made *int) (due []*event) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	now := time.Now()
	rate := float64(p.Events) / float64(p.Publish)
	for *made < int(rate*float64(now.Sub(began))) && (*made < p.Events || !p.resting) {
		p.makeEvent(*made, now)
		*made++
	}
	for len(p.queue) > 0 && !p.queue[0].due.After(now) {
		due = append(due, heap.Pop(&p.queue).(*event))
	}
	return due
}

// makeEvent creates an event, and now and then also a forged event.
func (p *provider) makeEvent(n int, now time.Time) {
	e := &event{id: fmt.Sprintf("evt_%d", n), due: now}
	if p.random.IntN(100) < repeatedOf {
		e.more = 1 + p.random.IntN(3)
	}
	p.open++
	heap.Push(&p.queue, e)
	if p.hasAttacker && p.random.IntN(100) < forgedOf {
		p.open++
		heap.Push(&p.queue, &event{id: fmt.Sprintf("no_%d", n), kind: forged + kind(n)%(kinds-forged), due: now})
	}
}

// After a call of rest, the provider creates no events beyond the minimum number.
func (p *provider) rest() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.resting = true
}

// isSettled reports whether all events are answered and no event is sent again.
func (p *provider) isSettled() bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.resting && p.open == 0 && len(p.sent)+p.GivenUp >= p.Events
}

// tell returns a channel that is closed at the next response with the status 2xx.
func (p *provider) tell() <-chan struct{} {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.heard = make(chan struct{})
	return p.heard
}

// deliver makes one attempt to send an event.
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

// post sends a request and returns the status of the response, or 0 if there is no response.
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

// note handles the status of a response: the event is done, or is scheduled again.
func (p *provider) note(e *event, status int) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.Attempts++
	if p.Plant == plantEarly && e.kind == genuine {
		status = http.StatusOK // with the fault "early", a proxy answers before the receiver has stored anything
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
		p.recordAck(e)
	default:
		p.Unanswered++
		p.scheduleRetry(e)
	}
}

func (p *provider) recordAck(e *event) {
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
	e.tries = -1 // the event was answered, so its repetitions never count as given up
	p.Again++
	e.due = time.Now().Add(time.Duration(p.random.Int64N(int64(24 * time.Hour / time.Duration(p.Scale)))))
	heap.Push(&p.queue, e)
}

// scheduleRetry schedules the next attempt, until three days have passed.
func (p *provider) scheduleRetry(e *event) {
	schedule := retryDelays()
	if e.tries < 0 { // the event is a repetition of an answered event
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

// queue is a heap of events, ordered by the time at which they are due.
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
