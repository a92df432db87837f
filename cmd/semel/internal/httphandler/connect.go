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
	// idleFor is how long an idle connection stays open. idleFor is shorter than the idle timeout of common
	// servers. If a server closed the connection during a request, the request would cost an attempt.
	idleFor = 4 * time.Second
	// mostHeaders is the maximum length of a response's headers, in bytes.
	mostHeaders = 256 << 10
)

// newTransport returns a transport for HTTP/1.1. With HTTP/1.1, a connection carries one call at a time, and
// every byte on the connection belongs to that call. The transport uses no proxy and does not decompress
// responses.
func newTransport(c Config) *http.Transport {
	d := dialer{net.Dialer{Timeout: dialTimeout}, c.TLS}
	return &http.Transport{
		DialContext:            d.dialPlain,
		DialTLSContext:         d.dialTLS,
		MaxConnsPerHost:        c.Connections,
		MaxIdleConnsPerHost:    c.Connections,
		IdleConnTimeout:        idleFor,
		MaxResponseHeaderBytes: mostHeaders,
		DisableCompression:     true,
		Proxy:                  nil,
	}
}

// dialer opens connections that count the sent bytes.
type dialer struct {
	net.Dialer
	tls *tls.Config
}

func (d dialer) dialPlain(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return newCountingConn(conn), nil
}

func (d dialer) dialTLS(ctx context.Context, network, address string) (net.Conn, error) {
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
	return newCountingConn(secure), nil
}

// handshakeError is the error of a failed TLS handshake.
type handshakeError struct{ err error }

func (e *handshakeError) Error() string { return e.err.Error() }
func (e *handshakeError) Unwrap() error { return e.err }

// countingConn counts the bytes that are written to a connection. The bytes of a TLS handshake are not counted.
type countingConn struct {
	net.Conn
	written atomic.Int64
	// rejectsWrites means that further writes return an error.
	rejectsWrites atomic.Bool

	changed *sync.Cond // signals changes of reading and closed
	reading bool       // true while a goroutine waits in Read; guarded by changed.L
	closed  bool       // guarded by changed.L
}

func newCountingConn(conn net.Conn) *countingConn {
	return &countingConn{Conn: conn, changed: sync.NewCond(&sync.Mutex{})}
}

func (c *countingConn) setState(what *bool, to bool) {
	c.changed.L.Lock()
	*what = to
	c.changed.L.Unlock()
	c.changed.Broadcast()
}

// Read implements net.Conn. While a goroutine is waiting in Read, the transport has processed all bytes that
// arrived earlier.
func (c *countingConn) Read(p []byte) (int, error) {
	c.setState(&c.reading, true)
	n, err := c.Conn.Read(p)
	c.setState(&c.reading, false)
	return n, err
}

// Close implements net.Conn. Close wakes all goroutines that wait in waitUntilRead.
func (c *countingConn) Close() error {
	c.setState(&c.closed, true)
	return c.Conn.Close()
}

// waitUntilRead waits until the transport has read a response to the end and has checked for further
// bytes. If the server has sent a second response, the transport then closes the connection. Without this
// wait, the transport could take an unexpected second response for the response to the next request.
func (c *countingConn) waitUntilRead() {
	c.changed.L.Lock()
	defer c.changed.L.Unlock()
	for !c.reading && !c.closed {
		c.changed.Wait()
	}
}

var errNotAgain = errors.New("the connection was closed after something had been sent")

// Write implements net.Conn. Write counts the bytes before it writes, because another goroutine may read the
// count during the write. If writing fails, Write subtracts the bytes that were not written.
func (c *countingConn) Write(p []byte) (int, error) {
	if c.rejectsWrites.Load() {
		return 0, errNotAgain
	}
	c.written.Add(int64(len(p)))
	n, err := c.Conn.Write(p)
	c.written.Add(int64(n - len(p)))
	return n, err
}

// call observes the connections of one call. If a reused connection turns out to be closed, the transport
// repeats a request with an idempotency key on another connection. The transport may repeat the request if no
// byte of the request was sent before. If a byte was sent, the repeated request would be a second call that
// Semel does not count, so the other connection rejects the request.
type call struct {
	conn        atomic.Pointer[countingConn]
	began       atomic.Int64
	sentEarlier atomic.Bool
}

func (c *call) withTrace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		conn, ok := info.Conn.(*countingConn)
		if !ok {
			return
		}
		if info.Reused {
			conn.waitUntilRead()
		}
		if c.hasSent() {
			c.sentEarlier.Store(true)
			conn.rejectsWrites.Store(true)
		}
		c.began.Store(conn.written.Load())
		c.conn.Store(conn)
	}})
}

// hasSent reports whether at least one byte of the request may have been sent.
func (c *call) hasSent() bool {
	conn := c.conn.Load()
	return c.sentEarlier.Load() || conn != nil && conn.written.Load() > c.began.Load()
}
