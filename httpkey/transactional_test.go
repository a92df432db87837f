package httpkey_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/semel-go/semel/httpkey"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

// failOnce makes the first call of one operation of a store fail.
func failOnce(op string) memstore.Option {
	failed := false
	return memstore.Fail(func(asked string) error {
		if asked != op || failed {
			return nil
		}
		failed = true
		return errAway
	})
}

func (s *fixture) countEffects() string {
	if n := s.store.Get("orders"); n != nil {
		return string(n)
	}
	return "0"
}

func TestLaw1KeyEffectAndAnswerAreOneCommit(t *testing.T) {
	for name, c := range map[string]struct {
		op      string
		first   int
		code    string
		effects string // number of effects after the first request
		again   bool   // the second request gets the answer of the first request
	}{
		"F2_the_store_has_no_scope":          {"scope", 503, "store-unavailable", "0", false},
		"F2_nothing_begins":                  {"begin", 503, "store-unavailable", "0", false},
		"F2_the_commit_is_refused":           {"commit-before", 503, "not-committed", "0", false},
		"case_3_the_commits_answer_is_lost":  {"commit-after", 201, "", "1", true},
		"F2_what_is_kept_cannot_be_read_now": {"results", 201, "", "1", true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t, effect, nil, failOnce(c.op))
			w := s.post(`"k"`, "tea")
			if c.code != "" {
				wantProblem(t, w, c.first, c.code)
				if w.Header().Get("Retry-After") == "" {
					t.Error("the response has no Retry-After")
				}
			} else if w.Code != c.first {
				t.Errorf("%d: %s", w.Code, w.Body)
			}
			if s.countEffects() != c.effects {
				t.Errorf("%s effects after the first", s.countEffects())
			}
			if c.op == "results" {
				wantProblem(t, s.post(`"k"`, "tea"), 503, "store-unavailable")
			}
			w = s.post(`"k"`, "tea")
			if replayed := w.Header().Get(httpkey.ReplayedHeader) == "true"; w.Code != 201 || replayed != c.again || s.countEffects() != "1" {
				t.Errorf("the second: %d, replayed: %t, %s effects", w.Code, replayed, s.countEffects())
			}
		})
	}
}

// forgetful is a store that loses the response of the first commit, which did not succeed.
type forgetful struct {
	*memstore.Store
	lost bool
}

func (f *forgetful) Begin(ctx context.Context, o store.TxOptions, m []store.Mark) (store.Batch[*memstore.Tx], []store.Verdict, error) {
	b, v, err := f.Store.Begin(ctx, o, m)
	if err == nil && !f.lost {
		b = &lost{b, f}
	}
	return b, v, err
}

type lost struct {
	store.Batch[*memstore.Tx]
	store *forgetful
}

func (l *lost) Commit(ctx context.Context, _ store.Ending) store.Result {
	l.store.lost = true
	l.Rollback(ctx)
	return store.Result{Outcome: store.CommitUnknown, Class: store.ClassDown, Err: errAway}
}

func TestCase3ACommitThatDidNotHappenIsNoAnswer(t *testing.T) {
	f := &forgetful{Store: memstore.New()}
	g, err := httpkey.New[*memstore.Tx](f, config())
	if err != nil {
		t.Fatal(err)
	}
	s := &fixture{Guard: g, store: f.Store, handler: g.ProtectFunc(effect)}
	wantProblem(t, s.post(`"k"`, "tea"), 503, "not-committed")
	if s.countEffects() != "0" {
		t.Errorf("%s effects", s.countEffects())
	}
	if w := s.post(`"k"`, "tea"); w.Code != 201 || w.Header().Get(httpkey.ReplayedHeader) != "" || s.countEffects() != "1" {
		t.Errorf("the second: %d %v, %s effects", w.Code, w.Header(), s.countEffects())
	}
}

func TestTrapT75RulesForErrors(t *testing.T) {
	for name, c := range map[string]struct {
		status   int
		change   func(*httpkey.Config)
		replayed bool
	}{
		"F1_trap_T75_4xx_is_final":               {422, nil, true},
		"F1_trap_T75_but_not_429":                {429, nil, false},
		"F1_trap_T75_nor_what_is_declared":       {404, func(c *httpkey.Config) { c.Statuses = map[int]httpkey.Rule{404: httpkey.ReleaseKey} }, false},
		"F1_trap_T75_which_takes_the_usual_away": {429, func(c *httpkey.Config) { c.Statuses = map[int]httpkey.Rule{} }, true},
		"F1_trap_T75_nor_where_none_is":          {422, func(c *httpkey.Config) { c.ClientErrors = httpkey.ReleaseKey }, false},
		"F1_trap_T75_5xx_is_not":                 {502, nil, false},
		"F1_trap_T75_unless_that_is_declared":    {502, func(c *httpkey.Config) { c.ServerErrors = httpkey.KeepAnswer }, true},
		"F1_trap_T75_3xx_is":                     {303, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			ran := 0
			s := newFixture(t, func(w http.ResponseWriter, r *http.Request) {
				ran++
				tx, _ := httpkey.TxFrom[*memstore.Tx](r.Context())
				_ = tx.Add("orders", 1)
				w.WriteHeader(c.status)
			}, c.change)
			s.post(`"k"`, "tea")
			w := s.post(`"k"`, "tea")
			if replayed := w.Header().Get(httpkey.ReplayedHeader) == "true"; w.Code != c.status || replayed != c.replayed || replayed != (ran == 1) {
				t.Errorf("the second: %d, replayed: %t, after %d runs", w.Code, replayed, ran)
			}
			if want := c.status < 400; want != (s.countEffects() == "1") {
				t.Errorf("%s effects", s.countEffects())
			}
		})
	}
}

func TestTrap131AKeyWithoutAPlaceIsRefused(t *testing.T) {
	t.Run("F1_trap_131_and_nothing_is_run", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			leave := make(chan struct{})
			s := newFixture(t, func(w http.ResponseWriter, r *http.Request) {
				<-leave
				effect(w, r)
			}, func(c *httpkey.Config) { c.MostOpen, c.Observe = 1, nil })
			ended := make(chan int)
			go func() { ended <- s.post(`"k1"`, "tea").Code }()
			synctest.Wait()
			wantProblem(t, s.post(`"k2"`, "tea"), 503, "too-many-requests-open")
			close(leave)
			if code := <-ended; code != 201 {
				t.Errorf("the first: %d", code)
			}
			if w := s.post(`"k2"`, "tea"); w.Code != 201 || s.countEffects() != "2" {
				t.Errorf("the second: %d, %s effects", w.Code, s.countEffects())
			}
		})
	})
}

func TestTrap131RoutesOfOneGuardShareItsPlaces(t *testing.T) {
	t.Run("F1_trap_131_one_that_waits_keeps_the_place_of_another", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			leave := make(chan struct{})
			s := newFixture(t, func(http.ResponseWriter, *http.Request) { <-leave }, func(c *httpkey.Config) { c.MostOpen, c.Observe = 1, nil })
			slow := s.handler
			ended := make(chan int)
			go func() { ended <- (&fixture{handler: slow}).post(`"k1"`, "tea").Code }()
			synctest.Wait()
			s.handler = s.ProtectFunc(effect)
			wantProblem(t, s.post(`"k2"`, "tea"), 503, "too-many-requests-open")
			close(leave)
			if code := <-ended; code != 200 {
				t.Errorf("the first: %d", code)
			}
			if w := s.post(`"k2"`, "tea"); w.Code != 201 {
				t.Errorf("the second: %d", w.Code)
			}
		})
	})
}

func TestF2ATransactionThatCannotCommitIsNoAnswer(t *testing.T) {
	var s *fixture
	s = newFixture(t, func(w http.ResponseWriter, r *http.Request) {
		tx, _ := httpkey.TxFrom[*memstore.Tx](r.Context())
		_, _ = tx.Get("stock")
		_ = tx.Set("note", []byte("written"))
		other, _, err := s.store.Begin(r.Context(), store.TxOptions{}, nil)
		if err != nil {
			t.Error(err)
			return
		}
		_ = other.Tx(store.All).Set("stock", []byte("7")) // the other transaction changes a value that this transaction has read
		other.Commit(r.Context(), store.Ending{})
		w.WriteHeader(201)
	}, nil)
	wantProblem(t, s.post(`"k"`, "tea"), 503, "not-committed")
	if s.store.Get("note") != nil {
		t.Error("a part of the effect exists")
	}
}
