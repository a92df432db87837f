package httpkey_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel/httpkey"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

func TestRetentionRemovesKeysPastTheirTime(t *testing.T) {
	now := time.Now()
	s := newFixture(t, effect, nil, memstore.Clock(func() time.Time { return now }))
	s.post(`"k"`, "tea")
	sweep := func(after time.Duration) {
		now = now.Add(after)
		if err := s.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	sweep(0)
	sweep(71 * time.Hour)
	if w := s.post(`"k"`, "tea"); w.Header().Get(httpkey.ReplayedHeader) != "true" {
		t.Errorf("the key was removed too early: %d", w.Code)
	}
	sweep(2 * time.Hour)
	if w := s.post(`"k"`, "tea"); w.Header().Get(httpkey.ReplayedHeader) != "" || s.countEffects() != "2" {
		t.Errorf("the key was kept for too long: %v, %s effects", w.Header(), s.countEffects())
	}
	l := newLeasedFixture(t, memstore.NewKeys(), effect, nil)
	if err := l.Sweep(t.Context()); err != nil {
		t.Errorf("with leased keys: %v", err)
	}
}

func TestRunSweepsUntilItsContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFixture(t, effect, nil, memstore.Fail(func(op string) error {
			if op == "retention" {
				return errAway
			}
			return nil
		}))
		ctx, cancel := context.WithTimeout(t.Context(), 150*time.Second)
		defer cancel()
		failed := 0
		s.Run(ctx, func(err error) {
			if failed++; !errors.Is(err, errAway) {
				t.Errorf("it says %v", err)
			}
		})
		if failed != 3 {
			t.Errorf("it swept %d times", failed)
		}
	})
}

func TestAKeyWithoutAnAnswerIsSaidToBeDone(t *testing.T) {
	s := newFixture(t, effect, nil)
	s.post(`"other"`, "tea")
	scope, err := s.store.Scope(t.Context(), "orders", "", 0)
	if err != nil {
		t.Fatal(err)
	}
	b, _, err := s.store.Begin(t.Context(), store.TxOptions{}, []store.Mark{{Scope: scope, ID: []byte("a\x00k"), As: store.Applied}})
	if err != nil {
		t.Fatal(err)
	}
	b.Commit(t.Context(), store.Ending{})
	wantProblem(t, s.post(`"k"`, "tea"), 410, "answer-gone")
}
