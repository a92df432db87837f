package timing_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel/internal/timing"
)

func TestLaw11AWaitEndsWithItsTimeOrItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if !timing.Wait(t.Context(), time.Minute) || time.Since(began) != time.Minute {
			t.Errorf("Wait took %v instead of a minute", time.Since(began))
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		began = time.Now()
		if timing.Wait(ctx, time.Minute) || time.Since(began) != time.Second {
			t.Errorf("Wait took %v, although its context ended after a second", time.Since(began))
		}
	})
}
