package httphandler

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"
)

const (
	dialTimeout = 10 * time.Second
	// idleFor is shorter than what servers keep a connection for: one that is closed
	// under a request costs an attempt.
	idleFor = 4 * time.Second
	// mostHeaders is how long the headers of an answer may be, in bytes.
	mostHeaders = 256 << 10
)

// newTransport speaks HTTP/1.1, so that a connection has one call at a time and what
// was sent on it was sent for that call. It asks no proxy and unpacks nothing.
func newTransport(c Config) *http.Transport {
	d := dialer{net.Dialer{Timeout: dialTimeout}, c.TLS}
	return &http.Transport{
		DialContext:            d.plain,
		DialTLSContext:         d.encrypted,
		MaxConnsPerHost:        c.Connections,
		MaxIdleConnsPerHost:    c.Connections,
		IdleConnTimeout:        idleFor,
		MaxResponseHeaderBytes: mostHeaders,
		DisableCompression:     true,
		Proxy:                  nil,
	}
}

// dialer makes connections that know whether something was sent on them.
type dialer struct {
	net.Dialer
	tls *tls.Config
}

func (d dialer) plain(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return newCounted(conn), nil
}

func (d dialer) encrypted(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	config := d.tls.Clone()
	if config == nil {
		config = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	config.ServerName, config.NextProtos = host, []string{"http/1.1"}
	secure := tls.Client(conn, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(&handshakeError{err}, conn.Close())
	}
	return newCounted(secure), nil
}

// handshakeError is of a connection on which both sides did not agree.
type handshakeError struct{ err error }

func (e *handshakeError) Error() string { return e.err.Error() }
func (e *handshakeError) Unwrap() error { return e.err }

// counted counts the bytes that are written, without those of a handshake.
type counted struct {
	net.Conn
	written atomic.Int64
	// refuses: nothing may be written any more.
	refuses atomic.Bool

	changed *sync.Cond // of what follows
	reading bool       // somebody waits for what comes; guarded by changed.L
	closed  bool       // guarded by changed.L
}

func newCounted(conn net.Conn) *counted {
	return &counted{Conn: conn, changed: sync.NewCond(&sync.Mutex{})}
}

func (c *counted) set(what *bool, to bool) {
	c.changed.L.Lock()
	*what = to
	c.changed.L.Unlock()
	c.changed.Broadcast()
}

// Read tells that the transport has used up what came before.
func (c *counted) Read(p []byte) (int, error) {
	c.set(&c.reading, true)
	n, err := c.Conn.Read(p)
	c.set(&c.reading, false)
	return n, err
}

// Close ends all waiting.
func (c *counted) Close() error {
	c.set(&c.closed, true)
	return c.Conn.Close()
}

// empty waits until the transport, which has read an answer to its end, has looked at what
// stood behind it. If that is nothing it waits for more. If a server answered twice it closes
// the connection; a request that was faster would get the second answer for its own.
func (c *counted) empty() {
	c.changed.L.Lock()
	defer c.changed.L.Unlock()
	for !c.reading && !c.closed {
		c.changed.Wait()
	}
}

var errNotAgain = errors.New("the connection was closed after something had been sent")

// Write counts before it writes, since it may be asked meanwhile, and takes back what it
// could not write.
func (c *counted) Write(p []byte) (int, error) {
	if c.refuses.Load() {
		return 0, errNotAgain
	}
	c.written.Add(int64(len(p)))
	n, err := c.Conn.Write(p)
	c.written.Add(int64(n - len(p)))
	return n, err
}

// call is one call as its connections know it. Where a connection that was kept turns out
// to be closed, the transport sends a request with an idempotency key again by itself, on
// another one. That is wanted as long as nothing was sent. Otherwise it would be a second
// call that nobody counts, so the other connection refuses it.
type call struct {
	conn  atomic.Pointer[counted]
	began atomic.Int64
	gone  atomic.Bool
}

func (c *call) traced(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		conn, ok := info.Conn.(*counted)
		if !ok {
			return
		}
		if info.Reused {
			conn.empty()
		}
		if c.sent() {
			c.gone.Store(true)
			conn.refuses.Store(true)
		}
		c.began.Store(conn.written.Load())
		c.conn.Store(conn)
	}})
}

// sent reports whether something of the request may have left.
func (c *call) sent() bool {
	conn := c.conn.Load()
	return c.gone.Load() || conn != nil && conn.written.Load() > c.began.Load()
}
