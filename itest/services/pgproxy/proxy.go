// Package pgproxy stands between a test and its PostgreSQL server and breaks
// the connection at exactly the wanted message.
//
// It runs in the test's own process and understands the frontend/backend
// protocol, version 3, well enough to know which statement every message asks
// to run or answers: in the simple query protocol, in the extended one with
// named and unnamed statements, and in pipelines of either. So it can let a
// COMMIT through and drop its reply ([Proxy.CutReply]), or close before COMMIT
// is forwarded ([Proxy.CutRequest]), whatever else shares the pipeline. It
// also adds latency and counts round trips.
//
// It reads no encrypted connection: a client that asks for encryption is told
// that there is none. Requests to cancel pass through.
package pgproxy

import (
	"errors"
	"net"
	"net/url"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Direction is which way a message goes.
type Direction int

// The two directions.
const (
	Request Direction = iota // from the client to the server
	Reply                    // from the server to the client
)

// Proxy listens on a free port of 127.0.0.1 and forwards to one server. All
// its methods may be called from several goroutines, at any time until Close.
type Proxy struct {
	dsn      *url.URL
	listener net.Listener
	serving  sync.WaitGroup

	// mu protects what follows. It is never held across a read or a write.
	mu       sync.Mutex
	target   string
	conns    map[*connection]struct{}
	rules    []*Rule
	watchers []func(Message)
	latency  [2]time.Duration
	refusing bool
	deaf     bool          // requests to cancel are dropped
	cancels  chan struct{} // requests to cancel wait until it is closed; nil if they need not
	closed   bool
	serial   int
	ended    Counts
	counted  Counts // what Counts leaves out, after ResetCounts
}

// New starts a proxy before the server of a connection string. The string is
// an address (postgres://…) with one host.
func New(dsn string) (*Proxy, error) {
	u, target, err := parse(dsn)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{dsn: u, listener: l, target: target, conns: map[*connection]struct{}{}}
	p.serving.Add(1)
	go p.accept()
	return p, nil
}

// Start is [New] for a test: what fails, fails the test, and the proxy is
// closed at its end.
func Start(t testing.TB, dsn string) *Proxy {
	t.Helper()
	p, err := New(dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func parse(dsn string) (*url.URL, string, error) {
	u, err := url.Parse(dsn)
	if err != nil {
		return nil, "", err
	}
	c, err := pgconn.ParseConfig(dsn)
	if err != nil {
		return nil, "", err
	}
	for _, other := range c.Fallbacks {
		if other.Host != c.Host || other.Port != c.Port {
			return nil, "", errors.New("a proxy stands before one server: name one host in the connection string")
		}
	}
	return u, net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port))), nil
}

// DSN is the connection string that was given to New, with the proxy's own
// address and without encryption.
func (p *Proxy) DSN() string {
	u := *p.dsn
	u.Host = p.listener.Addr().String()
	q := u.Query()
	q.Set("sslmode", "disable")
	u.RawQuery = q.Encode()
	return u.String()
}

// Redirect sends new connections to the server of another connection string.
// Those that are open stay where they are; see [Proxy.Sever].
func (p *Proxy) Redirect(dsn string) error {
	_, target, err := parse(dsn)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
	return nil
}

// Refuse makes the proxy close new connections at once, as a server that is
// down does, until it is called with false. Counts.Refused counts them.
func (p *Proxy) Refuse(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refusing = on
}

// DropCancels makes the proxy drop requests to cancel, as a network does that
// is cut, until it is called with false. A driver may send one by itself when
// a connection breaks, and a server that is asked to cancel a COMMIT no longer
// waits for its standby.
func (p *Proxy) DropCancels(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.deaf = on
}

// HoldCancels makes the proxy keep requests to cancel until release is called,
// or the proxy ends. A server forgets one that arrives while it reads from its
// client, so a test that needs one to have an effect lets it through when the
// server is at what it is to cancel.
func (p *Proxy) HoldCancels() (release func()) {
	held := make(chan struct{})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cancels = held
	return sync.OnceFunc(func() { close(held) })
}

// awaitCancels returns false if the connection of a request to cancel is over
// before it may go on.
func (p *Proxy) awaitCancels(c *connection) bool {
	p.mu.Lock()
	held := p.cancels
	p.mu.Unlock()
	if held == nil {
		return true
	}
	select {
	case <-held:
		return true
	case <-c.done:
		return false
	}
}

// Latency delays what is forwarded from now on. Each direction is a line: what
// is sent together arrives together, later. Zero, the default, adds nothing.
func (p *Proxy) Latency(request, reply time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.latency = [2]time.Duration{Request: request, Reply: reply}
}

// Watch calls seen with every message that a [Match] would be asked about,
// from the goroutine that forwards it, and before it is forwarded. seen must
// not block.
func (p *Proxy) Watch(seen func(Message)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watchers = append(p.watchers, seen)
}

// Sever closes all connections that are open, on both sides.
func (p *Proxy) Sever() {
	for _, c := range p.open() {
		c.shut()
	}
}

// Close ends the proxy and all its connections, and returns when nothing of it
// runs. It may be called again.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	_ = p.listener.Close()
	p.Sever()
	p.serving.Wait()
}

func (p *Proxy) open() []*connection {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]*connection, 0, len(p.conns))
	for c := range p.conns {
		all = append(all, c)
	}
	return all
}

func (p *Proxy) accept() {
	defer p.serving.Done()
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.serving.Add(1)
		go func() {
			defer p.serving.Done()
			defer func() { _ = client.Close() }()
			p.serve(client)
		}()
	}
}

func (p *Proxy) serve(client net.Conn) {
	c := p.admit(client)
	if c == nil {
		return
	}
	defer p.dismiss(c)
	first, code, err := readStartup(client)
	if err != nil || code == cancelRequest && p.dropsCancels() {
		return
	}
	server, err := net.Dial("tcp", c.target)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	if !c.adopt(server) {
		return
	}
	if code == cancelRequest {
		if !p.awaitCancels(c) {
			return
		}
		_, _ = server.Write(first)
		_, _ = server.Read(make([]byte, 1)) // the server closes when it is done
		return
	}
	c.forward(first)
}

// admit registers a connection, so that Sever and Close reach it, or returns
// nil if it is refused.
func (p *Proxy) admit(client net.Conn) *connection {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.refusing {
		p.ended.Refused++
		return nil
	}
	p.serial++
	c := newConnection(p, p.serial, client, p.target)
	p.conns[c] = struct{}{}
	return c
}

func (p *Proxy) dismiss(c *connection) {
	c.shut()
	counts := c.counts()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
	p.ended = p.ended.plus(counts)
}

func (p *Proxy) delay(d Direction) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.latency[d]
}

func (p *Proxy) dropsCancels() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.deaf
}
