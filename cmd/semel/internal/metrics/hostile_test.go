package metrics

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestRecordingsAreNotWrittenForWebPages(t *testing.T) {
	wrote := 0
	s := openServer(t, Options{Loopback: true, Consumers: []string{"billing"}, Record: func(string) ([]string, error) { wrote++; return nil, nil }})
	for name, of := range map[string]struct {
		header, value string
		code, wrote   int
	}{
		"of a program":                {"", "", http.StatusOK, 1},
		"of a page":                   {"Sec-Fetch-Site", "cross-site", http.StatusForbidden, 0},
		"of a page in an old browser": {"Origin", "https://stranger.example", http.StatusForbidden, 0},
	} {
		wrote = 0
		r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1:9464"+PathRecord, nil)
		if of.header != "" {
			r.Header.Set(of.header, of.value)
		}
		w := httptest.NewRecorder()
		if s.server.Handler.ServeHTTP(w, r); w.Code != of.code || wrote != of.wrote {
			t.Errorf("%s: %d, and %d recordings", name, w.Code, wrote)
		}
	}
}

func TestATokenWithControlCharactersIsRejected(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	for _, text := range []string{"0123456789abcdef\x00", "0123456789\x1babcdef", "0123456789abcdef\n0123456789abcdef"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Token(file); err == nil || !strings.Contains(err.Error(), "holds no token") || strings.Contains(err.Error(), "0123") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// visitor is a connection that records whether it is closed.
type visitor struct {
	net.Conn
	ended bool
}

func (v *visitor) Close() error { v.ended = true; return nil }

func TestConnectionsAreBounded(t *testing.T) {
	var all []*visitor
	c := newConnectionLimit(3)
	meets := func(state http.ConnState) {
		v := &visitor{}
		all = append(all, v)
		c.onState(v, http.StateNew)
		c.onState(v, state)
	}
	synctest.Test(t, func(t *testing.T) {
		meets(http.StateActive)
		pass(time.Second)
		meets(http.StateIdle)
		pass(time.Second)
		meets(http.StateIdle)
		if all[0].ended || all[1].ended || all[2].ended {
			t.Fatal("a connection was closed below the limit")
		}
		pass(time.Second)
		for i, want := range []int{1, 2, 0} { // the limit closes the idle connections first, oldest before newer, and then the oldest active connection
			if meets(http.StateActive); !all[want].ended || all[len(all)-1].ended {
				t.Errorf("connection %d too many: connection %d was not closed", i+1, want)
			}
			pass(time.Second)
		}
		c.onState(all[0], http.StateActive) // the handler does not know yet that its connection was closed
		if len(c.all) != 3 {
			t.Errorf("%d are counted", len(c.all))
		}
		c.onState(all[5], http.StateClosed)
		if meets(http.StateActive); all[3].ended || all[4].ended {
			t.Error("a connection was closed although another had ended")
		}
	})
	t.Run("by_the_server", func(t *testing.T) {
		s := openServer(t, Options{Loopback: true, Consumers: []string{"billing"}})
		var first net.Conn
		for range mostConnections + 1 {
			conn, err := net.Dial("tcp", s.Address())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if first == nil {
				first = conn
			}
		}
		_ = first.SetReadDeadline(time.Now().Add(4 * time.Second)) // the deadline is earlier than the timeout of the request
		if _, err := first.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the oldest of too many connections was not closed: %v", err)
		}
	})
}

func TestAStoreThatCannotBeSampledIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		store := &fakeStore{}
		sampler := newSampler(store, slog.New(slog.NewTextHandler(&log, nil)))
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); sampler.work(ctx) }()
		synctest.Wait()
		looks := func(n int, down error) {
			store.failWith(down)
			pass(time.Duration(n) * sampleEvery)
		}
		looks(1, errors.New("one look of many"))
		looks(2, nil)
		looks(5, errors.New("no rights on semel_replays"))
		looks(2, nil)
		stop()
		<-ended
		text := log.String()
		if strings.Contains(text, "one look") || strings.Count(text, "no rights on semel_replays") != 1 || strings.Count(text, "sampled again") != 1 {
			t.Errorf("it says:\n%s", text)
		}
	})
}
