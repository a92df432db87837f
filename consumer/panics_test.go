package consumer_test

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/internal/eventkind"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/source"
)

type panickingPrint struct{}

func (panickingPrint) Fingerprint(m *semel.Message) (semel.Fingerprint, error) {
	if strings.Contains(string(m.Body), "5") {
		panic("of the body " + string(m.Body))
	}
	return semel.Fingerprint{}, nil
}

func (panickingPrint) Validate() error { return nil }

type observerFunc func(semel.Event)

func (f observerFunc) Observe(e semel.Event) { f(e) }

// panickingSource panics, or ends its goroutine, in its second Fetch and in its first Settle.
type panickingSource struct {
	*listSource
	exits            bool
	fetched, settled int
}

func (s *panickingSource) fails(value any) {
	if s.exits {
		runtime.Goexit()
	}
	panic(value)
}

func (s *panickingSource) Fetch(ctx context.Context, most source.Bound) ([]source.Delivery, error) {
	if s.fetched++; s.fetched == 2 {
		s.fails(errors.New("in a decoder"))
	}
	most.Messages = min(most.Messages, 4)
	return s.listSource.Fetch(ctx, most)
}

func (s *panickingSource) Settle(ctx context.Context, all []source.Settlement) ([]int, error) {
	if s.settled++; s.settled == 1 {
		s.fails("in a settlement")
	}
	return s.listSource.Settle(ctx, all)
}

func TestAPanicThatIsNotTheHandlers(t *testing.T) {
	bubble(t, "trap_T90_in_the_fingerprinter_sets_its_message_aside", func(t *testing.T) {
		store, said := memstore.New(), &log{}
		c := config(newListSource(numbered("m", 10)...))
		c.Fingerprint, c.Logger = panickingPrint{}, slog.New(slog.NewTextHandler(said, nil))
		if counts := runs(t, store, add, c); counts.Applied != 9 || counts.Parked != 1 {
			t.Errorf("%+v", counts)
		}
		r := rows(t, store)
		if len(r) != 1 || r[0].Reason != semel.ReasonMalformed || !strings.Contains(r[0].LastError, "panicked") {
			t.Errorf("%+v", r)
		}
		if text := said.String(); !strings.Contains(text, "the fingerprinter panicked") || !strings.Contains(text, "panics_test.go") || strings.Contains(text, "of the body") {
			t.Errorf("the log says %s", text)
		}
	})
	bubble(t, "trap_T90_in_an_observer_is_logged_once_and_the_others_hear_of_the_event", func(t *testing.T) {
		said, seen := &log{}, &witness{}
		c := config(newListSource(numbered("m", 10)...))
		c.Batch.MaxSize, c.Logger = 1, slog.New(slog.NewTextHandler(said, nil))
		c.Observers = []semel.Observer{observerFunc(func(semel.Event) { panic("no") }), seen}
		if counts := runs(t, memstore.New(), add, c); counts.Applied != 10 {
			t.Errorf("%+v", counts)
		}
		if n := strings.Count(said.String(), "observer 1 of 2"); n != 1 || len(seen.eventsOf(eventkind.Committed)) != 10 {
			t.Errorf("logged %d times, the other observer got %d commits", n, len(seen.eventsOf(eventkind.Committed)))
		}
	})
	for name, exits := range map[string]bool{"": false, "_and_so_is_Goexit_there": true} {
		bubble(t, "trap_T90_in_the_source_is_a_failure_of_the_source"+name, func(t *testing.T) {
			src, seen := &panickingSource{listSource: newListSource(numbered("m", 10)...), exits: exits}, &witness{}
			c := config(src)
			c.Observers = []semel.Observer{seen}
			if counts := runs(t, memstore.New(), add, c); counts.Applied != 10 || len(src.listSource.settled) != 10 {
				t.Errorf("%+v, %d settled", counts, len(src.listSource.settled))
			}
			if n := len(seen.eventsOf(semel.EventNotReady)); n != 2 {
				t.Errorf("there were %d events EventNotReady", n)
			}
		})
	}
	bubble(t, "trap_T90_in_Flow_is_logged_and_its_lane_goes_on", func(t *testing.T) {
		var said log
		src := watchSource(numbered("m", 10)...)
		src.onFlow = func(source.Lane, bool) { panic("in a pause") }
		c := config(src)
		c.Logger = said.logger()
		failed := false
		counts := runs(t, memstore.New(), func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			if m.Identity.ID == "m3" && !failed {
				failed = true
				return semel.RetryAfter(errTest, 10*time.Second)
			}
			return add(ctx, tx, m)
		}, c)
		if text := said.String(); counts.Applied != 10 || !strings.Contains(text, "the source's Flow panicked") || strings.Contains(text, "in a pause") {
			t.Errorf("%+v: %s", counts, text)
		}
	})
	bubble(t, "trap_T90_in_At_is_logged_at_every_point_and_nothing_else_comes_of_it", func(t *testing.T) {
		var said log
		src := newListSource(numbered("m", 10)...)
		c := config(src)
		c.Logger = said.logger()
		plan := faults.Plan{At: func(faults.Point, int) { panic("in a test") }}
		if counts := runs(t, memstore.New(), add, c, plan); counts.Applied != 10 || len(src.settled) != 10 {
			t.Errorf("%+v, %d settled", counts, len(src.settled))
		}
		if n := strings.Count(said.String(), "faults.Plan.At panicked"); n < 7 {
			t.Errorf("logged %d times: %s", n, said.String())
		}
	})
	t.Run("trap_T90_before_the_first_fetch_is_an_error_of_the_run", func(t *testing.T) {
		for method, src := range map[string]source.Source{"Lanes": panickingStart{Source: newListSource()}, "DeadLetters": panickingStart{Source: newListSource(), dead: true}} {
			c := config(src)
			c.OnConflict = consumer.ActionDeadLetter
			err := mustNew(t, memstore.New(), add, c).Run(t.Context())
			if err == nil || !strings.Contains(err.Error(), "the source's "+method+" panicked") {
				t.Errorf("%s: %v", method, err)
			}
		}
	})
	t.Run("trap_T90_in_LaneFaults_leaves_a_reason_that_is_not_known", func(t *testing.T) {
		c := config(panickingStart{Source: newListSource()})
		if _, why := mustNew(t, memstore.New(), add, c).Ready(); !strings.Contains(why, "LaneFaults panicked") {
			t.Errorf("the reason is %q", why)
		}
	})
}

// panickingStart panics in the methods of a source that are called before the first fetch.
type panickingStart struct {
	source.Source
	dead bool
}

func (s panickingStart) Lanes(source.LaneObserver) { panic("no") }

func (s panickingStart) Info() source.Info {
	return source.Info{
		LaneFaults: func() []semel.Unfinished { panic("no") },
		DeadLetters: func(string) error {
			if s.dead {
				panic("no")
			}
			return nil
		},
	}
}

// uninformed is a source that panics in Info.
type uninformed struct{ *listSource }

func (uninformed) Info() source.Info { panic("no") }

func TestASourceThatPanicsBeforeTheFirstFetch(t *testing.T) {
	t.Run("trap_T90_asked_what_it_knows_of_itself_the_consumer_does_not_start", func(t *testing.T) {
		c := config(uninformed{newListSource(numbered("m", 10)...)})
		c.Logger = slog.New(slog.DiscardHandler)
		running := mustNew(t, memstore.New(), add, c)
		if err := running.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "the source's Info panicked") {
			t.Error(err)
		}
		if counts := running.Counts(); counts.Deliveries != 0 {
			t.Errorf("%+v", counts)
		}
	})
}
