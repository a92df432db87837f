package webhook

import (
	"crypto/sha256"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/contract"
	"github.com/semel-go/semel/internal/digest"
)

// What is in hand, and what may be.

// room reports whether one more message may come into hand.
func (r *Receiver) room() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.open) < r.config.InHand.Messages
}

// hold takes bytes from what may be in hand, and reports whether there were so many.
func (r *Receiver) hold(n int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.bytes+n > r.config.InHand.Bytes {
		return false
	}
	r.bytes += n
	return true
}

// release gives bytes back.
func (r *Receiver) release(n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bytes -= n
}

// firstPiece is the place that a body has before a byte of it has come, and piece the most
// that it is given at a time: nobody has a place for bytes that they have only announced, nor
// for a request that only stands there, of which HTTP/2 has hundreds on one connection.
const (
	firstPiece = 512
	piece      = 32 << 10
)

// readBody reads the whole body. What it returns is held, also with a fate.
func (r *Receiver) readBody(w http.ResponseWriter, q *http.Request) ([]byte, Fate) {
	from := http.MaxBytesReader(w, q.Body, r.config.MaxBody)
	var body []byte
	for {
		if len(body) == cap(body) {
			body = slices.Grow(body, min(max(firstPiece, len(body)), piece))
		}
		n, err := from.Read(body[len(body):min(cap(body), len(body)+piece)])
		if n > 0 {
			if !r.hold(int64(n)) {
				return body, Busy
			}
			body = body[:len(body)+n]
		}
		var large *http.MaxBytesError
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			// From here on the server reads to learn whether the client has gone, and would
			// take the end of the deadline for that. Of any other request it reads the rest of
			// the body before it answers, for which the deadline stands.
			_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // where there was one
			return body, 0
		case errors.As(err, &large):
			return body, TooLarge
		default:
			return body, Incomplete
		}
	}
}

// enqueue brings a message into hand, whose bytes are held already.
func (r *Receiver) enqueue(a *arrival) Fate {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.closed:
		return Unavailable
	case len(r.open) >= r.config.InHand.Messages:
		return Busy
	}
	r.queue = append(r.queue, a)
	r.open[a] = struct{}{}
	r.rouse()
	return 0
}

// settle tells whoever waits, once.
func (r *Receiver) settle(a *arrival, s contract.Settlement) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, is := r.open[a]; !is {
		return
	}
	delete(r.open, a)
	r.bytes -= a.size
	a.settled <- s
}

func (r *Receiver) rouse() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// mostBodies is how many bodies are remembered.
const mostBodies = 4096

// bodies remembers the last bodies, each with what stood beside it unsigned.
type bodies struct {
	mu    sync.Mutex
	seen  map[[16]byte][16]byte // guarded by mu
	order [][16]byte            // a ring; guarded by mu
	next  int                   // guarded by mu
}

// repeats reports whether the body came before with other headers.
func (b *bodies) repeats(body []byte, unsigned semel.Headers) bool {
	h := sha256.New()
	for _, header := range unsigned {
		digest.Part(h, []byte(header.Name))
		digest.Part(h, header.Value)
	}
	beside, of := [16]byte(h.Sum(nil)), sha256.Sum256(body)
	key := [16]byte(of[:])
	b.mu.Lock()
	defer b.mu.Unlock()
	if was, known := b.seen[key]; known {
		return was != beside
	}
	if b.seen == nil {
		b.seen = map[[16]byte][16]byte{}
	}
	if len(b.order) < mostBodies {
		b.order = append(b.order, key)
	} else {
		delete(b.seen, b.order[b.next])
		b.order[b.next], b.next = key, (b.next+1)%mostBodies
	}
	b.seen[key] = beside
	return false
}
