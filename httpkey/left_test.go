package httpkey_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/httpkey"
	"github.com/semel-go/semel/keystore"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

// connectionStore is a store whose batches use a connection until Commit or Rollback.
type connectionStore struct {
	*memstore.Store
	lent     atomic.Int64
	brokenBy error       // the AbortCause of every batch
	class    store.Class // the class of brokenBy
	commits  func()      // called before a commit
}

type lentBatch struct {
	store.Batch[*memstore.Tx]
	store *connectionStore
	over  bool
}

func (p *connectionStore) Begin(ctx context.Context, o store.TxOptions, marks []store.Mark) (store.Batch[*memstore.Tx], []store.Verdict, error) {
	b, verdicts, err := p.Store.Begin(ctx, o, marks)
	if err != nil {
		return b, verdicts, err
	}
	p.lent.Add(1)
	return &lentBatch{Batch: b, store: p}, verdicts, nil
}

func (p *connectionStore) Classify(error) store.Class { return p.class }

func (b *lentBatch) end() {
	if !b.over {
		b.over = true
		b.store.lent.Add(-1)
	}
}

func (b *lentBatch) Commit(ctx context.Context, e store.Ending) store.Result {
	defer b.end()
	if b.store.commits != nil {
		b.store.commits()
	}
	return b.Batch.Commit(ctx, e)
}

func (b *lentBatch) Rollback(ctx context.Context) {
	defer b.end()
	b.Batch.Rollback(ctx)
}

func (b *lentBatch) TxAborted() bool { return b.store.brokenBy != nil }

func (b *lentBatch) AbortCause() error { return b.store.brokenBy }

func (b *lentBatch) ClassifyHandler(_ context.Context, err error) store.Class {
	return b.store.Classify(err)
}

// newFixture returns a protected handler that uses this store.
func (p *connectionStore) newFixture(t *testing.T, handler http.HandlerFunc) *fixture {
	t.Helper()
	p.Store = memstore.New()
	s, c := &fixture{store: p.Store}, config()
	c.Observe = func(o httpkey.Observation) { s.seen = append(s.seen, o) }
	g, err := httpkey.New(p, c)
	if err != nil {
		t.Fatal(err)
	}
	s.Guard, s.handler = g, g.ProtectFunc(handler)
	return s
}

func TestAHandlerThatEndsItsGoroutineGivesTheConnectionBack(t *testing.T) {
	p := &connectionStore{}
	s := p.newFixture(t, func(http.ResponseWriter, *http.Request) { runtime.Goexit() })
	wantProblem(t, s.post(`"k"`, "tea"), 500, "handler-failed")
	if n := p.lent.Load(); n != 0 {
		t.Errorf("%d connections are lent", n)
	}
}

func TestAnErrorThatAHandlerIgnoredIsReported(t *testing.T) {
	for name, c := range map[string]struct {
		class  store.Class
		status int
		after  string
	}{
		"of its statement":          {store.ClassPermanent, 500, ""},
		"of a row that others hold": {store.ClassContended, 503, "1"},
		"of a lost connection":      {store.ClassDown, 503, "1"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &connectionStore{brokenBy: errAway, class: c.class}
			s := p.newFixture(t, effect)
			w := s.post(`"k"`, "tea")
			wantProblem(t, w, c.status, "not-committed")
			if err := s.seen[0].Err; w.Header().Get("Retry-After") != c.after || err == nil || !strings.Contains(err.Error(), errAway.Error()) {
				t.Errorf("%v, told as %v", w.Header(), err)
			}
			if n := p.lent.Load(); n != 0 || s.countEffects() != "0" {
				t.Errorf("%d connections are in use, %s effects", n, s.countEffects())
			}
		})
	}
}

func TestWritesAfterTheHandlerHasReturnedAreIgnored(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{
		"to an answer":    effect,
		"to an empty one": func(http.ResponseWriter, *http.Request) {},
	} {
		t.Run(name, func(t *testing.T) {
			var to http.ResponseWriter
			p := &connectionStore{}
			s := p.newFixture(t, func(w http.ResponseWriter, r *http.Request) {
				to = w
				handler(w, r)
			})
			p.commits = func() { // a goroutine that the handler has started may do this
				to.WriteHeader(http.StatusTeapot)
				if n, err := io.WriteString(to, strings.Repeat("late", 100_000)); n != 0 || err == nil {
					t.Errorf("it is written: %d, %v", n, err)
				}
			}
			first, second := s.post(`"k"`, "tea"), s.post(`"k"`, "tea")
			if first.Code != second.Code || first.Body.String() != second.Body.String() || first.Code/100 != 2 || second.Header().Get(httpkey.ReplayedHeader) != "true" {
				t.Errorf("the first is %d %s, the second %d %s", first.Code, first.Body, second.Code, second.Body)
			}
		})
	}
}

// losingStore is a store of idempotency keys that loses the first claims before their leases end.
type losingStore struct {
	*memstore.Keys
	claims int
}

func (l *losingStore) EndKey(ctx context.Context, key semel.Key, t store.Token, e keystore.Ending) error {
	if l.claims--; l.claims >= 0 {
		_ = l.Keys.EndKey(ctx, key, t, keystore.Ending{Event: keystore.Release})
		return store.ErrClaimLost
	}
	return l.Keys.EndKey(ctx, key, t, e)
}

func TestAHandlerThatIsLateTwiceForOneRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &calls{status: 201}
		s := newLeasedFixture(t, &losingStore{Keys: memstore.NewKeys(), claims: 1}, func(w http.ResponseWriter, r *http.Request) {
			<-time.After(20 * time.Second)
			c.serve(w, r)
		}, func(c *httpkey.Config, _ *httpkey.LeaseConfig) { c.Timeout, c.Wait = 10*time.Second, 2*time.Minute })
		wantProblem(t, s.post(`"k"`, "tea"), 504, "handler-timed-out")
		if !s.Drain(t.Context()) {
			t.Error("the handler did not end")
		}
		c.want(t, 2)
	})
}

func TestACompleterSendsTheURIThatTheClientSent(t *testing.T) {
	for _, uri := range []string{"//shop.example/accounts/7", "/a%2Fb/../c?x=%zz", "/a#b", "/a;b=c", "http://shop.example//x", "*"} {
		t.Run(uri, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var got, want string
				read := func(r *http.Request) string {
					return r.Host + " " + r.URL.Host + " " + r.URL.EscapedPath() + " " + r.URL.RawQuery
				}
				s := newAbandoned(t, func(w http.ResponseWriter, r *http.Request) {
					got = read(r)
					w.WriteHeader(201)
				}, enableCompletion, func(r *http.Request) {
					sent := httptest.NewRequest(http.MethodPost, uri, strings.NewReader("tea"))
					sent.Header = r.Header
					*r = *sent
					want = read(r)
				})
				advanceTime(3 * time.Minute)
				if err := s.finishAbandoned(t); err != nil || got != want {
					t.Errorf("%v; the Completer sent %q, want %q", err, got, want)
				}
			})
		})
	}
}

func TestAnAnswerIsSentAsItsLengthSays(t *testing.T) {
	s := newFixture(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Transfer-Encoding", "gzip")
		effect(w, r)
	}, nil)
	if w := s.post(`"k"`, "tea"); w.Code != 201 || w.Header().Get("Transfer-Encoding") != "" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
}

func TestACompleterReadsOldKeysAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var replayed atomic.Int64
		keys, change := memstore.NewKeys(), func(c *httpkey.Config, l *httpkey.LeaseConfig) {
			enableCompletion(c, l)
			c.Observe = func(o httpkey.Observation) {
				if o.Fate == httpkey.Replayed {
					replayed.Add(1)
				}
			}
			l.Completion.After = time.Second
		}
		for _, key := range []string{`"k1"`, `"k2"`, `"k3"`} {
			first := &process{Keys: keys, dies: 5} // after the claim and the stored request
			newLeasedFixture(t, first, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, change).post(key, "tea")
		}
		advanceTime(3 * time.Minute)
		ran := map[string]*atomic.Int64{"k1": {}, "k2": {}, "k3": {}}
		s := newLeasedFixture(t, keys, func(w http.ResponseWriter, r *http.Request) {
			a, _ := httpkey.AttemptFrom(r.Context())
			if ran[a.Key].Add(1); a.Finishing {
				<-time.After(5 * time.Second)
			}
			w.WriteHeader(201)
		}, change)
		go func() { // the clients repeat their requests while a Completer finishes the first request
			<-time.After(3 * time.Second)
			for _, key := range []string{`"k1"`, `"k2"`, `"k3"`} {
				s.post(key, "tea")
			}
		}()
		if err := s.finishAbandoned(t); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if n := replayed.Load(); n != 0 {
			t.Errorf("the Completer sent %d requests that were answered meanwhile", n)
		}
		for key, times := range ran {
			if n := times.Load(); n != 1 {
				t.Errorf("%s ran %d times", key, n)
			}
		}
	})
}
