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

// Receiver receives webhooks: an http.Handler, and the source of the consumer that they are
// for. Make it with New. Requests wait until a consumer runs on it; without one they are
// answered with 503.
type Receiver struct {
	config   Config
	verifier *Verifier
	lane     source.Lane
	observer source.LaneObserver
	counts   counts
	bodies   bodies

	// mu protects what follows. It is never held across a call that can block.
	mu sync.Mutex
	// queue has what was not fetched, in its order of coming.
	queue []*arrival
	// open has what is in hand: in the queue, or fetched and not settled.
	open map[*arrival]struct{}
	// bytes are those of bodies that are being read or in hand.
	bytes int64
	// reading is what each client address has of the bodies that are being read.
	reading               map[string]source.Bound
	given, paused, closed bool

	// wake holds one token when a Fetch that waits should look again.
	wake chan struct{}
}

var (
	_ http.Handler  = (*Receiver)(nil)
	_ source.Source = (*Receiver)(nil)
)

// arrival is a request's message on its way.
type arrival struct {
	message semel.Message
	at      time.Time
	size    int64
	// settled gets what became of it, once.
	settled chan source.Settlement
}

// New returns a Receiver. The error names what the configuration lacks, and shows no secret.
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

// ServeHTTP answers one request: with 200 when its message is committed or was there before,
// otherwise with a problem document (RFC 9457) whose code says why. A request that is
// answered with 429 or 503 is to be sent again after Retry-After.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	began := time.Now()
	_ = http.NewResponseController(w).SetReadDeadline(began.Add(r.config.ReadWithin)) // a server that cannot has its own
	body, fate := r.read(w, q)
	size := int64(len(body))
	if fate == 0 {
		fate = r.receive(q, body)
	} else {
		r.release(size)
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeWithin)) // that of the server may be over, as it began before the wait
	answers[fate].write(w, fate)                                                    // also where nobody listens: a handler that writes nothing has said 200
	r.counts.by[fate].Add(1)
	r.config.Observe(Observation{Fate: fate, Status: answers[fate].status, Bytes: size, Took: time.Since(began)})
}

// writeWithin is how long the few bytes of an answer may take.
const writeWithin = 5 * time.Second

// read returns the body of a request that may be signed, or why it is refused. Its bytes are
// taken from what may be in hand.
func (r *Receiver) read(w http.ResponseWriter, q *http.Request) ([]byte, Fate) {
	switch {
	case q.Method != http.MethodPost:
		return nil, NotPost
	case encoded(q.Header.Values("Content-Encoding")):
		return nil, Encoded
	case q.ContentLength > r.config.MaxBody:
		return nil, TooLarge
	}
	if err := r.verifier.Signed(q.Header, time.Now()); err != nil {
		return nil, refusal(err)
	}
	address := addressOf(q.RemoteAddr)
	if fate := r.enter(address); fate != 0 {
		return nil, fate
	}
	body, fate := r.readBody(w, q, address)
	r.leave(address, int64(len(body)))
	return body, fate
}

// encoded reports whether one of these values says that the body's bytes are not those of the
// content.
func encoded(values []string) bool {
	return slices.ContainsFunc(values, func(v string) bool { return v != "" && !strings.EqualFold(v, "identity") })
}

// refusal is the fate that an error of Verify means.
func refusal(err error) Fate {
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

// receive checks the signature, hands the message over and waits for what becomes of it.
func (r *Receiver) receive(q *http.Request, body []byte) Fate {
	signed, err := r.verifier.Verify(q.Header, body, time.Now())
	if err != nil {
		r.release(int64(len(body)))
		return refusal(err)
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

// arrival makes the message of a request.
func (r *Receiver) arrival(q *http.Request, body []byte, signed semel.Headers) *arrival {
	a := &arrival{at: time.Now(), size: int64(len(body)), settled: make(chan source.Settlement, 1)}
	headers := signed
	for _, name := range r.config.Unsigned.Headers {
		for _, value := range q.Header.Values(name) {
			headers = append(headers, semel.Header{Name: strings.ToLower(name), Value: []byte(value)})
		}
	}
	if unsigned := headers[len(signed):]; len(unsigned) > 0 && r.bodies.repeats(body, unsigned) {
		r.counts.repeat.Add(1)
	}
	a.message = semel.Message{Topic: r.config.Name, Headers: headers, Body: body, Origin: semel.Origin{Partition: -1, Offset: -1}}
	a.message.Origin.SetTime(a.at)
	return a
}

// fateOf is what a settlement means for whoever asked.
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
