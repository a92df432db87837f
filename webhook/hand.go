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

// The bodies of one client address that are being read may use 1/ofAddress of InHand, because their signatures cannot
// be checked yet.
const ofAddress = 4

// The number of bodies of one address that may always be read at the same time.
const leastOfAddress = 16

// addressOf returns the client address to which the limits apply. For an IPv4 address, the result is the address
// itself. For an IPv6 address, the result is the /64 network, because one client usually has the whole network. For an
// address of this host, the result is "", because such requests come from a proxy, and the addresses of the proxy's
// clients are unknown.
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

// enter starts reading a body. If the request must be rejected, enter returns the outcome of the request.
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

// leave ends reading a body. The n bytes of the body still count against InHand.
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

// hold counts n bytes of a body against InHand. If the request must be rejected, hold returns the outcome of the
// request.
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

// release ends the counting of n bytes against InHand.
func (r *Receiver) release(n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bytes -= n
}

// The constant firstPiece is the size of the first buffer for a body. The constant piece is the maximum by which the
// buffer grows. So memory is allocated only for bytes that have arrived, and not for a Content-Length or for idle
// requests. An HTTP/2 connection can have hundreds of idle requests.
const (
	firstPiece = 512
	piece      = 32 << 10
)

// readBody reads the whole body. The returned bytes count against InHand, even if the request must be rejected.
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
			// After the body was read, the server reads from the connection to notice a disconnect. The server would
			// mistake the end of the deadline for a disconnect, so the deadline is removed. For other requests the
			// server reads the rest of the body before it answers, so the deadline must remain.
			_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // if there was a deadline
			return body, 0
		case errors.As(err, &large):
			return body, TooLarge
		default:
			return body, Incomplete
		}
	}
}

// enqueue adds a message whose bytes are already counted.
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
	r.wakeUp()
	return 0
}

// settle passes the outcome (ack or nack) of a message to the waiting request. Only the first call for a request has an
// effect.
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

func (r *Receiver) wakeUp() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// The number of bodies whose hashes are remembered.
const mostBodies = 4096

// bodies remembers the hashes of the last bodies and of their unsigned headers.
type bodies struct {
	mu     sync.Mutex
	hashes map[[16]byte][16]byte // guarded by mu
	order  [][16]byte            // a ring; guarded by mu
	next   int                   // guarded by mu
}

// seenWithOtherHeaders reports whether the same body has arrived before with other unsigned headers.
func (b *bodies) seenWithOtherHeaders(body []byte, unsigned semel.Headers) bool {
	h := sha256.New()
	for _, header := range unsigned {
		digest.Part(h, []byte(header.Name))
		digest.Part(h, header.Value)
	}
	beside, of := [16]byte(h.Sum(nil)), sha256.Sum256(body)
	key := [16]byte(of[:])
	b.mu.Lock()
	defer b.mu.Unlock()
	if was, known := b.hashes[key]; known {
		return was != beside
	}
	if b.hashes == nil {
		b.hashes = map[[16]byte][16]byte{}
	}
	if len(b.order) < mostBodies {
		b.order = append(b.order, key)
	} else {
		delete(b.hashes, b.order[b.next])
		b.order[b.next], b.next = key, (b.next+1)%mostBodies
	}
	b.hashes[key] = beside
	return false
}
