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

func within(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), d)
}

// limited serves a connection when one of so many places is free. Where none is, those that
// stand idle make room, the longest idle first: providers send from many machines, each of
// which keeps its connection, and what waits for longer than a provider does is lost where
// that never sends again.
type limited struct {
	net.Listener
	free   chan struct{}
	closed chan struct{}
	once   sync.Once

	mutex sync.Mutex
	idle  *list.List                 // of stander, the longest idle first; guarded by mutex
	at    map[net.Conn]*list.Element // guarded by mutex
}

// stander is a connection on which nothing is under way, and since when.
type stander struct {
	net.Conn
	since time.Time
}

// standsFor is how long a connection stands idle before it makes room: a new one of HTTP/2
// does until its first request is there.
const standsFor = time.Second

func limit(l net.Listener, most int) *limited {
	return &limited{Listener: l, free: make(chan struct{}, most), closed: make(chan struct{}), idle: list.New(), at: map[net.Conn]*list.Element{}}
}

// Accept implements net.Listener.
func (l *limited) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if !l.place() {
		_ = c.Close()
		return nil, net.ErrClosed
	}
	return &counted{Conn: c, release: sync.OnceFunc(func() { <-l.free })}, nil
}

// place waits for a free place, and reports whether there was one before the end.
func (l *limited) place() bool {
	select {
	case l.free <- struct{}{}:
		return true
	default:
	}
	look := time.NewTicker(standsFor / 20)
	defer look.Stop()
	for {
		if c := l.longestIdle(); c != nil {
			cut(c)
		}
		select {
		case l.free <- struct{}{}:
			return true
		case <-l.closed:
			return false
		case <-look.C:
		}
	}
}

// longestIdle is who makes room, nil if nobody has stood for long enough.
func (l *limited) longestIdle() net.Conn {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	first := l.idle.Front()
	if first == nil || time.Since(first.Value.(stander).since) < standsFor {
		return nil
	}
	c := l.idle.Remove(first).(stander).Conn
	delete(l.at, c)
	return c
}

// state is told of each change of a connection.
func (l *limited) state(c net.Conn, s http.ConnState) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if e := l.at[c]; e != nil {
		l.idle.Remove(e)
		delete(l.at, c)
	}
	if s == http.StateIdle {
		l.at[c] = l.idle.PushBack(stander{c, time.Now()})
	}
}

// cut closes a connection without a word, which may wait.
func cut(c net.Conn) {
	if t, is := c.(*tls.Conn); is {
		c = t.NetConn()
	}
	_ = c.Close()
}

// Close implements net.Listener.
func (l *limited) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// counted is a connection that frees its place once.
type counted struct {
	net.Conn
	release func()
}

// Close implements net.Conn.
func (c *counted) Close() error {
	defer c.release()
	return c.Conn.Close()
}

// certificate is that of two files, read again when one of them has changed.
type certificate struct {
	cert, key string
	logger    *slog.Logger

	mutex  sync.Mutex
	loaded *tls.Certificate // guarded by mutex
	tried  [2]time.Time     // when the files were changed that were read last; guarded by mutex
	told   string           // why they could not be read, as it was told; guarded by mutex
}

func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	switch err := c.load(); {
	case err == nil:
	case c.loaded == nil:
		return nil, fmt.Errorf("tls: %w: write a certificate and its key there, in PEM", err)
	case err.Error() != c.told: // once, and not for each stranger who knocks
		c.told = err.Error()
		c.logger.Error("the certificate of webhooks was changed and cannot be read; the one before is shown", "error", err)
	}
	return c.loaded, nil
}

// load reads the files if they have changed since they were read. mutex is held.
func (c *certificate) load() error {
	changed, err := c.times()
	if err != nil || c.loaded != nil && changed == c.tried {
		return err
	}
	pair, err := shape.ReadPair(c.cert, c.key)
	if c.tried = changed; err == nil {
		c.loaded, c.told = &pair, ""
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
