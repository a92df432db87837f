package webhook

import (
	"crypto/sha256"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/digest"
	"github.com/semel-go/semel/source"
)

// What is in hand, and what may be.

// ofAddress is the part of InHand that bodies from one client address have while they are read
// and nobody knows whether they are rightly signed.
const ofAddress = 4

// leastOfAddress is how many bodies of one address may be read in any case.
const leastOfAddress = 16

// addressOf returns the client that a bound is for: the IP address, of IPv6 the network of 64
// bits, of which one client has all. It is empty for this host itself: what comes from there
// comes through a proxy, whose clients are not known here.
func addressOf(remote string) string {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return remote
	}
	switch ip := at.Addr().Unmap().WithZone(""); {
	case ip.IsLoopback():
		return ""
	case ip.Is6():
		network, _ := ip.Prefix(64)
		return network.String()
	default:
		return ip.String()
	}
}

// enter begins the reading of a body, or returns why it is refused.
func (r *Receiver) enter(address string) Fate {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.reading[address]
	switch {
	case len(r.open) >= r.config.InHand.Messages:
		return Busy
	case address == "":
		return 0
	case now.Messages >= max(r.config.InHand.Messages/ofAddress, leastOfAddress):
		return Crowded
	}
	now.Messages++
	r.reading[address] = now
	return 0
}

// leave ends the reading of a body of so many bytes, which stay held.
func (r *Receiver) leave(address string, n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, is := r.reading[address]
	if !is {
		return
	}
	if now.Messages, now.Bytes = now.Messages-1, now.Bytes-n; now.Messages == 0 {
		delete(r.reading, address)
		return
	}
	r.reading[address] = now
}

// hold takes bytes of a body that is being read from what may be in hand, or returns why not.
func (r *Receiver) hold(address string, n int64) Fate {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, counted := r.reading[address]
	switch {
	case r.bytes+n > r.config.InHand.Bytes:
		return Busy
	case counted && now.Bytes+n > max(r.config.InHand.Bytes/ofAddress, r.config.MaxBody):
		return Crowded
	}
	if r.bytes += n; counted {
		now.Bytes += n
		r.reading[address] = now
	}
	return 0
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
func (r *Receiver) readBody(w http.ResponseWriter, q *http.Request, address string) ([]byte, Fate) {
	from := http.MaxBytesReader(w, q.Body, r.config.MaxBody)
	var body []byte
	for {
		if len(body) == cap(body) {
			body = slices.Grow(body, min(max(firstPiece, len(body)), piece))
		}
		n, err := from.Read(body[len(body):min(cap(body), len(body)+piece)])
		if n > 0 {
			if fate := r.hold(address, int64(n)); fate != 0 {
				return body, fate
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
func (r *Receiver) settle(a *arrival, s source.Settlement) {
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
