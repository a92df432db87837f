package kafka

import (
	"context"
	"encoding/binary"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// wire is a process's way to the brokers, in memory. Frozen, it keeps what was
// written and delivers it when it thaws, as a network does; cut, it is like the
// wire of a process that was killed.
type wire struct {
	network *kfake.VirtualNetwork
	// latency is of each write, in either direction.
	latency time.Duration

	mu    sync.Mutex // guards the rest
	held  chan struct{}
	gone  chan struct{}
	pumps sync.WaitGroup
	ends  []net.Conn
}

func newWire(network *kfake.VirtualNetwork, latency time.Duration) *wire {
	return &wire{network: network, latency: latency, gone: make(chan struct{})}
}

func (w *wire) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if !w.pass(ctx.Done()) {
		return nil, net.ErrClosed
	}
	far, err := w.network.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	near, inner := net.Pipe()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ends = append(w.ends, near, inner, far)
	greets := new(atomic.Bool)
	w.pumps.Go(func() { w.pump(inner, far, func([]byte) bool { return greets.Swap(false) }) })
	w.pumps.Go(func() {
		w.pump(far, inner, func(request []byte) bool {
			greets.Store(len(request) > 6 && binary.BigEndian.Uint16(request[4:]) == uint16(kmsg.ApiVersions))
			return greets.Load()
		})
	})
	return near, nil
}

// pump carries bytes one way. What is part of a greeting passes a frozen wire,
// too: the client asks a new connection for the versions of requests without a
// way to be interrupted, and may hold a lock meanwhile that others wait for.
// Who waits for a lock keeps virtual time from going on, to the thaw as well.
func (w *wire) pump(to, from net.Conn, greeting func([]byte) bool) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if !greeting(buffer[:n]) && !w.pass(nil) {
			return
		}
		if n > 0 {
			if _, failed := to.Write(buffer[:n]); failed != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// pass waits for the latency and while the wire is frozen, and reports whether
// it is whole. Neither wait outlasts done: a client that gives a dial up waits
// with a lock held until it has ended, and, as above, who waits for that lock
// keeps virtual time from going on.
func (w *wire) pass(done <-chan struct{}) bool {
	if w.latency > 0 {
		select {
		case <-time.After(w.latency):
		case <-done:
			return false
		}
	}
	w.mu.Lock()
	held := w.held
	w.mu.Unlock()
	if held != nil {
		select {
		case <-held:
		case <-w.gone:
		case <-done:
		}
	}
	select {
	case <-w.gone:
		return false
	case <-done:
		return false
	default:
		return true
	}
}

func (w *wire) freeze() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.held == nil {
		w.held = make(chan struct{})
	}
}

func (w *wire) thaw() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.held != nil {
		close(w.held)
		w.held = nil
	}
}

// cut ends every connection, and lets no other be made.
func (w *wire) cut() {
	w.mu.Lock()
	ends := w.ends
	w.ends = nil
	select {
	case <-w.gone:
	default:
		close(w.gone)
	}
	w.mu.Unlock()
	for _, c := range ends {
		c.Close()
	}
	w.pumps.Wait()
}
