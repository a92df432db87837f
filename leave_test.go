package semel_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/memstore"
)

func TestWhatARunLeavesBehind(t *testing.T) {
	bubble(t, "case_10_a_commit_that_does_not_end_is_cut_when_the_run_gives_up", func(t *testing.T) {
		store, source := watch(memstore.New()), newListSource(numbered("m", 3)...)
		cut := make(chan struct{})
		ended := false
		store.onKill = func() { close(cut) }
		store.onCommit = func(ctx context.Context, commit func(context.Context) semel.Result) semel.Result {
			select {
			case <-cut:
			case <-ctx.Done():
				t.Error("nobody cut the batch")
			}
			ended = true
			return commit(ctx)
		}
		c := config(source)
		c.Drain = time.Second
		run := start(t, mustNew(t, store, add, c))
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
		if got := strings.Count(log.String(), `"msg":"stopping: still waits for what runs","consumer":"billing","handlers":1,"commits":0,"unsettled":3,"at_most":"18s"`); got != 1 {
			t.Errorf("it is said %d times in %s", got, log.String())
		}
	})
}

// clingingSource does not end its Close until it is released.
type clingingSource struct {
	*listSource
	release chan struct{}
}

func (s *clingingSource) Close(ctx context.Context) error {
	<-s.release
	return s.listSource.Close(ctx)
}
