package httpkey_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/httpkey"
	"github.com/semel-go/semel/internal/steplimit"
	"github.com/semel-go/semel/keystore"
	"github.com/semel-go/semel/leasedkey"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

// bank is a provider that supports idempotency keys.
type bank struct {
	mutex sync.Mutex
	calls map[string]int             // by operation
	keys  map[string]map[string]bool // keys of effects, by operation
}

func newBank() *bank { return &bank{calls: map[string]int{}, keys: map[string]map[string]bool{}} }

func (b *bank) do(what, key string) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.calls[what]++
	if b.keys[what] == nil {
		b.keys[what] = map[string]bool{}
	}
	b.keys[what][key] = true
}

// process is the store of idempotency keys in a process that dies at a point. After the process has died, calls of the
// store have no effect.
type process struct {
	*memstore.Keys
	mutex  sync.Mutex
	points int // number of points that were passed
	dies   int // the point at which the process dies; 0 means never
}

var errDead = errors.New("the process is dead")

// countPoint counts a point. If the process dies at this point, or died earlier, countPoint returns an error.
func (p *process) countPoint() error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.points++; p.dies > 0 && p.points >= p.dies {
		return errDead
	}
	return nil
}

func (p *process) isDead() bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.dies > 0 && p.points >= p.dies
}

// doBetweenPoints runs f between two points.
func (p *process) doBetweenPoints(f func() error) error {
	if err := p.countPoint(); err != nil {
		return err
	}
	if err := f(); err != nil {
		return err
	}
	return p.countPoint()
}

func (p *process) ClaimKey(ctx context.Context, c keystore.Claim) (a keystore.Answer, err error) {
	err = p.doBetweenPoints(func() (err error) { a, err = p.Keys.ClaimKey(ctx, c); return err })
	return a, err
}

func (p *process) ExtendKey(ctx context.Context, key semel.Key, t store.Token, lease time.Duration) error {
	return p.doBetweenPoints(func() error { return p.Keys.ExtendKey(ctx, key, t, lease) })
}

func (p *process) EndKey(ctx context.Context, key semel.Key, t store.Token, e keystore.Ending) error {
	return p.doBetweenPoints(func() error { return p.Keys.EndKey(ctx, key, t, e) })
}

func (p *process) SaveRequest(ctx context.Context, key semel.Key, t store.Token, note []byte) error {
	return p.doBetweenPoints(func() error { return p.Keys.SaveRequest(ctx, key, t, note) })
}

// order returns a handler that charges a card and then sends a mail, each in a step.
func (p *process) order(b *bank) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		charge, err := httpkey.Step(r.Context(), "charge", func(_ context.Context, a httpkey.Attempt) ([]byte, error) {
			return []byte("charge 17"), p.doBetweenPoints(func() error { b.do("charge", a.IdempotencyKey); return nil })
		})
		if err == nil {
			_, err = httpkey.Step(r.Context(), "mail", func(_ context.Context, a httpkey.Attempt) ([]byte, error) {
				return nil, p.doBetweenPoints(func() error { b.do("mail", a.IdempotencyKey); return nil })
			})
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(charge)
	}
}

// enableSteps configures a guard with steps and Completion.
func enableSteps(_ *httpkey.Config, l *httpkey.LeaseConfig) {
	l.Stepped, l.Window, l.Completion = true, 24*time.Hour, &httpkey.Completion{}
}

// finishAbandoned lets a new process finish abandoned requests, and returns the error of the process's Completer.
func (s *fixture) finishAbandoned(t *testing.T) error {
	t.Helper()
	c, err := s.Completer(s.handler)
	if err != nil {
		t.Fatal(err)
	}
	return c.Pass(t.Context())
}

func TestF2AProcessThatDiesAtEachPointOfItsSteps(t *testing.T) {
	for dies, ended := 1, false; !ended; dies++ {
		t.Run(fmt.Sprintf("F2_at_point_%d", dies), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				keys, b := memstore.NewKeys(), newBank()
				first := &process{Keys: keys, dies: dies}
				w := newLeasedFixture(t, first, first.order(b), enableSteps).post(`"k"`, "tea")
				if ended = !first.isDead(); ended && w.Code != 201 {
					t.Errorf("who lived answers %d: %s", w.Code, w.Body)
				}
				advanceTime(3 * time.Minute) // longer than the lease and Completion.After
				begun := len(b.calls) > 0
				second := &process{Keys: keys}
				s := newLeasedFixture(t, second, second.order(b), enableSteps)
				if err := s.finishAbandoned(t); err != nil {
					t.Errorf("the completer: %v", err)
				}
				if begun && (len(b.keys["charge"]) != 1 || len(b.keys["mail"]) != 1) {
					t.Errorf("the request was started but not finished: %v", b.keys)
				}
				finished := len(b.keys["mail"]) == 1
				w = s.post(`"k"`, "tea")
				if replayed := w.Header().Get(httpkey.ReplayedHeader) == "true"; w.Code != 201 || w.Body.String() != "charge 17" || replayed != finished {
					t.Errorf("the client gets %d: %s, replayed: %t", w.Code, w.Body, replayed)
				}
				if len(b.keys["charge"]) != 1 || len(b.keys["mail"]) != 1 || b.calls["charge"] > 2 || b.calls["mail"] > 2 || b.calls["charge"]+b.calls["mail"] > 3 {
					t.Errorf("%v, by keys %v", b.calls, b.keys)
				}
			})
		})
		if dies > 100 {
			t.Fatal("it never lives")
		}
	}
}

func TestF2AStepWithUnknownOutcome(t *testing.T) {
	for name, c := range map[string]struct {
		finding leasedkey.Finding
		body    string
		calls   int
	}{
		"F2_trap_T76_happened_as_a_person_says":  {leasedkey.Happened, "seen in their books", 1},
		"F2_trap_T76_did_not_as_a_person_says":   {leasedkey.DidNotHappen, "charge 17", 2},
		"F2_trap_T76_and_is_not_repeated_before": {leasedkey.StillUnknown, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls, lost := 0, true
				s := newLeasedFixture(t, memstore.NewKeys(), func(w http.ResponseWriter, r *http.Request) {
					out, err := httpkey.Step(r.Context(), "charge", func(context.Context, httpkey.Attempt) ([]byte, error) {
						if calls++; lost {
							return nil, errors.New("no answer came")
						}
						return []byte("charge 17"), nil
					})
					if err != nil {
						http.Error(w, "not charged", http.StatusBadGateway)
						return
					}
					_, _ = w.Write(out)
				}, enableSteps)
				if w := s.post(`"k"`, "tea"); w.Code != 502 {
					t.Errorf("%d: %s", w.Code, w.Body)
				}
				lost = false
				advanceTime(25 * time.Hour)
				wantProblem(t, s.post(`"k"`, "tea"), http.StatusConflict, "outcome-unknown")
				if err := s.ResolveStep(t.Context(), "a", "k", "charge", c.finding, []byte("seen in their books")); (err != nil) != (c.finding == leasedkey.StillUnknown) {
					t.Errorf("it says %v", err)
				}
				w := s.post(`"k"`, "tea")
				if c.body == "" {
					wantProblem(t, w, http.StatusConflict, "outcome-unknown")
				} else if w.Code != 200 || w.Body.String() != c.body {
					t.Errorf("%d: %s", w.Code, w.Body)
				}
				if calls != c.calls {
					t.Errorf("%d calls", calls)
				}
			})
		})
	}
}

func TestF2StepsOfTwoCallersNeverMeet(t *testing.T) {
	s := newLeasedFixture(t, memstore.NewKeys(), func(w http.ResponseWriter, r *http.Request) {
		out, err := httpkey.Step(r.Context(), "charge", func(_ context.Context, a httpkey.Attempt) ([]byte, error) {
			return []byte("charge of " + a.Caller), nil
		})
		if err != nil {
			t.Error(err)
		}
		_, _ = w.Write(out)
	}, enableSteps)
	for _, account := range []string{"a", "b"} {
		w := s.post(`"k"`, "tea", func(r *http.Request) { r.Header.Set("X-Account", account) })
		if w.Body.String() != "charge of "+account {
			t.Errorf("%s gets %d: %s", account, w.Code, w.Body)
		}
	}
}

func TestF2AStepThatFailedIsNotDoneAgain(t *testing.T) {
	calls := 0
	s := newLeasedFixture(t, memstore.NewKeys(), func(w http.ResponseWriter, r *http.Request) {
		_, err := httpkey.Step(r.Context(), "charge", func(context.Context, httpkey.Attempt) ([]byte, error) {
			calls++
			return nil, semel.Permanent(errors.New("the card is refused"))
		})
		http.Error(w, fmt.Sprint(errors.Is(err, httpkey.ErrStepFailed)), http.StatusInternalServerError)
	}, enableSteps)
	first, second := s.post(`"k"`, "tea").Body.String(), s.post(`"k"`, "tea").Body.String()
	if first != "false\n" || second != "true\n" || calls != 1 {
		t.Errorf("%q, then %q, after %d calls", first, second, calls)
	}
}

func TestF2StepsThatCannotBe(t *testing.T) {
	done := func(context.Context, httpkey.Attempt) ([]byte, error) { return nil, nil }
	if _, err := httpkey.Step(t.Context(), "charge", done); err == nil || !strings.Contains(err.Error(), "Stepped") {
		t.Errorf("without a guard: %v", err)
	}
	within := func(change func(*httpkey.Config, *httpkey.LeaseConfig), f func(context.Context)) {
		newLeasedFixture(t, memstore.NewKeys(), func(_ http.ResponseWriter, r *http.Request) { f(r.Context()) }, change).post(`"k"`, "tea")
	}
	within(nil, func(ctx context.Context) {
		if _, err := httpkey.Step(ctx, "charge", done); err == nil || !strings.Contains(err.Error(), "Stepped") {
			t.Errorf("with a guard without Stepped: %v", err)
		}
	})
	within(enableSteps, func(ctx context.Context) {
		for _, name := range []string{"", strings.Repeat("x", steplimit.Name+1), "a\x00b"} {
			if _, err := httpkey.Step(ctx, name, done); err == nil || !strings.Contains(err.Error(), "a name has") {
				t.Errorf("the name %q: %v", name, err)
			}
		}
		for i := range steplimit.Steps + 1 {
			if _, err := httpkey.Step(ctx, fmt.Sprint(i), done); (err != nil) != (i == steplimit.Steps) {
				t.Errorf("step %d: %v", i, err)
			}
		}
		if _, err := httpkey.Step(ctx, "0", done); err != nil {
			t.Errorf("with a completed step: %v", err)
		}
	})
	if err := newLeasedFixture(t, memstore.NewKeys(), effect, nil).ResolveStep(t.Context(), "a", "k", "charge", leasedkey.Happened, nil); !errors.Is(err, semel.ErrUnsupported) {
		t.Errorf("with a guard without Stepped: %v", err)
	}
}
