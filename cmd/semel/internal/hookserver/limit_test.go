package hookserver

import (
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// chanListener is a listener that accepts connections from a channel.
type chanListener struct {
	net.Listener
	connections chan net.Conn
}

func (h chanListener) Accept() (net.Conn, error) {
	c, more := <-h.connections
	if !more {
		return nil, net.ErrClosed
	}
	return c, nil
}

func TestPlaces(t *testing.T) {
	t.Run("F3_there_are_so_many_and_who_has_stood_idle_for_the_longest_time_makes_room", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			from := chanListener{connections: make(chan net.Conn, 3)}
			for range 3 {
				_, c := net.Pipe()
				from.connections <- c
			}
			close(from.connections)
			l, accepted := newLimitedListener(from, 2), make(chan net.Conn, 3)
			go func() {
				for c, err := l.Accept(); err == nil; c, err = l.Accept() {
					accepted <- c
				}
			}()
			synctest.Wait()
			if len(accepted) != 2 {
				t.Fatalf("%d have a place", len(accepted))
			}
			first, second := <-accepted, <-accepted
			l.state(second, http.StateIdle)
			<-time.After(minIdleTime / 2)
			l.state(first, http.StateIdle)
			<-time.After(minIdleTime / 4)
			synctest.Wait()
			if len(accepted) != 0 {
				t.Error("a connection that has just been used was closed")
			}
			<-time.After(minIdleTime / 2)
			synctest.Wait()
			if len(accepted) != 1 {
				t.Errorf("%d further connections have a place", len(accepted))
			}
			if err := second.SetDeadline(time.Now()); err == nil {
				t.Error("the longest idle connection is still open")
			}
			if err := first.SetDeadline(time.Now()); err != nil {
				t.Errorf("another connection was closed: %v", err)
			}
		})
	})
	t.Run("F3_a_client_has_so_long_for_its_request", func(t *testing.T) {
		s := openServer(t, Options{}).server
		if s.ReadHeaderTimeout != headerWithin || s.ReadTimeout != readWithin || s.IdleTimeout != idleWithin || s.HTTP2.MaxConcurrentStreams != mostStreams {
			t.Errorf("the limits are %v for headers, %v for all, %v idle and %d streams", s.ReadHeaderTimeout, s.ReadTimeout, s.IdleTimeout, s.HTTP2.MaxConcurrentStreams)
		}
	})
	t.Run("F3_a_stranger_who_looks_for_a_path_keeps_no_connection", func(t *testing.T) {
		s := openServer(t, Options{})
		c := dial(t, s)
		_ = c.SetDeadline(time.Now().Add(idleWithin / 2))
		if got := sendRequest(t, c, getRequest); got != 404 {
			t.Errorf("%d", got)
		}
		if n, err := c.Read(make([]byte, 1)); n != 0 || err == nil {
			t.Errorf("%d bytes, %v", n, err)
		} else if timeout, is := err.(net.Error); is && timeout.Timeout() {
			t.Error("the connection stays open")
		}
	})
}
