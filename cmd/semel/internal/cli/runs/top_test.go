package runs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/semel-go/semel/cmd/semel/internal/metrics"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/cmd/semel/internal/terminal"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

// fakeStore is a store for tests of `semel top`.
type fakeStore struct {
	admin.Controls
	names []string
	rows  map[store.RowState]map[string]sqlstore.SampledRows
	wants map[string]admin.Control
	err   error
	unfit error
	hangs bool // does not respond until ctx ends
}

func (s *fakeStore) Unfit(context.Context, error) error { return s.unfit }

func (s *fakeStore) Name() string { return "shop" }
func (s *fakeStore) Consumers(ctx context.Context) ([]string, error) {
	if s.hangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return s.names, s.err
}
func (s *fakeStore) Control(_ context.Context, name string) (admin.Control, error) {
	return s.wants[name], s.err
}
func (s *fakeStore) SampleRows(_ context.Context, state store.RowState) (sqlstore.Sampled, error) {
	return sqlstore.Sampled{Consumers: s.rows[state], AtLeast: state == store.StateParked}, s.err
}

// topHistory is a policy with one consumer and an address for metrics.
const topHistory = `version: 1
listen: 127.0.0.1:9464
stores: {shop: {sqlite: {path: shop.db}}}
sources: {orders: {file: {path: orders.jsonl, format: json}}}
consumers:
  history:
    from: orders
    store: shop
    identity: {id: ["body:/order", "body:/version"], source: "body:/from?"}
    handler: {sql: {statements: [insert into history values (1)]}}
`

func topPolicy(t *testing.T) *policy.Policy {
	t.Helper()
	p, faults := policy.Parse("semel.yaml", []byte(topHistory), os.LookupEnv)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	return p
}

// watch returns the state of `semel top` for a store, and for a process that has applied *applied messages.
func watch(t *testing.T, s *fakeStore, applied *int) (*watcher, *bytes.Buffer) {
	t.Helper()
	var out bytes.Buffer
	now := time.Date(2026, 1, 7, 9, 30, 0, 0, time.UTC)
	return &watcher{
		CLI: &command.CLI{Streams: command.Streams{Out: terminal.Text(&out), Err: io.Discard, Width: 80}}, policy: topPolicy(t), stores: []topStore{s},
		now: func() time.Time { now = now.Add(2 * time.Second); return now },
		call: func(_ context.Context, _ policy.Listen, _, path string) (*http.Response, error) {
			if applied == nil {
				return nil, errors.New("connection refused")
			}
			text := `{"ok":false,"consumers":{"history":{"ok":false,"reason":"the store is \u001b[31maway","last_error":{"at":"2026-01-07T09:29:00Z","event":"retry","error":"no such account"}}}}`
			if path == metrics.PathMetrics {
				text = "# TYPE semel_effects_total counter\nsemel_effects_total{consumer=\"history\"} " + map[bool]string{true: "100", false: "125"}[*applied == 0] + "\n" +
					"# TYPE semel_broker_lag_messages gauge\nsemel_broker_lag_messages{consumer=\"history\"} 4711\n"
				*applied++
			}
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(text))}, nil
		},
	}, &out
}

func fullShelf() *fakeStore {
	return &fakeStore{
		names: []string{"history", "a consumer with a very long name that somebody gave it"},
		rows: map[store.RowState]map[string]sqlstore.SampledRows{
			store.StateReceived: {"history": {Rows: 12, Oldest: 90 * time.Second}},
			store.StateBlocked:  {"history": {Rows: 3, Oldest: 10 * time.Minute}},
			store.StateParked:   {"history": {Rows: 7}},
		},
		wants: map[string]admin.Control{"a consumer with a very long name that somebody gave it": {Paused: true, Pause: admin.Order{By: "anna", Why: "bank \x1b[2Jclosed"}}},
	}
}

func TestTopFitsTheTerminal(t *testing.T) {
	t.Run("trap_T106_every_text_of_a_frame_is_legible_at_80_and_at_60_columns", func(t *testing.T) {
		applied := 0
		w, _ := watch(t, fullShelf(), &applied)
		w.look(t.Context())
		l := w.look(t.Context())
		for columns, want := range map[int][]string{
			80: {"CONSUMER", "STATE", "RATE/S", "not ready    12.5  4711  15", "10m0s", "paused"},
			60: {"not ready", "12.5", "4711", "15 10m0s 7+"},
		} {
			frame := l.frame(columns, sortState{})
			text := strings.Join(frame, "\n")
			t.Logf("%d columns:\n%s", columns, text)
			for _, line := range frame {
				if terminal.Columns(line) > columns {
					t.Errorf("%d columns: %q", terminal.Columns(line), line)
				}
			}
			if strings.ContainsRune(text, '\x1b') {
				t.Errorf("a terminal would obey %q", text)
			}
			plain := strings.Join(strings.Fields(text), " ")
			for _, part := range want {
				if !strings.Contains(plain, strings.Join(strings.Fields(part), " ")) {
					t.Errorf("%d columns: %q is missing in\n%s", columns, part, text)
				}
			}
		}
	})
}

func TestTopCutsWhatStandsBesideTheTable(t *testing.T) {
	t.Run("trap_T106_at_any_width", func(t *testing.T) {
		l := &topLook{Notes: []string{"the store shop does not answer: " + strings.TrimSpace(strings.Repeat("connection refused ", 20))}}
		for _, columns := range []int{10, 20, 40} {
			for _, line := range l.frame(columns, sortState{}) {
				if terminal.Columns(line) > columns {
					t.Errorf("%d columns: %q", columns, line)
				}
			}
		}
		if frame := l.frame(terminal.Unlimited, sortState{}); len(frame) != 3 || frame[2] != l.Notes[0] {
			t.Errorf("without a width: %q", frame)
		}
	})
}

func TestTopShowsTheLastError(t *testing.T) {
	now := time.Date(2026, 1, 7, 9, 30, 0, 0, time.UTC)
	of := func(ago time.Duration) *metrics.LastError {
		return &metrics.LastError{At: now.Add(-ago), Event: "parked", Error: "the account\x1b[2J " + strings.Repeat("does not exist ", 20)}
	}
	t.Run("I0_with_its_age_cut_to_the_width", func(t *testing.T) {
		l := &topLook{At: now, Consumers: []topView{{Consumer: "billing", LastError: of(95 * time.Second)}, {Consumer: "shipping", Error: "the bank is closed", LastError: of(time.Hour)}, {Consumer: "well"}}}
		for i := range l.Consumers {
			l.Consumers[i].setHealth(metrics.ConsumerHealth{OK: true, Reason: l.Consumers[i].Error, LastError: l.Consumers[i].LastError})
		}
		for columns, want := range map[int]string{80: "1m35s ago, parked", 160: "1m35s ago, parked: the account"} {
			frame := l.frame(columns, sortState{})
			text := strings.Join(frame, "\n")
			for _, line := range frame {
				if terminal.Columns(line) > columns {
					t.Errorf("%d columns: %q", terminal.Columns(line), line)
				}
			}
			if !strings.Contains(text, want) || !strings.Contains(text, "the bank is closed") || strings.Contains(text, "1h ago") || strings.ContainsRune(text, '\x1b') {
				t.Errorf("%d columns: %q is not in\n%s", columns, want, text)
			}
		}
		if said := lastError(of(26*time.Hour+5*time.Minute+3*time.Second), now); !strings.HasPrefix(said, "26h ago") {
			t.Errorf("%s", said)
		}
	})
}

func TestTopSortsAndScrollsByKeys(t *testing.T) {
	l := &topLook{Consumers: []topView{{Consumer: "a"}, {Consumer: "b", Waiting: 5}, {Consumer: "c", Waiting: 1}}}
	var s sortState
	for range 3 { // change the sort order from name to rate, lag and waiting
		s.press(keyRight, 3)
	}
	frame := l.frame(80, s)
	if !strings.HasSuffix(frame[0], "by waiting") || !strings.HasPrefix(frame[2], "b") || !strings.HasPrefix(frame[4], "a") {
		t.Errorf("%q", frame)
	}
	keys := make(chan string, 8)
	readKeys(&keyReader{[]string{"\x1b[B", "\x1b[A", "\x1b[D", "x", "q"}}, keys)
	for key := range keys {
		if s.press(key, 3) != (key == keyQuit) {
			t.Error(key)
		}
	}
	if s.orderIndex != 2 || s.top != 0 {
		t.Errorf("%+v", s)
	}
	var out bytes.Buffer
	sc := &screen{out: &out}
	if err := sc.draw(append(frame, keysLine), 5, 9); err != nil || strings.Count(out.String(), "\r\n") != 4 || !strings.Contains(out.String(), "q: end") {
		t.Errorf("%v, %q", err, out.String())
	}
}

// keyReader is a terminal in which each read returns one key.
type keyReader struct{ all []string }

func (c *keyReader) Read(b []byte) (int, error) {
	if len(c.all) == 0 {
		return 0, io.EOF
	}
	n := copy(b, c.all[0])
	c.all = c.all[1:]
	return n, nil
}

func TestTopWithoutATerminalIsOneTableAndAnEnd(t *testing.T) {
	w, out := watch(t, fullShelf(), nil)
	if err := w.printOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	if !strings.Contains(text, "a consumer with a very long name that somebody gave it") || !strings.Contains(text, "rates, lag and readiness are not known: connection refused") || strings.Contains(text, "\x1b") || strings.Contains(text, "q: end") {
		t.Errorf("%s", text)
	}
	w, out = watch(t, fullShelf(), new(int))
	w.JSON = true
	if err := w.printOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	var l topLook
	if err := json.Unmarshal(out.Bytes(), &l); err != nil || len(l.Consumers) != 2 || l.Consumers[0].Waiting != 15 || *l.Consumers[0].Lag != 4711 || l.Consumers[0].LastError.Error != "no such account" {
		t.Errorf("%v, %s", err, out)
	}
}

func TestTopOfAStoreThatIsDownNamesItsConsumers(t *testing.T) {
	w, out := watch(t, &fakeStore{err: errors.New("no route to host")}, nil)
	err := w.printOnce(t.Context())
	if !errors.Is(err, errNoStore) {
		t.Error(err)
	}
	if text := out.String(); !strings.Contains(text, "store shop cannot be read: no route to host") || !strings.Contains(text, "history") || !strings.Contains(text, "?") {
		t.Errorf("%s", text)
	}
	t.Run("trap_T106_what_to_do_is_said_whole_at_80_columns", func(t *testing.T) {
		w, _ := watch(t, &fakeStore{err: errors.New("EOF"), unfit: errors.New("store shop: database shop at 127.0.0.1:5432: connection refused: no server listens there; start the server, or correct host and port in the url")}, nil)
		frame := w.look(t.Context()).frame(80, sortState{})
		if text := strings.Join(strings.Fields(strings.Join(frame, " ")), " "); !strings.Contains(text, "start the server, or correct host and port in the url") {
			t.Errorf("%q", frame)
		}
	})
}

func TestTopEndsAtAKeyWhileAStoreHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, out := watch(t, &fakeStore{hangs: true}, nil)
		keys, began := make(chan string, 1), time.Now()
		keys <- keyQuit
		err := w.show(t.Context(), &screen{out: out, keys: keys, size: func(int) (int, int) { return 80, 24 }}, time.Second)
		if waited := time.Since(began); err != nil || waited != 0 || !strings.Contains(out.String(), "are asked") || !strings.Contains(out.String(), "q: end") {
			t.Errorf("%v, after %s: %q", err, waited, out.String())
		}
	})
}

// stuckCloser is a closer whose Close does not return until the test allows it.
type stuckCloser struct{ until chan struct{} }

func (e stuckCloser) Close() error {
	<-e.until
	return nil
}

func TestTopIsLeftWhereAStoreDoesNotClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := stuckCloser{make(chan struct{})}
		defer close(stuck.until)
		began := time.Now()
		closeWithTimeout(stuck)
		if waited := time.Since(began); waited != leaveWithin {
			t.Errorf("it took %s", waited)
		}
	})
}

func TestAStoreThatDidNotAnswerIsNotAskedAgain(t *testing.T) {
	p, err := policy.Bare("postgres://shop@127.0.0.1:1/shop") // port 1 rejects connections
	if err != nil {
		t.Fatal(err)
	}
	c := &command.CLI{Streams: command.Streams{Err: io.Discard}}
	c.Logs.Level = "error"
	a, err := c.Open(p, "", false)
	if err != nil {
		t.Fatal(err)
	}
	defer closeWithTimeout(a)
	said := storesOf(a)[0].Unfit(t.Context(), fmt.Errorf("consumers: %w", context.DeadlineExceeded))
	if said == nil || !strings.Contains(said.Error(), "the server did not answer in time; check whether it hangs") {
		t.Errorf("%v", said)
	}
}

func TestTopWithoutConsumersSaysSo(t *testing.T) {
	w, out := watch(t, &fakeStore{}, nil)
	w.policy = &policy.Policy{}
	if err := w.printOnce(t.Context()); err != nil || !strings.Contains(out.String(), "there are no consumers") {
		t.Errorf("%v, %s", err, out)
	}
}
