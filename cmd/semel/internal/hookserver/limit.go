package hookserver

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"
)

func within(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), d)
}

// limited accepts a connection when one of so many is free.
type limited struct {
	net.Listener
	free   chan struct{}
	closed chan struct{}
	once   sync.Once
}

func limit(l net.Listener, most int) net.Listener {
	return &limited{Listener: l, free: make(chan struct{}, most), closed: make(chan struct{})}
}

// Accept implements net.Listener.
func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.free <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.free
		return nil, err
	}
	return &counted{Conn: c, release: sync.OnceFunc(func() { <-l.free })}, nil
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

	mutex   sync.Mutex
	loaded  *tls.Certificate // guarded by mutex
	changed [2]time.Time     // guarded by mutex
}

func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	changed, err := c.times()
	if err == nil && (c.loaded == nil || changed != c.changed) {
		var pair tls.Certificate
		if pair, err = tls.LoadX509KeyPair(c.cert, c.key); err == nil {
			c.loaded, c.changed = &pair, changed
		}
	}
	switch {
	case err != nil && c.loaded == nil:
		return nil, fmt.Errorf("tls: %w: write a certificate and its key there, in PEM", err)
	case err != nil:
		c.logger.Error("the certificate of webhooks was changed and cannot be read; the one before is shown", "error", err)
	}
	return c.loaded, nil
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
