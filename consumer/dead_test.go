package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/sourcetest"
	"github.com/semel-go/semel/store"
)

// grave is a broker with a dead-letter topic. The broker stops working when dead is set, and rejects the first copies
// that it gets, as many as the field refuses says.
type grave struct {
	*sourcetest.Memory
	dead    *atomic.Bool
	refuses atomic.Int32 // number of copies that the topic still rejects
	// copied is called with each dead letter before the dead letter is written.
	copied func(source.Settlement)
}

func (g *grave) Settle(ctx context.Context, all []source.Settlement) ([]int, error) {
	if g.dead.Load() {
		return nil, errors.New("the process is dead")
	}
	var left []int
	var taken []source.Settlement
	for i, s := range all {
		if s.Kind == semel.DeadLetter {
			if g.refuses.Add(-1) >= 0 {
				left = append(left, i)
				continue
			}
			if g.copied != nil {
				g.copied(s)
			}
		}
		taken = append(taken, s)
	}
	_, err := g.Memory.Settle(ctx, taken)
	if left != nil {
		err = errors.New("no space for dead letters")
	}
	return left, err
}

func bury(t *testing.T, messages ...*semel.Message) *grave {
	t.Helper()
	g := &grave{Memory: sourcetest.NewMemory(2), dead: new(atomic.Bool)}
	for i, m := range messages {
		if err := errors.Join(g.Publish(i%2, m)); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.End(); err != nil {
		t.Fatal(err)
	}
	return g
}

// lies returns, for each message id, the number of dead letters of that message.
func (g *grave) lies(t *testing.T) map[string]int {
	t.Helper()
	all, err := g.Dead()
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, m := range all {
		count[string(m.Headers[0].Value)]++
	}
	return count
}

func deadConfig(src source.Source) consumer.Config {
	c := config(src)
	c.Retry.OnExhausted, c.OnConflict, c.OnBadIdentity, c.OnPrecondition = consumer.ActionDeadLetter, consumer.ActionDeadLetter, consumer.ActionDeadLetter, consumer.ActionDeadLetter
	return c
}

// failsIf is a handler that fails permanently if the body of the message is "bad".
func failsIf(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
	switch string(m.Body) {
	case "bad":
		return semel.Permanent(errTest)
	case "worse":
		return errTest
	case "unmet":
		return semel.PreconditionFailed("nothing to change")
	}
	return add(ctx, tx, m)
}

func TestDeadLetters(t *testing.T) {
	bubble(t, "G3_every_ending_can_be_a_dead_letter_with_identity_reason_and_a_row", func(t *testing.T) {
		st, seen := memstore.New(), &witness{}
		g := bury(t, message("1", "good"), message("2", "bad"), message("3", "worse"), message("4", "unmet"),
			message("1", "other"), message("", "nameless"), message("2", "bad"))
		var told []source.Settlement
		g.copied = func(s source.Settlement) { told = append(told, s) }
		c := deadConfig(g)
		c.Observers = []semel.Observer{seen}
		counts := runs(t, st, failsIf, c)
		if counts != (semel.Counts{Deliveries: 7, Applied: 1, Duplicates: 1, Conflicts: 1, DeadLettered: 4, Retried: counts.Retried, Rerun: counts.Rerun}) {
			t.Errorf("%+v", counts)
		}
		if got := fmt.Sprint(g.lies(t)); got != "map[:1 1:1 2:1 3:1 4:1]" || len(told) != 5 {
			t.Errorf("dead letters %s, %d told", got, len(told))
		}
		for _, s := range told {
			if s.Reason == "" || string(s.Delivery.Message.Body) == "worse" && (s.Attempts != consumer.Defaults().Retry.MaxAttempts || !errors.Is(s.Err, errTest)) {
				t.Errorf("told %+v", s)
			}
		}
		for id, want := range map[string]semel.Reason{"2": semel.ReasonPermanent, "3": semel.ReasonExhausted, "4": semel.ReasonPrecondition, "1": semel.ReasonConflict} {
			if r := row(t, st, id); r.State != store.StateDeadLettered || r.Reason != want {
				t.Errorf("row of %s: %s, %s; want it dead-lettered, %s", id, r.State, r.Reason, want)
			}
		}
		if !outcome(t, st, "2").Already(store.DeadLettered) || len(seen.eventsOf(semel.EventDeadLettered)) != 4 {
			t.Errorf("the marker of 2 says %v; events %+v", outcome(t, st, "2"), seen.events)
		}
	})
	bubble(t, "law_8_followers_wait_until_a_dead_letter_is_marked", func(t *testing.T) {
		st := memstore.New()
		g := bury(t, message("1", "bad"), message("x", "good"), message("2", "good"))
		g.refuses.Store(3)
		g.copied = func(source.Settlement) {
			if effect(t, st, "2") != "" || effect(t, st, "x") != "1" {
				t.Errorf("before the copy: 2 has effect %q, and x, of another lane, %q", effect(t, st, "2"), effect(t, st, "x"))
			}
		}
		if counts := runs(t, st, failsIf, deadConfig(g)); counts.Applied != 2 || counts.DeadLettered != 1 || g.lies(t)["1"] != 1 {
			t.Errorf("%+v, dead letters %v", counts, g.lies(t))
		}
	})
	t.Run("G3_a_source_without_dead_letters_is_refused_at_the_start", func(t *testing.T) {
		c := deadConfig(newListSource(message("1", "bad")))
		if err := mustNew(t, memstore.New(), failsIf, c).Run(t.Context()); !errors.Is(err, semel.ErrUnsupported) || !strings.Contains(err.Error(), "dead letters") {
			t.Errorf("Run says %v", err)
		}
		if _, err := mustNew(t, memstore.New(), failsIf, deadConfig(nil)).Process(t.Context(), message("1", "bad")); !errors.Is(err, semel.ErrUnsupported) {
			t.Errorf("Process says %v", err)
		}
	})
}

func TestDeadLettersAreNeitherLostNorForgotten(t *testing.T) {
	bubble(t, "trap_T48_wherever_the_process_dies_between_copy_and_settle_nothing_is_lost_or_done_twice", func(t *testing.T) {
		deaths := 0
		for _, point := range faults.Points() {
			for n := 1; n <= 8; n++ {
				if diesAt(t, point, n) {
					deaths++
				}
			}
		}
		if deaths < 20 {
			t.Errorf("the process died only %d times", deaths)
		}
	})
}

// diesAt kills a process, whose handler fails for every third message, at a fault point. diesAt then starts another
// process and checks the final state.
func diesAt(t *testing.T, point faults.Point, n int) bool {
	t.Helper()
	var messages []*semel.Message
	for i := range 18 {
		body := "good"
		if i%3 == 0 {
			body = "bad"
		}
		messages = append(messages, message(fmt.Sprint("m", i), body))
	}
	g := bury(t, messages...)
	st := memstore.New(memstore.Fail(func(string) error {
		if g.dead.Load() {
			return errors.New("the process is dead")
		}
		return nil
	}))
	died := runsUntil(t, st, g, point, n)
	marked := map[string]bool{}
	for i := 0; i < 18; i += 3 {
		id := fmt.Sprint("m", i)
		marked[id] = outcome(t, st, id).Already(store.DeadLettered)
		if marked[id] && g.lies(t)[id] != 1 {
			t.Errorf("%s %d: %s is marked as dead-lettered and has %d copies", point, n, id, g.lies(t)[id])
		}
	}
	if _, err := g.Open(); err != nil {
		t.Fatal(err)
	}
	runs(t, st, failsIf, deadConfig(g))
	lies := g.lies(t)
	for i := range 18 {
		id := fmt.Sprint("m", i)
		switch copies := lies[id]; {
		case i%3 != 0 && (effect(t, st, id) != "1" || copies != 0):
			t.Errorf("%s %d: %s has effect %q and %d dead letters", point, n, id, effect(t, st, id), copies)
		case i%3 == 0 && (effect(t, st, id) != "" || copies < 1 || marked[id] && copies != 1):
			t.Errorf("%s %d: %s, marked %v, has %d dead letters and effect %q", point, n, id, marked[id], copies, effect(t, st, id))
		}
	}
	return died
}

// runsUntil runs a consumer until its process dies at the n-th time that the process passes point.
func runsUntil(t *testing.T, store *memstore.Store, g *grave, point faults.Point, n int) bool {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := deadConfig(g)
	c.Batch.MaxSize, c.Drain = 5, time.Second
	var passed atomic.Int32
	plan := faults.Plan{At: func(p faults.Point, _ int) {
		if p == point && int(passed.Add(1)) == n {
			g.dead.Store(true)
			cancel()
		}
	}}
	if err := mustNew(t, store, failsIf, c, plan).Run(ctx); err != nil {
		t.Fatal(err)
	}
	return g.dead.Swap(false)
}
