package httphandler

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel"
)

const (
	unknown = "is unknown"
	unsent  = "nothing was sent"
)

func TestIncompleteResponses(t *testing.T) {
	hangs := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}
	begins := func(status int, length string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", length)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, "x")
			_ = http.NewResponseController(w).Flush()
			hangs(w, r)
		}
	}
	switches := func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n")
		_, _ = io.Copy(io.Discard, conn) // the server sends no further bytes
		_ = conn.Close()
	}
	breaks := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, "x")
		panic(http.ErrAbortHandler)
	}
	breaksLate := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(mostRead+100))
		_, _ = w.Write(make([]byte, mostRead))
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	const short = 500 * time.Millisecond // long enough to send a request, even on a busy machine
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		words  string
		time   time.Duration
	}{
		"E3_trap_T76_nothing_in_time_is_an_unknown_outcome": {hangs, "no complete response arrived within 500ms", short},
		"an_answer_that_never_ends":                         {begins(200, "100"), "no complete response arrived within 500ms", short},
		"a_refusal_that_never_ends":                         {begins(400, "100"), "no complete response arrived within 500ms", short},
		"E3_a_handler_that_dies_in_its_answer":              {breaks, "the connection ended before the response was complete", 0},
		"E3_a_handler_that_dies_after_a_MiB":                {breaksLate, "the connection ended before the response was complete", 0},
		"E3_a_handler_that_dies_before_its_answer":          {rawResponse(""), "the connection ended before the response was complete", 0},
		"a_handler_that_dies_in_its_headers":                {rawResponse("HTTP/1.1 200 OK\r\nContent-"), "the response is not valid HTTP", 0},
		"E3_another_protocol_that_nobody_asked_for":         {switches, "the response is not valid HTTP", 0},
		"a_status_below_all":                                {rawResponse("HTTP/1.1 099 None\r\nContent-Length: 0\r\n\r\n"), "the response is not valid HTTP", 0},
		"garbage":                                           {rawResponse(secretText + " is no answer\r\n\r\n"), "the response is not valid HTTP", 0},
		"a_status_that_is_none":                             {rawResponse("HTTP/1.1 " + secretText + " OK\r\n\r\n"), "the response is not valid HTTP", 0},
		"a_header_that_is_none":                             {rawResponse("HTTP/1.1 200 OK\r\n" + secretText + "\r\n\r\n"), "the response is not valid HTTP", 0},
		"a_length_that_is_none":                             {rawResponse("HTTP/1.1 200 OK\r\nContent-Length: " + secretText + "\r\n\r\n"), "the response is not valid HTTP", 0},
		"headers_without_bound":                             {rawResponse("HTTP/1.1 200 OK\r\nX-A: " + strings.Repeat("a", mostHeaders) + "\r\n\r\n"), "the response is not valid HTTP", 0},
		"chunks_that_are_none":                              {rawResponse("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + secretText + "\r\n"), "the response is not valid HTTP", 0},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEndpoint(t, c.answer)
			h := e.handler(t)
			if c.time > 0 {
				h = e.handler(t, withTimeout(c.time))
			}
			h.wantError(t, semel.DecideUnknown, c.words)
			h.wantError(t, semel.DecideUnknown, unknown)
			h.wantError(t, semel.DecideUnknown, "another call uses the same key")
			if n := e.calls.Load(); n != 3 {
				t.Errorf("%d calls for 3 attempts", n)
			}
		})
	}
}

func TestLongResponses(t *testing.T) {
	long := func(bytes int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, bytes)) }
	}
	for name, c := range map[string]struct {
		bytes int
		kept  bool
	}{
		"none_of_it":                   {0, true},
		"its_first_MiB":                {mostRead, true},
		"more_ends_the_connection":     {mostRead + 100, false},
		"a_megabyte_more_than_is_read": {2 * mostRead, false},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEndpoint(t, long(c.bytes))
			h := e.handler(t)
			for range 3 {
				h.wantError(t, 0, "")
			}
			if n := e.connections.Load(); (n < 3) != c.kept { // on a busy machine, the transport sometimes opens another connection
				t.Errorf("%d connections for 3 calls; kept: %t", n, c.kept)
			}
		})
	}
}

func TestConnectionsAreBounded(t *testing.T) {
	inside := make(chan bool, 100)
	e := newEndpoint(t, func(_ http.ResponseWriter, r *http.Request) {
		inside <- true
		defer func() { <-inside }()
		if len(inside) > 4 {
			t.Error("more concurrent calls than connections")
		}
	})
	h := e.handler(t)
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() { h.wantError(t, 0, "") })
	}
	all.Wait()
	// On a busy machine, the transport sometimes opens another connection. The test has already checked the
	// number of concurrent connections.
	if n := e.connections.Load(); n > 20 {
		t.Errorf("%d connections for 100 calls: they are not reused", n)
	}
}

func TestTheTimeoutOfACallStartsWhenItIsSent(t *testing.T) {
	e := newEndpoint(t, func(http.ResponseWriter, *http.Request) {})
	h := e.handler(t, func(c *Config) { c.Connections, c.Timeout = 1, time.Nanosecond })
	h.callSlots <- struct{}{} // occupy the connection, as a call in progress does
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	class, text := decisionOf(t, h.Handle(ctx, message()))
	if !strings.Contains(text, "nothing was sent") || !strings.Contains(text, "the call was cancelled by this process") || e.calls.Load() > 0 {
		t.Errorf("%v, %q, %d calls", class, text, e.calls.Load())
	}
}

func TestACallThatIsCancelled(t *testing.T) {
	e := newEndpoint(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	h := e.handler(t, func(c *Config) {})
	time.AfterFunc(50*time.Millisecond, func() { cancel(errors.New(secretText)) })
	_, text := decisionOf(t, h.Handle(ctx, message()))
	if !strings.Contains(text, "the call was cancelled by this process") {
		t.Errorf("%q", text)
	}
}

func TestAnUnreachableEndpoint(t *testing.T) {
	t.Run("E3_where_nobody_listens_nothing_was_sent", func(t *testing.T) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		_ = listener.Close()
		h := handlerOf(t, "http://"+listener.Addr().String())
		h.wantError(t, semel.DecideRetry, unsent)
		h.wantError(t, semel.DecideRetry, "connection refused")
	})
	t.Run("E3_a_kept_connection_that_was_closed_makes_no_second_call", func(t *testing.T) {
		newEndpoint(t, func(http.ResponseWriter, *http.Request) {}).testIdleClose(t)
	})
	t.Run("E3_a_call_that_was_sent_on_a_kept_connection_is_not_repeated_in_secret", func(t *testing.T) {
		var dies atomic.Bool
		e := newEndpoint(t, func(w http.ResponseWriter, r *http.Request) {
			if _, _ = io.Copy(io.Discard, r.Body); dies.Load() {
				panic(http.ErrAbortHandler)
			}
		})
		h := e.handler(t)
		h.wantError(t, 0, "")
		dies.Store(true)
		h.wantError(t, semel.DecideUnknown, unknown)
		if n := e.calls.Load(); n != 2 {
			t.Errorf("%d calls for 2 attempts", n)
		}
	})
	t.Run("the_same_of_an_empty_body", func(t *testing.T) {
		var dies atomic.Bool
		e := newEndpoint(t, func(http.ResponseWriter, *http.Request) {
			if dies.Load() {
				panic(http.ErrAbortHandler)
			}
		})
		h, m := e.handler(t), message()
		m.Body = nil
		for range 2 {
			_ = h.Handle(t.Context(), m)
			dies.Store(true)
		}
		if n := e.calls.Load(); n != 2 {
			t.Errorf("%d calls for 2 attempts", n)
		}
	})
}

func TestUnwrittenBytesDoNotCountAsSent(t *testing.T) {
	here, there := net.Pipe()
	_ = there.Close()
	conn := &countingConn{Conn: here}
	var c call
	c.conn.Store(conn)
	if n, err := conn.Write([]byte("POST")); n != 0 || err == nil || c.hasSent() {
		t.Errorf("%d bytes, %v, and it counts as sent: %t", n, err, c.hasSent())
	}
}

// testIdleClose tests a server that closes each idle connection. The next call notices the closed connection
// either before it sends anything, and then uses another connection, or after it has sent bytes.
func (e *endpoint) testIdleClose(t *testing.T, changes ...func(*Config)) {
	t.Helper()
	h, done, before := e.handler(t, changes...), int64(0), e.calls.Load()
	const attempts = 200
	for range attempts {
		switch d, text := decisionOf(t, h.Handle(t.Context(), message())); {
		case d.Decision == 0:
			done++
		case d.Decision != semel.DecideUnknown || !strings.Contains(text, unknown):
			t.Errorf("%v: %q", d.Decision, text)
		}
		e.CloseClientConnections()
	}
	if n := e.calls.Load() - before; n < done || n > attempts || done < attempts/4 {
		t.Errorf("%d calls in %d attempts, %d responses", n, attempts, done)
	}
}

func TestCertificates(t *testing.T) {
	e := newUnstartedEndpoint(t, func(http.ResponseWriter, *http.Request) {})
	e.StartTLS()
	known := x509.NewCertPool()
	known.AddCert(e.Certificate())
	t.Run("one_of_a_known_authority_is_taken_and_its_connection_kept", func(t *testing.T) {
		h := e.handler(t, withTLS(&tls.Config{RootCAs: known}))
		for range 3 {
			h.wantError(t, 0, "")
		}
		if n := e.connections.Load(); n > 2 { // on a busy machine, the transport sometimes opens another connection
			t.Errorf("%d connections for 3 calls", n)
		}
	})
	t.Run("one_that_does_not_fit_is_told_and_nothing_was_sent", func(t *testing.T) {
		before := e.calls.Load()
		h := e.handler(t)
		h.wantError(t, semel.DecideRetry, "from an unknown authority")
		h.wantError(t, semel.DecideRetry, unsent)
		other := handlerOf(t, strings.Replace(e.URL, "127.0.0.1", "localhost", 1), withTLS(&tls.Config{RootCAs: known}))
		other.wantError(t, semel.DecideRetry, "its certificate is for another host")
		if n := e.calls.Load() - before; n != 0 {
			t.Errorf("%d calls", n)
		}
	})
	t.Run("an_endpoint_without_TLS_is_told", func(t *testing.T) {
		plain := newEndpoint(t, func(http.ResponseWriter, *http.Request) {})
		handlerOf(t, strings.Replace(plain.URL, "http:", "https:", 1)).wantError(t, semel.DecideRetry, "it does not speak TLS")
	})
	t.Run("a_certificate_of_this_side_that_is_missing_is_told", func(t *testing.T) {
		strict := newUnstartedEndpoint(t, func(http.ResponseWriter, *http.Request) {})
		strict.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
		strict.StartTLS()
		trust := &tls.Config{RootCAs: known}
		// With TLS 1.3, the client finishes the handshake before the server rejects the certificate, so the
		// request may already be sent.
		d, text := decisionOf(t, strict.handler(t, withTLS(trust)).Handle(t.Context(), message()))
		if d.Decision != semel.DecideUnknown && d.Decision != semel.DecideRetry || !strings.Contains(text, "certificate required") {
			t.Errorf("the decision is %v: %q", d.Decision, text)
		}
		with := trust.Clone()
		with.Certificates = strict.TLS.Certificates
		strict.handler(t, withTLS(with)).wantError(t, 0, "")
	})
	t.Run("E3_a_kept_connection_that_was_closed_makes_no_second_call", func(t *testing.T) {
		e.testIdleClose(t, withTLS(&tls.Config{RootCAs: known}))
	})
}
