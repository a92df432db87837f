package consumer_test

import (
	"bytes"
	"context"
	"log/slog"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

func TestTheEndOfARunWithStuckCalls(t *testing.T) {
	bubble(t, "case_10_a_commit_that_does_not_end_is_cut_when_the_run_gives_up", func(t *testing.T) {
		st, source := watch(memstore.New()), newListSource(numbered("m", 3)...)
		cut := make(chan struct{})
		ended := false
		st.onKill = func() { close(cut) }
		st.onCommit = func(ctx context.Context, commit func(context.Context) store.Result) store.Result {
			select {
			case <-cut:
			case <-ctx.Done():
				t.Error("the batch was not killed")
			}
			ended = true
			return commit(ctx)
		}
		c := config(source)
		c.Drain = time.Second
		run := start(t, mustNew(t, st, add, c))
		pass(time.Second)
		began := time.Now()
		run.stop()
		err := run.wait()
		if took := time.Since(began); err == nil || !strings.Contains(err.Error(), "a commit did not end in time") || took > 10*time.Second {
			t.Errorf("%v after %v", err, took)
		}
		if !ended || len(source.settled) != 0 {
			t.Errorf("the commit has ended: %v, settled %v", ended, source.settled)
		}
		synctest.Wait()
	})
	bubble(t, "a_source_whose_Close_does_not_end_holds_nobody", func(t *testing.T) {
		source := &clingingSource{listSource: newListSource(message("1", `{}`)), release: make(chan struct{})}
		began := time.Now()
		err := mustNew(t, memstore.New(), add, config(source)).Run(t.Context())
		if took := time.Since(began); err == nil || !strings.Contains(err.Error(), "Close ignores its context") || took > 10*time.Second {
			t.Errorf("%v after %v", err, took)
		}
		close(source.release)
	})
}

func TestAStopWhereAllIgnoreTheirContext(t *testing.T) {
	bubble(t, "case_10_a_stop_takes_the_drain_and_five_seconds_although_handler_commit_Settle_and_Close_ignore_their_context", func(t *testing.T) {
		var said log
		st, src, release := watch(memstore.New()), watchSource(numbered("m", 20)...), make(chan struct{})
		defer synctest.Wait()
		defer close(release)
		clings, started := func() { <-release }, time.Now()
		src.endless = true
		src.onSettle = func(context.Context, []source.Settlement) ([]int, error) { clings(); return nil, nil }
		src.onClose = func() error { clings(); return nil }
		st.onCommit = func(ctx context.Context, commit func(context.Context) store.Result) store.Result {
			if time.Since(started) > time.Second {
				clings()
			}
			return commit(ctx)
		}
		c := config(src)
		c.Lanes, c.Workers, c.Batch.MaxSize, c.Drain, c.Logger = consumer.LanesNone, 64, 1, 7*time.Second, said.logger()
		// Two workers each handle one message first. Which two messages come first is random.
		var begun atomic.Int32
		run := start(t, mustNew(t, st, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			switch begun.Add(1) {
			case 1: // commits when the drain ends
				pass(2 * time.Second)
			case 2:
				clings()
			}
			return nil
		}, c))
		pass(5 * time.Second)
		began := time.Now()
		run.stop()
		err := run.wait()
		if took := time.Since(began); err == nil || took != 12*time.Second {
			t.Fatalf("%v after %v", err, took)
		}
		for _, what := range []string{"a commit did not end in time", "1 handlers ignore their context", "Fetch or Settle ignores its context", "Close ignores its context"} {
			if !strings.Contains(err.Error(), what) {
				t.Errorf("Run does not say %q: %v", what, err)
			}
		}
		if text := said.String(); !regexp.MustCompile(`handlers=1 commits=1 unsettled=\d+ at_most=10s`).MatchString(text) {
			t.Errorf("two seconds after the stop the log says %s", text)
		}
	})
}

func TestAStopWaitsForHandlersAndClose(t *testing.T) {
	bubble(t, "a_Close_that_obeys_has_its_time_although_a_handler_ignores_its_context", func(t *testing.T) {
		source, release := &slowlyClosing{listSource: newListSource(numbered("m", 1)...)}, make(chan struct{})
		defer close(release)
		source.endless = true
		c := config(source)
		c.Drain = time.Second
		run := start(t, mustNew(t, memstore.New(), func(context.Context, *memstore.Tx, *semel.Message) error { <-release; return nil }, c))
		pass(time.Second)
		run.stop()
		if err := run.wait(); err == nil || !strings.Contains(err.Error(), "handlers ignore") || strings.Contains(err.Error(), "clos") || !source.closed {
			t.Errorf("closed %v: %v", source.closed, err)
		}
	})
	bubble(t, "a_stop_that_takes_long_says_what_it_waits_for", func(t *testing.T) {
		var log bytes.Buffer
		source := newListSource(numbered("m", 3)...)
		source.endless = true
		c := config(source)
		c.Logger, c.Drain = slog.New(slog.NewJSONHandler(&log, nil)), 20*time.Second
		run := start(t, mustNew(t, memstore.New(), slow(10*time.Second), c))
		pass(time.Second)
		run.stop()
		if err := run.wait(); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(log.String(), `"msg":"stopping: still waits for what runs","consumer":"billing","handlers":1,"commits":0,"unsettled":3,"at_most":"23s"`); got != 1 {
			t.Errorf("it is logged %d times in %s", got, log.String())
		}
	})
}

// clingingSource is a source whose Close does not return until the test releases it.
type clingingSource struct {
	*listSource
	release chan struct{}
}

func (s *clingingSource) Close(ctx context.Context) error {
	<-s.release
	return s.listSource.Close(ctx)
}

// slowlyClosing is a source whose Close takes three seconds.
type slowlyClosing struct {
	*listSource
	closed bool
}

func (s *slowlyClosing) Close(ctx context.Context) error {
	select {
	case <-time.After(3 * time.Second):
		s.closed = true
		return s.listSource.Close(ctx)
	case <-ctx.Done():
		return ctx.Err()
	}
}
