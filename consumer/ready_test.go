package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/memstore"
)

// outdated is a store whose schema does not fit this release.
type outdated struct{ *memstore.Store }

func (outdated) Check(context.Context) error {
	return fmt.Errorf("the tables are missing: %w", semel.ErrSchema)
}

func TestReadyBeforeAnythingWasAsked(t *testing.T) {
	bubble(t, "law_13_it_is_not_before_store_and_source_have_answered", func(t *testing.T) {
		source := newListSource()
		source.endless = true
		consumer := mustNew(t, memstore.New(), add, config(source))
		if ready, why := consumer.Ready(); ready || why != "source: it has not answered yet; store: it has not been checked yet" {
			t.Errorf("before the run: ready %t, %q", ready, why)
		}
		run := start(t, consumer)
		synctest.Wait()
		if ready, why := consumer.Ready(); ready || why != "source: it has not answered yet" {
			t.Errorf("before the source has answered: ready %t, %q", ready, why)
		}
		pass(2 * time.Minute)
		if ready, why := consumer.Ready(); !ready {
			t.Errorf("with a source that has assigned no lane: %q", why)
		}
		run.stop()
		if err := run.wait(); err != nil {
			t.Error(err)
		}
	})
	bubble(t, "law_13_a_lane_is_an_answer", func(t *testing.T) {
		source := newListSource()
		source.endless, source.lanes = true, []string{"a"}
		consumer := mustNew(t, memstore.New(), add, config(source))
		run := start(t, consumer)
		synctest.Wait()
		if ready, why := consumer.Ready(); !ready {
			t.Errorf("not ready: %q", why)
		}
		run.stop()
		if err := run.wait(); err != nil {
			t.Error(err)
		}
	})
	bubble(t, "law_13_it_is_not_after_ErrSchema", func(t *testing.T) {
		consumer := mustNew(t, outdated{memstore.New()}, add, config(newListSource()))
		if err := consumer.Run(t.Context()); !errors.Is(err, semel.ErrSchema) {
			t.Errorf("the run says %v", err)
		}
		if ready, why := consumer.Ready(); ready || !strings.Contains(why, "store: the tables are missing") {
			t.Errorf("ready %t, %q", ready, why)
		}
	})
}
