package webhook

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/source"
)

// Receiver receives webhooks. A Receiver is an http.Handler and the source of a consumer. Create a Receiver
// with New. While no consumer runs with the Receiver as its source, requests wait and then get 503.
type Receiver struct {
	config   Config
	verifier *Verifier
	lane     source.Lane
	observer source.LaneObserver
	counts   counts
	bodies   bodies

	// mu protects the fields below. A goroutine that holds mu calls no function that can block.
	mu sync.Mutex
	// The messages that were not fetched yet, in order of arrival.
	queue []*arrival
	// The messages that are in the queue, and the messages that were fetched and not acked yet.
	open map[*arrival]struct{}
	// The size of all bodies that are being read or belong to open messages.
	bytes int64
	// The number and size of the bodies that are being read, by client address.
	reading                  map[string]source.Bound
	assigned, paused, closed bool

	// The channel wake receives a value if a waiting Fetch must check the queue again.
	wake chan struct{}
}

var (
	_ http.Handler  = (*Receiver)(nil)
	_ source.Source = (*Receiver)(nil)
)

// arrival is the message of a request. The request waits until the message is committed.
type arrival struct {
	message    semel.Message
	receivedAt time.Time
	size       int64
	// The channel settled receives the outcome of the message, exactly once.
	settled chan source.Settlement
}

// New returns a Receiver. If the configuration has a fault, the error names the fault and contains no secret.
func New(c Config) (*Receiver, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	v, err := NewVerifier(c.Scheme, c.Secrets, c.Tolerance)
	if err != nil {
		return nil, err
	}
	return &Receiver{config: c, verifier: v, lane: source.Lane{ID: c.Name, Epoch: 1},
		open: map[*arrival]struct{}{}, reading: map[string]source.Bound{}, wake: make(chan struct{}, 1)}, nil
}

// ServeHTTP answers one request. If the message is committed or is a duplicate, the answer is 200. For all other
// outcomes, the answer is a problem document (RFC 9457) with a code. After 429 and 503 the provider should send the
// request again after Retry-After.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	began := time.Now()
	_ = http.NewResponseController(w).SetReadDeadline(began.Add(r.config.ReadWithin)) // not every server supports deadlines
	body, fate := r.read(w, q)
	size := int64(len(body))
	if fate == 0 {
		fate = r.receive(q, body)
	} else {
		r.release(size)
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeWithin)) // the server's deadline began before the wait
	answers[fate].write(w, fate)                                                    // also written after a disconnect
	r.counts.byFate[fate].Add(1)
	r.config.Observe(Observation{Fate: fate, Status: answers[fate].status, Bytes: size, Took: time.Since(began)})
}

// The maximum time for writing an answer.
const writeWithin = 5 * time.Second

// read returns the body of a request whose headers pass the first check. The body counts against InHand. If
// the request must be rejected, read returns the outcome of the request.
func (r *Receiver) read(w http.ResponseWriter, q *http.Request) ([]byte, Fate) {
	switch {
	case q.Method != http.MethodPost:
		return nil, NotPost
	case isEncoded(q.Header.Values("Content-Encoding")):
		return nil, Encoded
	case q.ContentLength > r.config.MaxBody:
		return nil, TooLarge
	}
	if err := r.verifier.Signed(q.Header, time.Now()); err != nil {
		return nil, fateOfError(err)
	}
	address := addressOf(q.RemoteAddr)
	if fate := r.enter(address); fate != 0 {
		return nil, fate
	}
	body, fate := r.readBody(w, q, address)
	r.leave(address, int64(len(body)))
	return body, fate
}

// isEncoded reports whether one of the values is a content encoding.
func isEncoded(values []string) bool {
	return slices.ContainsFunc(values, func(v string) bool { return v != "" && !strings.EqualFold(v, "identity") })
}

// fateOfError returns the outcome (Fate) for an error of Verify.
func fateOfError(err error) Fate {
	switch {
	case errors.Is(err, ErrUnsigned):
		return NotSigned
	case errors.Is(err, ErrMalformed):
		return Malformed
	case errors.Is(err, ErrForged):
		return Forged
	}
	return Old
}

// receive checks the signature, passes the message to the consumer and waits for the outcome of the message.
func (r *Receiver) receive(q *http.Request, body []byte) Fate {
	signed, err := r.verifier.Verify(q.Header, body, time.Now())
	if err != nil {
		r.release(int64(len(body)))
		return fateOfError(err)
	}
	a := r.arrival(q, body, signed)
	if fate := r.enqueue(a); fate != 0 {
		r.release(int64(len(body)))
		return fate
	}
	timer := time.NewTimer(r.config.Wait)
	defer timer.Stop()
	select {
	case s := <-a.settled:
		return fateOf(s)
	case <-timer.C:
		return Unavailable
	case <-q.Context().Done():
	}
	select {
	case s := <-a.settled:
		return fateOf(s)
	default:
		return Gone
	}
}

// arrival returns the message of a request.
func (r *Receiver) arrival(q *http.Request, body []byte, signed semel.Headers) *arrival {
	a := &arrival{receivedAt: time.Now(), size: int64(len(body)), settled: make(chan source.Settlement, 1)}
	headers := signed
	for _, name := range r.config.Unsigned.Headers {
		for _, value := range q.Header.Values(name) {
			headers = append(headers, semel.Header{Name: strings.ToLower(name), Value: []byte(value)})
		}
	}
	if unsigned := headers[len(signed):]; len(unsigned) > 0 && r.bodies.seenWithOtherHeaders(body, unsigned) {
		r.counts.repeat.Add(1)
	}
	a.message = semel.Message{Topic: r.config.Name, Headers: headers, Body: body, Origin: semel.Origin{Partition: -1, Offset: -1}}
	a.message.Origin.SetTime(a.receivedAt)
	return a
}

// fateOf returns the outcome of a request (Fate) for the ack or nack of its message.
func fateOf(s source.Settlement) Fate {
	if s.Kind != semel.Ack {
		return Unavailable
	}
	switch s.Ending {
	case source.EndDuplicate:
		return Duplicate
	case source.EndParked, source.EndConflict, source.EndDeadLettered:
		return Parked
	case source.EndDiscarded, source.EndSkipped:
		return Ended
	}
	return Received
}
