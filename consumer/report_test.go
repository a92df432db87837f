package consumer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

func TestAStormOfOneKindDoesNotFloodTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var messages []*semel.Message
		for i := range 200 {
			messages = append(messages, message(fmt.Sprint("bad ", i), `{}`))
		}
		c := config(newListSource(messages...))
		c.Retry.DisableBreaker = true
		c.Logger = slog.New(slog.NewTextHandler(&log, nil))
		observer := &counter{}
		c.Observers = []semel.Observer{observer}
		if _, err := consume(t, memstore.New(), permanentlyBad, c); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(log.String(), "msg=parked"); n != 10 {
			t.Errorf("%d parked messages in the log, want 10", n)
		}
		if !strings.Contains(log.String(), "suppressed_for=1m") {
			t.Error("the log does not say that lines are suppressed")
		}
		if observer.parked != 200 {
			t.Errorf("observers heard %d, want 200", observer.parked)
		}
	})
}

func TestAHealthyConsumerIsSilent(t *testing.T) {
	bubble(t, "K4_between_its_start_and_its_end_nothing_is_logged", func(t *testing.T) {
		var log log
		source := newListSource(append(numbered("m", 500), numbered("m", 100)...)...)
		source.endless = true
		c := config(source)
		c.Logger = slog.New(slog.NewTextHandler(&log, nil))
		consumer := mustNew(t, memstore.New(), add, c)
		run := start(t, consumer)
		pass(time.Second)
		began := log.String()
		pass(24 * time.Hour)
		if counts := consumer.Counts(); counts.Applied != 500 || counts.Duplicates != 100 || log.String() != began || strings.Contains(began, "level=WARN") {
			t.Errorf("%+v; the log is:\n%s", counts, log.String())
		}
		run.stop()
		if err := run.wait(); err != nil || strings.Contains(log.String(), "level=WARN") {
			t.Errorf("%v; the log is:\n%s", err, log.String())
		}
	})
	bubble(t, "K4_a_line_that_is_no_messages_is_bounded_too", func(t *testing.T) {
		var log log
		st, lost := watch(memstore.New()), 0
		st.onCommit = func(ctx context.Context, commit func(context.Context) store.Result) store.Result {
			r := commit(ctx)
			if lost++; lost%2 == 1 {
				return store.Result{Outcome: store.CommitUnknown, Class: store.ClassDown, Culprit: store.NoCulprit, Err: errTest}
			}
			return r
		}
		c := config(newListSource(numbered("m", 200)...))
		c.Logger, c.Batch.MaxSize, c.Workers = slog.New(slog.NewTextHandler(&log, nil)), 1, 1
		began := time.Now()
		runs(t, st, add, c)
		n := strings.Count(log.String(), "a commit's outcome is unknown")
		if most := 30 * (int(time.Since(began)/time.Minute) + 1); lost < 100 || n < 10 || n > most {
			t.Errorf("%d lines of %d commits in %v", n, lost, time.Since(began))
		}
	})
}

type counter struct{ parked int }

func (c *counter) Observe(e semel.Event) {
	if e.Kind == semel.EventParked {
		c.parked += e.Messages
	}
}

func permanentlyBad(context.Context, *memstore.Tx, *semel.Message) error {
	return semel.Permanent(errors.New("no"))
}

func TestOutagesAreLogged(t *testing.T) {
	bubble(t, "a_broker_that_cannot_settle_a_source_that_cannot_be_read_and_a_store_that_is_down_are_told_apart", func(t *testing.T) {
		var log log
		st, src := watch(memstore.New()), watchSource(numbered("m", 5)...)
		fails := map[string]bool{"begin": true, "fetch": true, "settle": true}
		once := func(what string) error {
			if fails[what] {
				fails[what] = false
				return errTest
			}
			return nil
		}
		st.onBegin = func(context.Context, []store.Mark) error { return once("begin") }
		src.onFetch = func(context.Context, source.Bound) error { return once("fetch") }
		src.onSettle = func(context.Context, []source.Settlement) ([]int, error) { return nil, once("settle") }
		c := config(src)
		c.Logger = slog.New(slog.NewTextHandler(&log, nil))
		runs(t, st, add, c)
		for _, line := range []string{
			"store does not work; nothing is settled, next try", "source does not work; nothing is fetched, next try",
			"broker does not work; what was committed stays unsettled, next try", "broker works again",
		} {
			if !strings.Contains(log.String(), line) {
				t.Errorf("nobody said %q:\n%s", line, log.String())
			}
		}
	})
}
