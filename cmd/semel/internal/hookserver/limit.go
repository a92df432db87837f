package hookserver

import (
	"container/list"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/policy/shape"
)

func timeoutContext(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), d)
}

// limitedListener is a listener that allows a limited number of open connections. At the limit, limitedListener closes
// idle connections, longest idle first. Providers send from many machines, and each machine keeps its connection open.
// If a provider does not retry and a webhook waits longer than the provider's timeout, the webhook is lost.
type limitedListener struct {
	net.Listener
	slots     chan struct{}
	closed    chan struct{}
	closeOnce sync.Once

	mutex sync.Mutex
	idle  *list.List                 // elements are of type idleConn, longest idle first; guarded by mutex
	at    map[net.Conn]*list.Element // guarded by mutex
}

// idleConn is an idle connection, with the start of its idle time.
type idleConn struct {
	net.Conn
	idleSince time.Time
}

// minIdleTime is how long a connection must be idle before limitedListener may close it. A new HTTP/2 connection counts
// as idle until its first request arrives.
const minIdleTime = time.Second

func newLimitedListener(l net.Listener, most int) *limitedListener {
	return &limitedListener{Listener: l, slots: make(chan struct{}, most), closed: make(chan struct{}), idle: list.New(), at: map[net.Conn]*list.Element{}}
}

// Accept implements net.Listener.
func (l *limitedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if !l.acquireSlot() {
		_ = c.Close()
		return nil, net.ErrClosed
	}
	return &releasingConn{Conn: c, release: sync.OnceFunc(func() { <-l.slots })}, nil
}

// acquireSlot waits until one more connection is allowed. If the server ends first, the method returns
// false.
func (l *limitedListener) acquireSlot() bool {
	select {
	case l.slots <- struct{}{}:
		return true
	default:
	}
	look := time.NewTicker(minIdleTime / 20)
	defer look.Stop()
	for {
		if c := l.longestIdle(); c != nil {
			closeNow(c)
		}
		select {
		case l.slots <- struct{}{}:
			return true
		case <-l.closed:
			return false
		case <-look.C:
		}
	}
}

// longestIdle returns the connection to close, or nil if no connection has been idle for minIdleTime.
func (l *limitedListener) longestIdle() net.Conn {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	first := l.idle.Front()
	if first == nil || time.Since(first.Value.(idleConn).idleSince) < minIdleTime {
		return nil
	}
	c := l.idle.Remove(first).(idleConn).Conn
	delete(l.at, c)
	return c
}

// state records each change of a connection's state.
func (l *limitedListener) state(c net.Conn, s http.ConnState) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if e := l.at[c]; e != nil {
		l.idle.Remove(e)
		delete(l.at, c)
	}
	if s == http.StateIdle {
		l.at[c] = l.idle.PushBack(idleConn{c, time.Now()})
	}
}

// closeNow closes a connection immediately. A regular end of a TLS connection would send data first and could
// block.
func closeNow(c net.Conn) {
	if t, is := c.(*tls.Conn); is {
		c = t.NetConn()
	}
	_ = c.Close()
}

// Close implements net.Listener.
func (l *limitedListener) Close() error {
	l.closeOnce.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// releasingConn is a connection that makes room for another connection when it is closed.
type releasingConn struct {
	net.Conn
	release func()
}

// Close implements net.Conn.
func (c *releasingConn) Close() error {
	defer c.release()
	return c.Conn.Close()
}

// certificate is a certificate and private key in two files. The files are read again when one of them
// changes.
type certificate struct {
	cert, key string
	logger    *slog.Logger

	mutex  sync.Mutex
	loaded *tls.Certificate // guarded by mutex
	tried  [2]time.Time     // modification times of the files at the last read; guarded by mutex
	logged string           // text of the last logged error; guarded by mutex
}

func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	switch err := c.load(); {
	case err == nil:
	case c.loaded == nil:
		return nil, fmt.Errorf("tls: %w: write a certificate and its key there, in PEM", err)
	case err.Error() != c.logged: // log an error once, not for each connection
		c.logged = err.Error()
		c.logger.Error("the new certificate of webhooks cannot be read; the previous one stays in use", "error", err)
	}
	return c.loaded, nil
}

// load reads the files if they changed since the last read. The caller of load must hold mutex.
func (c *certificate) load() error {
	changed, err := c.times()
	if err != nil || c.loaded != nil && changed == c.tried {
		return err
	}
	pair, err := shape.ReadPair(c.cert, c.key)
	if c.tried = changed; err == nil {
		c.loaded, c.logged = &pair, ""
	}
	return err
}

func (c *certificate) times() (all [2]time.Time, err error) {
	for i, name := range []string{c.cert, c.key} {
		info, err := os.Stat(name)
		if err != nil {
			return all, err
		}
		all[i] = info.ModTime()
	}
	return all, nil
}
