package httpkey_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel/httpkey"
	"github.com/semel-go/semel/keystore"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

func TestTrap135AStopThatIsInAHurry(t *testing.T) {
	t.Run("F1_trap_135_is_told_that_a_handler_still_runs_and_answers_nothing_for_it", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			leave := make(chan struct{})
			s := newFixture(t, func(w http.ResponseWriter, r *http.Request) {
				<-leave
				effect(w, r)
			}, func(c *httpkey.Config) { c.Observe = nil })
			status := make(chan int, 1)
			go func() { status <- s.post(`"k"`, "tea").Code }()
			synctest.Wait()
			hurry, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if s.Drain(hurry) || s.countEffects() != "0" || len(status) != 0 {
				t.Errorf("Drain returned true with %s effects and %d answers", s.countEffects(), len(status))
			}
			close(leave)
			if !s.Drain(t.Context()) || s.countEffects() != "1" || <-status != 201 {
				t.Errorf("with time, %s effects", s.countEffects())
			}
		})
	})
}

// fromTomorrow is a store whose answers a newer release has written.
type fromTomorrow struct{ keystore.Store }

func (s fromTomorrow) ClaimKey(ctx context.Context, c keystore.Claim) (keystore.Answer, error) {
	a, err := s.Store.ClaimKey(ctx, c)
	if len(a.Result) > 0 {
		a.Result[0]++ // the number of the format
	}
	return a, err
}

func TestTrap136AnAnswerOfANewerRelease(t *testing.T) {
	t.Run("F1_trap_136_is_left_to_a_server_that_can_read_it", func(t *testing.T) {
		c := &calls{status: 201}
		s := newLeasedFixture(t, fromTomorrow{memstore.NewKeys()}, c.serve, nil)
		s.post(`"k"`, "tea")
		w := s.post(`"k"`, "tea")
		wantProblem(t, w, http.StatusServiceUnavailable, "answer-of-newer-release")
		if c.want(t, 1); w.Header().Get("Retry-After") == "" {
			t.Error("the response has no Retry-After")
		}
	})
}

func TestTrap136AKeyThatANewerReleaseHasMarked(t *testing.T) {
	t.Run("F2_trap_136_has_nothing_run_and_is_left_to_a_server_that_knows_what_it_means", func(t *testing.T) {
		s := newFixture(t, effect, nil)
		scope, err := s.store.Scope(t.Context(), "orders", "", 0)
		if err != nil {
			t.Fatal(err)
		}
		b, _, err := s.store.Begin(t.Context(), store.TxOptions{}, []store.Mark{{Scope: scope, ID: []byte("a\x00k"), As: 9}})
		if err != nil {
			t.Fatal(err)
		}
		if r := b.Commit(t.Context(), store.Ending{}); r.Outcome != store.Committed {
			t.Fatal(r)
		}
		w := s.post(`"k"`, "tea")
		wantProblem(t, w, http.StatusServiceUnavailable, "answer-of-newer-release")
		if w.Header().Get("Retry-After") == "" || s.countEffects() != "0" {
			t.Errorf("%v, %s effects", w.Header(), s.countEffects())
		}
	})
}

func TestTrap137AStoreThatWasDown(t *testing.T) {
	t.Run("F2_trap_137_has_run_nothing_and_what_comes_again_takes_effect_once", func(t *testing.T) {
		var down atomic.Bool
		s := newFixture(t, effect, nil, memstore.Fail(func(string) error {
			if down.Load() {
				return errAway
			}
			return nil
		}))
		for round, status := range []int{503, 503, 201, 201} {
			down.Store(status == 503)
			for _, key := range []string{`"a"`, `"b"`, `"c"`} {
				w := s.post(key, "tea")
				if w.Code != status || (w.Header().Get("Retry-After") != "") != (status == 503) || (w.Header().Get(httpkey.ReplayedHeader) != "") != (round == 3) {
					t.Errorf("%s in round %d: %d %v", key, round, w.Code, w.Header())
				}
			}
		}
		if s.countEffects() != "3" {
			t.Errorf("%s effects", s.countEffects())
		}
	})
}
