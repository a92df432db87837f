package proof

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestACheckEndsTheRunWithWhatWasGoingOn(t *testing.T) {
	broken, after := errors.New("broken"), false
	err := Attempt(func() {
		During("while members start", func() {
			if got := Must(7, nil); got != 7 {
				t.Errorf("Must returns %d, not 7", got)
			}
			Check(broken)
			after = true
		})
	})
	if !errors.Is(err, broken) || err.Error() != "while members start: broken" || after {
		t.Errorf("%v; it went on: %v", err, after)
	}
}

func TestOnlyChecksAreErrorsOfTheRun(t *testing.T) {
	defer func() {
		if recover() != "a mistake" {
			t.Error("a panic that is no check was taken for an error of the run")
		}
	}()
	_ = Attempt(func() { panic("a mistake") })
}

func TestWithinEndsAtItsLimitAndTheRunAtItsOwn(t *testing.T) {
	never := func(context.Context) bool { return false }
	if Within(t.Context(), time.Millisecond, time.Microsecond, never) {
		t.Error("a condition that never holds held")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Attempt(func() { Within(ended, time.Hour, time.Microsecond, never) }); !errors.Is(err, context.Canceled) {
		t.Errorf("the run has ended, and Within ends with %v", err)
	}
}
