package consumer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

// newTypedMessage returns a message with the given type, or without a type if kind is "".
func newTypedMessage(kind, id string, more ...semel.Header) *semel.Message {
	m := message(id, "{}")
	if id == "" {
		m.Headers = nil
	}
	if kind != "" {
		m.Headers = append(m.Headers, semel.Header{Name: "ce-type", Value: []byte(kind)})
	}
	m.Headers = append(m.Headers, more...)
	return m
}

// newSharedTopic returns a source with the messages of a shared topic. Two of the messages are for the consumer.
func newSharedTopic() *listSource {
	return newListSource(newTypedMessage("order", "1"), newTypedMessage("invoice", ""), newTypedMessage("", ""), newTypedMessage("order", "2"), newTypedMessage("Order", "1"))
}

func TestAConsumerThatSkipsEverythingSaysSo(t *testing.T) {
	for name, c := range map[string]struct {
		types       []string
		some, ended int
	}{
		"none of them is its own": {[]string{"odrer"}, 1, 1},
		"one of them is its own":  {[]string{"order"}, 0, 0},
		"all are":                 {nil, 0, 0},
	} {
		bubble(t, name, func(t *testing.T) {
			var log bytes.Buffer
			messages := []*semel.Message{newTypedMessage("order", "1")}
			for i := range 3000 {
				messages = append(messages, newTypedMessage("invoice", fmt.Sprint("i", i)))
			}
			config := config(newListSource(messages...))
			config.Filter, config.Logger = consumer.Filter{Types: c.types}, slog.New(slog.NewTextHandler(&log, nil))
			runs(t, memstore.New(), add, config)
			some, ended := strings.Count(log.String(), "left out everything so far"), strings.Count(log.String(), "left out everything that was read")
			if some != c.some || ended != c.ended {
				t.Errorf("logged %d times during the run and %d times at the end:\n%s", some, ended, log.String())
			}
		})
	}
}

func TestATopicIsShared(t *testing.T) {
	bubble(t, "C16_what_is_not_the_consumers_is_settled_counted_and_written_nowhere", func(t *testing.T) {
		st, source := memstore.New(), newSharedTopic()
		c := config(source)
		c.Filter = consumer.Filter{Types: []string{"order"}}
		counts := runs(t, st, add, c)
		if want := (semel.Counts{Deliveries: 5, Applied: 2, Skipped: 3, SameContent: 1}); counts != want {
			t.Errorf("%+v, not %+v", counts, want)
		}
		if len(source.settled) != 5 || source.kinds["1"] != semel.Ack || len(rows(t, st)) != 0 {
			t.Errorf("settled %v, rows %v", source.settled, rows(t, st))
		}
	})
	bubble(t, "C16_otherwise_park_sets_it_aside_with_its_reason", func(t *testing.T) {
		st, source := memstore.New(), newSharedTopic()
		c := config(source)
		c.Filter, c.OnFiltered = consumer.Filter{Types: []string{"order"}}, consumer.OnFilteredPark
		c.OnBadIdentity = consumer.ActionHalt // identities are not tested here
		counts := runs(t, st, add, c)
		if counts.Applied != 2 || counts.Parked != 3 || counts.Skipped != 0 || len(source.settled) != 5 {
			t.Errorf("%+v, settled %v", counts, source.settled)
		}
		for _, r := range rows(t, st) {
			if r.Reason != reasonname.Filtered || r.Attempts != 0 || !r.Surrogate {
				t.Errorf("a row has the reason %q after %d attempts", r.Reason, r.Attempts)
			}
		}
	})
	bubble(t, "C16_otherwise_dead_letter_needs_a_source_that_keeps_them", func(t *testing.T) {
		c := config(newSharedTopic())
		c.Filter, c.OnFiltered = consumer.Filter{Types: []string{"order"}}, consumer.OnFilteredDeadLetter
		running, err := consumer.New(memstore.New(), add, c)
		if err != nil {
			t.Fatal(err)
		}
		if err := running.Run(t.Context()); !errors.Is(err, semel.ErrUnsupported) {
			t.Errorf("it starts: %v", err)
		}
	})
	bubble(t, "C16_otherwise_dead_letter_copies_it_and_keeps_a_row", func(t *testing.T) {
		st, source := memstore.New(), bury(t, newTypedMessage("order", "1"), newTypedMessage("invoice", "2"))
		c := config(source)
		c.Filter, c.OnFiltered = consumer.Filter{Types: []string{"order"}}, consumer.OnFilteredDeadLetter
		if counts := runs(t, st, add, c); counts.Applied != 1 || counts.DeadLettered != 1 || counts.Skipped != 0 {
			t.Errorf("%+v", counts)
		}
		if all := rows(t, st); len(all) != 1 || all[0].Reason != reasonname.Filtered || all[0].State != store.StateDeadLettered || source.lies(t)["2"] != 1 {
			t.Errorf("rows %+v, dead letters %v", all, source.lies(t))
		}
	})
	bubble(t, "C16_every_condition_must_be_met_and_of_a_header_one_value", func(t *testing.T) {
		header := func(v string) semel.Header { return semel.Header{Name: "Region", Value: []byte(v)} }
		source := newListSource(newTypedMessage("order", "1", header("eu")), newTypedMessage("order", "2"), newTypedMessage("order", "3", header("us")),
			newTypedMessage("invoice", "4", header("eu")), newTypedMessage("order", "5", header("us"), header("eu")))
		c := config(source)
		c.Filter = consumer.Filter{Types: []string{"order"}, Headers: map[string][]string{"region": {"eu", "asia"}}}
		if counts := runs(t, memstore.New(), add, c); counts.Applied != 2 || counts.Skipped != 3 {
			t.Errorf("%+v", counts)
		}
	})
	bubble(t, "C16_what_the_source_could_not_read_is_not_skipped_for_what_it_lacks", func(t *testing.T) {
		source := newListSource(newTypedMessage("", "1"), newTypedMessage("invoice", "2"), newTypedMessage("order", "3"))
		for i := range source.pending {
			source.pending[i].Refused = semel.ReasonMalformed
		}
		c := config(source)
		c.Filter = consumer.Filter{Types: []string{"order"}, Headers: map[string][]string{"region": {"eu"}}}
		if counts := runs(t, memstore.New(), add, c); counts.Parked != 2 || counts.Skipped != 1 {
			t.Errorf("%+v", counts)
		}
	})
}

func TestSkippedMessagesOfProcess(t *testing.T) {
	bubble(t, "C16_Process_says_so_and_TryMark_marks_nothing", func(t *testing.T) {
		store := memstore.New()
		c := config(nil)
		c.Filter = consumer.Filter{Types: []string{"order"}}
		running, err := consumer.New(store, add, c)
		if err != nil {
			t.Fatal(err)
		}
		d, err := running.Process(t.Context(), newTypedMessage("invoice", "1"))
		if err != nil || d.Kind != semel.Ack || d.Reason != reasonname.Filtered || running.Counts().Skipped != 1 {
			t.Errorf("%+v, %v, %+v", d, err, running.Counts())
		}
		var fault *identity.Error
		if _, err := running.TryMark(t.Context(), nil, newTypedMessage("invoice", "1")); !errors.As(err, &fault) || fault.Reason != reasonname.Filtered {
			t.Errorf("TryMark says %v", err)
		}
		if err := running.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestSkippedMessagesWhileTheStoreIsDown(t *testing.T) {
	bubble(t, "law_13_it_is_not_settled_before_the_store_is_back", func(t *testing.T) {
		st, source := watch(memstore.New()), newListSource(newTypedMessage("order", "1"), newTypedMessage("invoice", "2"))
		back, down := time.Now().Add(time.Minute), make(chan struct{})
		st.onBegin = func(context.Context, []store.Mark) error {
			if time.Now().Before(back) {
				return errors.New("away")
			}
			return nil
		}
		later := source.pending[1:]
		source.pending, source.endless = source.pending[:1], true
		source.refuse = func() error {
			if time.Now().Before(back) {
				t.Errorf("something was settled %v before the store was back", time.Until(back))
			}
			return nil
		}
		c := config(source)
		c.Filter, c.IdleExit = consumer.Filter{Types: []string{"order"}}, time.Minute
		c.Observers = []semel.Observer{tellOnce(semel.EventNotReady, func() { close(down) })}
		fetches := 0
		plan := faults.Plan{At: func(p faults.Point, _ int) {
			if p != faults.AfterFetch {
				return
			}
			switch fetches++; fetches {
			case 1:
				source.pending = later
			case 2: // this message was in progress when the store went down
				<-down
			}
		}}
		if counts := runs(t, st, add, c, plan); counts.Applied != 1 || counts.Skipped != 1 {
			t.Errorf("%+v", counts)
		}
	})
}

func TestConditionsThatNothingMeetsAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		only      consumer.Filter
		otherwise consumer.OnFiltered
		says      string
	}{
		"an empty type":              {consumer.Filter{Types: []string{"order", ""}}, 0, "without a type has none"},
		"a header without values":    {consumer.Filter{Headers: map[string][]string{"region": nil}}, 0, "no values"},
		"a header without a name":    {consumer.Filter{Headers: map[string][]string{"": {"x"}}}, 0, "no name"},
		"a header twice":             {consumer.Filter{Headers: map[string][]string{"a": {"x"}, "A": {"y"}}}, 0, "case does not count"},
		"on_filtered without filter": {consumer.Filter{}, consumer.OnFilteredPark, "Filter takes all"},
		"an unknown word for it":     {consumer.Filter{Types: []string{"order"}}, 9, "OnFilteredSkip"},
	} {
		t.Run(name, func(t *testing.T) {
			config := config(nil)
			config.Filter, config.OnFiltered = c.only, c.otherwise
			if _, err := consumer.New(memstore.New(), add, config); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("it says: %v", err)
			}
		})
	}
}

// tellOnce returns an observer that calls the function f at the first event of the given kind.
func tellOnce(kind semel.EventKind, f func()) semel.Observer { return &teller{kind: kind, tell: f} }

type teller struct {
	kind semel.EventKind
	once sync.Once
	tell func()
}

func (o *teller) Observe(e semel.Event) {
	if e.Kind == o.kind {
		o.once.Do(o.tell)
	}
}
