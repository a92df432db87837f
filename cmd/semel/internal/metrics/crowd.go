package metrics

import (
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"
)

// mostConnections is how many connections a Server holds. Each is a descriptor that stores and
// sources of the process could need, and to connect takes no token.
const mostConnections = 256

// crowd bounds the connections of a server. One too many is let in, since it may be a probe,
// and another ends: that which has said nothing for longest or, where all are being answered,
// that which is for longest.
type crowd struct {
	most int

	mutex sync.Mutex
	all   map[net.Conn]presence // guarded by mutex
}

// presence is what a connection does, and since when.
type presence struct {
	active bool
	since  time.Time
}

func newCrowd(most int) *crowd { return &crowd{most: most, all: map[net.Conn]presence{}} }

// onState is the http.Server.ConnState hook.
func (c *crowd) onState(conn net.Conn, state http.ConnState) {
	if ends := c.take(conn, state); ends != nil {
		if encrypted, is := ends.(*tls.Conn); is { // whose own Close may wait for the other side
			ends = encrypted.NetConn()
		}
		_ = ends.Close()
	}
}

// take notes a state, and returns the connection that has to end; nil: none.
func (c *crowd) take(conn net.Conn, state http.ConnState) net.Conn {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	_, known := c.all[conn]
	if state == http.StateClosed || state == http.StateHijacked || !known && state != http.StateNew { // it was sent away
		delete(c.all, conn)
		return nil
	}
	c.all[conn] = presence{state == http.StateActive, time.Now()}
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
