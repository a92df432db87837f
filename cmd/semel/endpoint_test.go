package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/semel-go/semel/internal/freeport"
)

type receivedCall struct{ id, key, attempt string }

// endpoint is an HTTP endpoint that records its calls and also sends each call to arrived.
type endpoint struct {
	*httptest.Server
	callArrivals chan receivedCall

	mu    sync.Mutex // guards the following fields
	calls []receivedCall
}

// newEndpoint returns an endpoint. The function answer writes the response to a call; its parameter before is
// the number of earlier calls for the same message.
func newEndpoint(answer func(w http.ResponseWriter, r *http.Request, body []byte, before int)) *endpoint {
	e := &endpoint{callArrivals: make(chan receivedCall, 1<<16)}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client closed the connection before the request was complete
		}
		c := receivedCall{r.Header.Get("ce-id"), r.Header.Get("Idempotency-Key"), r.Header.Get("Semel-Attempt")}
		e.mu.Lock()
		before := len(slices.DeleteFunc(slices.Clone(e.calls), func(other receivedCall) bool { return other.id != c.id }))
		e.calls = append(e.calls, c)
		e.mu.Unlock()
		e.callArrivals <- c
		answer(w, r, body, before)
	}))
	return e
}

// receivedCalls returns all calls that the endpoint has received until now.
func (e *endpoint) receivedCalls() []receivedCall {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.calls)
}

// The script command "answers" starts an endpoint and sets ENDPOINT to its URL. The request's body lists the
// responses: {"answers": ["503 7", "302", 204]} has the statuses for successive calls of the message. A
// number after the status is the value of Retry-After. When the list is at its end, the endpoint repeats the
// last response. The script command "calls" checks the calls to the endpoint.
func startEndpoint(ts *testscript.TestScript, _ bool, _ []string) {
	e := newEndpoint(func(w http.ResponseWriter, _ *http.Request, body []byte, before int) {
		var b struct{ Answers []any }
		if json.Unmarshal(body, &b) != nil || len(b.Answers) == 0 {
			b.Answers = []any{204}
		}
		status, after, _ := strings.Cut(fmt.Sprint(b.Answers[min(before, len(b.Answers)-1)]), " ")
		code, _ := strconv.Atoi(status)
		if after != "" {
			w.Header().Set("Retry-After", after)
		}
		w.Header().Set("Location", "http://127.0.0.1:1/")
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(code)
		if code >= 400 {
			_, _ = io.WriteString(w, `{"title": "No such card", "detail": "hunter2"}`)
		}
	})
	ts.Defer(e.Close)
	ts.Setenv("ENDPOINT", e.URL)
	endpoints.Store(ts, e)
}

// endpoints maps scripts to their endpoints. endpoints is a sync.Map, because scripts run concurrently.
var endpoints sync.Map

// The script command "calls TEXT" compares the calls that the endpoint has received with TEXT. Each call is
// "id attempt"; calls are sorted by id and attempt. All calls for one message must have the same key. Calls
// for different messages must have different keys.
func compareCalls(ts *testscript.TestScript, _ bool, args []string) {
	e, _ := endpoints.Load(ts)
	keys, ids, all := map[string]string{}, map[string]string{}, []string{}
	for _, c := range e.(*endpoint).receivedCalls() {
		if known, other := keys[c.id], ids[c.key]; c.key == "" {
			c.id += " without key" // the policy says that calls have no key
		} else if known != "" && known != c.key || other != "" && other != c.id {
			ts.Fatalf("message %s has the keys %s and %s; %s is of message %s, too", c.id, known, c.key, c.key, other)
		}
		keys[c.id], ids[c.key] = c.key, c.id
		all = append(all, c.id+" "+c.attempt)
	}
	slices.Sort(all)
	if got := strings.Join(all, ", "); got != args[0] {
		ts.Fatalf("the calls are %q, and should be %q", got, args[0])
	}
}

// freePort returns a port of this machine on which no process listens.
func freePort(t testing.TB) string {
	t.Helper()
	port, err := freeport.Choose()
	if err != nil {
		t.Fatal(err)
	}
	return strconv.Itoa(port)
}
