// Package pgproxy is a proxy between a test and its PostgreSQL server. The proxy can break the connection at exactly
// the message that the test chooses.
//
// The proxy runs in the process of the test and understands version 3 of the frontend/backend protocol. For each
// message, the proxy knows which statement the message runs or answers. The proxy knows this in the simple query
// protocol, in the extended protocol with named and unnamed statements, and in pipelines of both. The proxy can
// therefore forward a COMMIT and drop its reply ([Proxy.CutReply]), or close the connection before COMMIT is forwarded
// ([Proxy.CutRequest]), even inside a pipeline. The proxy also adds latency and counts round trips.
//
// The proxy declines encryption: it answers the client that the server does not support encryption. Requests to cancel
// are forwarded.
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

// Direction is the direction of a message.
type Direction int

const (
	Request Direction = iota // from the client to the server
	Reply                    // from the server to the client
)

// Proxy listens on a free port of 127.0.0.1 and forwards to one server. The methods of Proxy are safe for concurrent
// use until Close is called.
type Proxy struct {
	dsn      *url.URL
	listener net.Listener
	serving  sync.WaitGroup

	// mu protects the fields below. No read or write of a connection happens while mu is held.
	mu       sync.Mutex
	target   string
	conns    map[*connection]struct{}
	rules    []*Rule
	watchers []func(Message)
	latency  [2]time.Duration
	refusing bool
	deaf     bool          // whether requests to cancel are dropped
	cancels  chan struct{} // requests to cancel wait until this channel is closed; if the channel is nil, they do not wait
	closed   bool
	serial   int
	ended    Counts
	counted  Counts // value of the counts at the last ResetCounts, which Counts subtracts
}

// New starts a proxy in front of the server of a connection string. The connection string must be a URL
// (postgres://…) with one host.
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

// Start is like [New], for tests: an error fails the test, and the proxy is closed when the test ends.
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
			return nil, "", errors.New("a proxy has one server: name one host in the connection string")
		}
	}
	return u, net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port))), nil
}

// DSN returns the connection string that was passed to the function New, with the proxy's address and without
// encryption.
func (p *Proxy) DSN() string {
	u := *p.dsn
	u.Host = p.listener.Addr().String()
	q := u.Query()
	q.Set("sslmode", "disable")
	u.RawQuery = q.Encode()
	return u.String()
}

// Redirect sends new connections to the server of another connection string. Open connections stay connected
// to the previous server; see [Proxy.Sever].
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

// Refuse(true) makes the proxy close new connections at once, as if the server were down. Refuse(false) accepts new
// connections again. Counts.Refused counts the closed connections.
func (p *Proxy) Refuse(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refusing = on
}

// DropCancels(true) makes the proxy drop requests to cancel, as a broken network does. DropCancels(false) forwards
// requests to cancel again. A driver may send a request to cancel when a connection breaks. A server that receives a
// request to cancel during a COMMIT stops waiting for its standby.
func (p *Proxy) DropCancels(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.deaf = on
}

// HoldCancels makes the proxy hold requests to cancel until release is called or the proxy ends. A server ignores a
// request to cancel while it reads from its client. If a test needs the request to take effect, it calls release when
// the server is running the statement.
func (p *Proxy) HoldCancels() (release func()) {
	held := make(chan struct{})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cancels = held
	return sync.OnceFunc(func() { close(held) })
}

// awaitCancels waits until requests to cancel may be forwarded. The result is false if the connection of the request
// ends first.
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

// Latency delays messages that are forwarded from now on. Messages that were sent together still arrive
// together. The default is no delay.
func (p *Proxy) Latency(request, reply time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.latency = [2]time.Duration{Request: request, Reply: reply}
}

// Watch calls the function seen with every message that a [Match] gets, before the message is forwarded. The goroutine
// that forwards the message calls seen, so the function seen must not block.
func (p *Proxy) Watch(seen func(Message)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watchers = append(p.watchers, seen)
}

// Sever closes both sides of all open connections.
func (p *Proxy) Sever() {
	for _, c := range p.open() {
		c.closeBoth()
	}
}

// Close stops the proxy, closes all its connections, and waits for its goroutines. Close may be called again.
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
		_, _ = server.Read(make([]byte, 1)) // this read returns when the server has processed the request and closes the connection
		return
	}
	c.forward(first)
}

// admit registers a connection, so that Sever and Close can close it. admit returns nil if new connections
// are refused.
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
	c.closeBoth()
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
