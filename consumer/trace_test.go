package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/measure"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

// scribe is a tracer that records a line of text for each ended span.
type scribe struct {
	mutex  sync.Mutex
	spans  byte
	lines  []string
	begun  []measure.Begun
	silent bool // TraceBatch returns nil
}

func (*scribe) Observe(semel.Event) {}

func (s *scribe) TraceBatch(b measure.Begun) measure.BatchTrace {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.begun = append(s.begun, b)
	if s.silent {
		return nil
	}
	return scribesBatch{s}
}

func (s *scribe) write(format string, a ...any) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.lines = append(s.lines, fmt.Sprintf(format, a...))
}

type inSpan struct{}

type scribesBatch struct{ *scribe }

func (scribesBatch) Context(ctx context.Context) context.Context {
	return context.WithValue(ctx, inSpan{}, "batch")
}

func (s scribesBatch) TraceMessage(parent semel.TraceContext) measure.MessageTrace {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.spans++
	parent.SpanID[0] = s.spans
	return scribesMessage{s.scribe, parent}
}

func (s scribesBatch) End(b measure.Batch) { s.write("batch of %d %s", b.Messages, b.End) }

type scribesMessage struct {
	*scribe
	at semel.TraceContext
}

func (s scribesMessage) Context(ctx context.Context) context.Context {
	return context.WithValue(ctx, inSpan{}, s.at.SpanID[0])
}
func (s scribesMessage) TraceContext() semel.TraceContext { return s.at }
func (s scribesMessage) End(e measure.MessageEnd) {
	s.write("%d %s %s %t", s.at.SpanID[0], e.Ending, measure.ReasonClass(e.Reason), e.Failed)
}

// newSampledMessage returns a message whose trace is sampled. newUnsampledMessage returns a message whose trace is not
// sampled.
func newSampledMessage(id string) *semel.Message   { return withParent(id, "01") }
func newUnsampledMessage(id string) *semel.Message { return withParent(id, "00") }

func withParent(id, flags string) *semel.Message {
	m := message(id, `{}`)
	m.Headers = append(m.Headers, semel.Header{Name: "traceparent", Value: []byte("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-" + flags)})
	return m
}

func TestATracerGetsSampledMessages(t *testing.T) {
	bubble(t, "K4_the_handler_runs_within_the_span_of_its_message", func(t *testing.T) {
		told := &scribe{}
		original := newSampledMessage("1")
		c := config(newListSource(original, newUnsampledMessage("2"), message("3", `{}`)))
		c.Observers = []semel.Observer{told}
		seen := map[string]string{}
		runs(t, memstore.New(), func(ctx context.Context, _ *memstore.Tx, m *semel.Message) error {
			at, _ := m.TraceContext()
			out, _ := m.Causation().Get("traceparent")
			seen[m.Identity.ID] = fmt.Sprint(ctx.Value(inSpan{}), " ", at.SpanID[0], " ", string(out[max(0, len(out)-19):]), " ", m.Attempt)
			return nil
		}, c)
		for id, want := range map[string]string{"1": "1 1 01ad6b7169203331-01 1", "2": "<nil> 183 b7ad6b7169203331-00 1", "3": "<nil> 0  1"} {
			if seen[id] != want {
				t.Errorf("the handler of %s saw %q, not %q", id, seen[id], want)
			}
		}
		if at, _ := original.TraceContext(); at.SpanID[0] != 0xb7 {
			t.Error("the source's message was changed")
		}
		if len(told.begun) != 1 || told.begun[0].Consumer != "billing" || told.begun[0].Messages != 3 || told.begun[0].At.IsZero() {
			t.Errorf("begun: %+v", told.begun)
		}
		if got := strings.Join(told.lines, ", "); got != "1 applied none false, batch of 3 committed" {
			t.Error(got)
		}
	})
	bubble(t, "K4_each_run_is_a_span_and_says_how_it_ended", func(t *testing.T) {
		told := &scribe{}
		st := memstore.New()
		runs(t, st, add, config(newListSource(message("0", `{}`))))
		c := config(newListSource(newSampledMessage("0"), newSampledMessage("1"), newSampledMessage("2")))
		c.Observers, c.Batch.MaxSize, c.Workers, c.Retry.MaxAttempts = []semel.Observer{told}, 1, 1, 2
		runs(t, st, func(_ context.Context, _ *memstore.Tx, m *semel.Message) error {
			if m.Identity.ID == "2" {
				return fmt.Errorf("the body says %s", m.Body)
			}
			return nil
		}, c)
		got := strings.Join(told.lines, ", ")
		for _, want := range []string{" applied none false", " rolled back none true", " parked attempts exhausted false", " duplicate none false"} {
			if !strings.Contains(got, want) {
				t.Errorf("no span with %q: %s", want, got)
			}
		}
		if strings.Contains(got, "body") || strings.Count(got, "rolled back none true") != 2 {
			t.Error(got)
		}
	})
	bubble(t, "K4_who_fell_with_another_did_not_fail_itself", func(t *testing.T) {
		told, failed := &scribe{}, false
		c := config(newListSource(newSampledMessage("1"), newSampledMessage("2")))
		c.Observers = []semel.Observer{told}
		runs(t, memstore.New(), func(_ context.Context, _ *memstore.Tx, m *semel.Message) error {
			if m.Identity.ID == "2" && !failed {
				failed = true
				return errTest
			}
			return nil
		}, c)
		if got := strings.Join(told.lines, ", "); !strings.HasPrefix(got, "1 rolled back none false, 2 rolled back none true, batch of 2 rolled back") || strings.Count(got, "applied") != 2 {
			t.Error(got)
		}
	})
	bubble(t, "K4_a_commit_of_unknown_outcome_ends_them_so", func(t *testing.T) {
		told, st, lost := &scribe{}, watch(memstore.New()), false
		st.onCommit = func(ctx context.Context, commit func(context.Context) store.Result) store.Result {
			r := commit(ctx)
			if !lost {
				lost = true
				return store.Result{Outcome: store.CommitUnknown, Class: store.ClassDown, Culprit: store.NoCulprit, Err: errors.New("the answer is lost")}
			}
			return r
		}
		c := config(newListSource(newSampledMessage("1")))
		c.Observers = []semel.Observer{told}
		runs(t, st, add, c)
		if got := strings.Join(told.lines, ", "); got != "1 unknown none false, batch of 1 unknown, 2 applied none false, batch of 1 committed" {
			t.Error(got)
		}
	})
	bubble(t, "K4_a_handler_of_all_runs_within_the_span_of_the_batch", func(t *testing.T) {
		told := &scribe{}
		c := config(newListSource(newSampledMessage("1"), newUnsampledMessage("2"), newSampledMessage("3")))
		c.Observers = []semel.Observer{told}
		all, err := consumer.NewBatch(memstore.New(), func(ctx context.Context, _ *memstore.Tx, ms []*semel.Message) error {
			at, _ := ms[2].TraceContext()
			other, _ := ms[1].TraceContext()
			if ctx.Value(inSpan{}) != "batch" || at.SpanID[0] != 2 || other.SpanID[0] != 0xb7 {
				t.Errorf("%v, %v, %v", ctx.Value(inSpan{}), at, other)
			}
			return nil
		}, c)
		if err == nil {
			err = all.Run(t.Context())
		}
		if err != nil || len(told.lines) != 3 {
			t.Error(err, told.lines)
		}
	})
	bubble(t, "K4_one_that_records_nothing_changes_nothing", func(t *testing.T) {
		told := &scribe{silent: true}
		c := config(newListSource(newSampledMessage("1"), newSampledMessage("2")))
		c.Observers = []semel.Observer{told}
		runs(t, memstore.New(), func(_ context.Context, _ *memstore.Tx, m *semel.Message) error {
			if at, _ := m.TraceContext(); at.SpanID[0] != 0xb7 {
				t.Error("its trace context has changed")
			}
			return nil
		}, c)
		if len(told.begun) != 1 || len(told.lines) != 0 {
			t.Error(told.begun, told.lines)
		}
	})
}

// fallen is a tracer whose methods panic.
type fallen struct{ scribe }

func (*fallen) TraceBatch(measure.Begun) measure.BatchTrace { panic("no") }

func TestATracerIsOneAndCanFallOut(t *testing.T) {
	bubble(t, "trap_T90_one_that_panics_is_logged_once", func(t *testing.T) {
		said := &strings.Builder{}
		c := config(newListSource(newSampledMessage("1"), newSampledMessage("2")))
		c.Observers, c.Logger, c.Batch.MaxSize = []semel.Observer{&fallen{}}, slog.New(slog.NewTextHandler(said, nil)), 1
		if counts := runs(t, memstore.New(), add, c); counts.Applied != 2 || strings.Count(said.String(), "the tracer panicked") != 1 {
			t.Errorf("%+v: %s", counts, said)
		}
	})
	t.Run("K4_two_are_refused", func(t *testing.T) {
		c := config(newListSource())
		c.Observers = []semel.Observer{&scribe{}, &scribe{}}
		if _, err := consumer.New(memstore.New(), add, c); err == nil || !strings.Contains(err.Error(), "Observers: has 2 that create spans") {
			t.Error(err)
		}
	})
}
