package metrics

import (
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"
)

// mostConnections is the maximum number of connections to a Server. Clients connect without a token. Each
// connection needs a file descriptor, and stores and sources need file descriptors too.
const mostConnections = 256

// connectionLimit limits the connections of a server. A new connection is always accepted, because it may be
// a health probe. When the number of connections exceeds the limit, another connection is closed: the
// connection that has been idle for longest or, if none is idle, the connection that has been active for
// longest.
type connectionLimit struct {
	most int

	mutex sync.Mutex
	all   map[net.Conn]activity // guarded by mutex
}

// activity is the state of a connection. The field since is the time of the last change.
type activity struct {
	active bool
	since  time.Time
}

func newConnectionLimit(most int) *connectionLimit {
	return &connectionLimit{most: most, all: map[net.Conn]activity{}}
}

// onState implements the http.Server.ConnState hook.
func (c *connectionLimit) onState(conn net.Conn, state http.ConnState) {
	if ends := c.take(conn, state); ends != nil {
		if encrypted, is := ends.(*tls.Conn); is { // Close of a tls.Conn may wait for the peer
			ends = encrypted.NetConn()
		}
		_ = ends.Close()
	}
}

// take records a connection's state. If the number of connections exceeds the limit, take returns the
// connection to close, otherwise nil.
func (c *connectionLimit) take(conn net.Conn, state http.ConnState) net.Conn {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	_, known := c.all[conn]
	if state == http.StateClosed || state == http.StateHijacked || !known && state != http.StateNew { // an unknown connection that is not new was already removed
		delete(c.all, conn)
		return nil
	}
	c.all[conn] = activity{state == http.StateActive, time.Now()}
	if len(c.all) <= c.most {
		return nil
	}
	var ends net.Conn
	for other, p := range c.all {
		if of := c.all[ends]; other != conn && (ends == nil || of.active && !p.active || of.active == p.active && p.since.Before(of.since)) {
			ends = other
		}
	}
	delete(c.all, ends)
	return ends
}
