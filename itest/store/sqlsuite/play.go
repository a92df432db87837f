package sqlsuite

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/itest/must"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
	"pgregory.net/rapid"
)

// Drawing runs random cases.
type Drawing[Tx any] struct {
	// Open returns the store for a case. Several calls of Open may return the same store.
	Open func() Followed[Tx]
	// Idle is the time without activity after which a run ends.
	Idle time.Duration
	// Again is the number of times that a failed case is repeated. Goroutines run in another order each time, and the
	// library rapid cannot simplify a failure that does not repeat.
	Again int

	cases  int
	failed bool
}

// Drawn runs random cases of versions in streams. If a case fails, the library rapid searches a simpler case that also
// fails. All cases share the tables of the store.
func Drawn[Tx any](t *testing.T, f Followed[Tx]) {
	t.Run("B4_B9_trap_T53_in_any_order_and_over_restarts_streams_end_as_the_ordered_ones_do", func(t *testing.T) {
		Draws(t, 20)
		d := &Drawing[Tx]{Open: func() Followed[Tx] { return f }, Idle: 50 * time.Millisecond, Again: 5}
		rapid.Check(t, func(r *rapid.T) { d.Play(t, r) })
	})
}

// Draws sets the number of cases unless -rapid.checks or RAPID_CHECKS is set.
func Draws(t *testing.T, cases int) {
	checks := flag.Lookup("rapid.checks")
	if checks.Value.String() != checks.DefValue || os.Getenv("RAPID_CHECKS") != "" {
		return
	}
	set := func(value string) {
		must.OK(t, flag.Set(checks.Name, value))
	}
	set(fmt.Sprint(cases))
	t.Cleanup(func() { set(checks.DefValue) })
}

// Play generates a case and runs it. Play reports all failures with the same text at the same line. The library rapid
// therefore treats all failures as the same failure, and can simplify the case.
func (d *Drawing[Tx]) Play(t testing.TB, r *rapid.T) {
	drawn, times := draw(r), 1
	if d.failed {
		times = d.Again
	}
	for range times {
		d.cases++
		p := &caseRun[Tx]{Followed: d.Open(), randomCase: drawn, name: fmt.Sprint("drawn", d.cases), called: map[place]int{}}
		err := p.configure(d.Idle)
		if err == nil {
			err = p.play(r.Context(), t)
		}
		if err != nil {
			d.failed = true
			r.Log(err)
			r.Fatal("the streams do not end as the ordered ones do")
		}
	}
}

func (p *caseRun[Tx]) configure(idle time.Duration) (err error) {
	c := &p.config
	c.Name, c.IdleExit, c.Inbox.Poll = p.name, idle, idle/5
	c.Identity, c.Logger = identity.By("header:id"), slog.New(slog.DiscardHandler)
	c.Retry = consumer.RetryPolicy{InitialDelay: time.Millisecond, MaxDelay: 5 * time.Millisecond, SerialAfter: 1000, Budget: consumer.RetryBudget{PerSecond: 1000, Percent: 1000}}
	p.intents, err = consumer.NewIntents(p.Store)
	return err
}

// play first delivers all messages except the late ones. After all other messages are processed, play delivers the late
// messages.
func (p *caseRun[Tx]) play(ctx context.Context, t testing.TB) error {
	p.source = &randomSource{most: p.fetch}
	late := func(m randomMessage) bool { return slices.Contains(p.late, m.place) }
	p.deliverChosen(func(m randomMessage) bool { return !late(m) })
	if err := cmp.Or(p.runUntilIdle(ctx), p.checkEffects(t, p.late), p.nothingIsDenied(ctx)); err != nil || len(p.late) == 0 {
		return cmp.Or(err, p.nothingIsLeft(ctx))
	}
	p.deliverChosen(late)
	return cmp.Or(p.runUntilIdle(ctx), p.checkEffects(t, nil), p.nothingIsDenied(ctx), p.nothingIsLeft(ctx))
}

// nothingIsDenied checks that rows, markers, streams and intents do not contradict each other, because they were
// written in the same commits. If the store cannot check this, nothingIsDenied does nothing.
func (p *caseRun[Tx]) nothingIsDenied(ctx context.Context) error {
	store, can := p.Store.(interface {
		Denials(ctx context.Context, consumer string, after int64, most int) (sqlstore.Looked, error)
	})
	if !can {
		return nil
	}
	var intents int64
	for after := int64(0); ; {
		found, err := store.Denials(ctx, p.name, after, 7)
		if err != nil {
			return err
		}
		for _, d := range found.Denied {
			return fmt.Errorf("row %d is %s, and denied (%d) by %v, %d, %v", d.Row, d.State, d.By, d.Marker, d.Last, d.Cause)
		}
		if intents += found.Intents; found.Rows == 0 {
			break
		}
		after = found.Last
	}
	var effects int64
	for s := range p.lengths {
		effects += int64(len(p.expectedVersions(s, p.late)))
	}
	if intents < effects {
		return fmt.Errorf("%d intents were compared, and %d effects wrote one", intents, effects)
	}
	return nil
}

// deliverChosen makes the source deliver the chosen messages.
func (p *caseRun[Tx]) deliverChosen(chosen func(randomMessage) bool) {
	for _, m := range p.order {
		if chosen(m) {
			p.source.add(m.message(p.stream(m.stream)))
		}
	}
}

// The maximum number of runs. Only a case that hangs reaches this limit.
const mostRuns = 30

// runUntilIdle runs one consumer after another until the source and the inbox are empty.
func (p *caseRun[Tx]) runUntilIdle(ctx context.Context) error {
	for range mostRuns {
		if err := p.runOnce(ctx); err != nil {
			return err
		}
		p.source = p.source.restart()
		pending, err := p.Store.(store.Inbox).Pending(ctx, p.name)
		if err != nil || len(p.source.all) == 0 && pending.Due+pending.Later+pending.InProgress == 0 {
			return err
		}
	}
	return errors.New("it does not come to rest")
}

// runOnce starts a consumer once. The run ends when the consumer is idle, or after a random number of handler
// calls.
func (p *caseRun[Tx]) runOnce(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p.cancel, p.calls = cancel, 0
	if len(p.stops) > 0 {
		p.calls, p.stops = p.stops[0], p.stops[1:]
	}
	p.config.Source = p.source
	c, err := consumer.New(p.Store, p.handle, p.config)
	if err != nil {
		return err
	}
	return c.Run(ctx)
}

// checkEffects compares the written effects with the effects of the versions in their order.
func (p *caseRun[Tx]) checkEffects(t testing.TB, late []place) error {
	for s := range p.lengths {
		if got, want := p.Versions(t, p.stream(s)), p.expectedVersions(s, late); !slices.Equal(got, want) {
			return fmt.Errorf("the stream %c took effect as %v, want %v", 'a'+s, got, want)
		}
	}
	return nil
}

// nothingIsLeft checks that no row waits, and checks the position of each stream.
func (p *caseRun[Tx]) nothingIsLeft(ctx context.Context) error {
	rows, err := p.Store.(store.Inbox).Rows(ctx, store.RowFilter{Consumer: p.name})
	if err != nil {
		return err
	}
	for _, row := range rows {
		if row.State != store.StateCompleted && row.State != store.StateDiscarded {
			return fmt.Errorf("version %d of %s is %s, %s", row.Version, row.Stream, row.State, row.Reason)
		}
	}
	streams, err := p.Store.(admin.Streams).Streams(ctx, admin.StreamFilter{Consumer: p.name})
	if err == nil && len(streams) != len(p.lengths) {
		err = fmt.Errorf("%d streams are known, want %d", len(streams), len(p.lengths))
	}
	for s, at := range streams {
		if err == nil && (at.Last != int64(p.lengths[s]) || at.Blocked != 0) {
			err = fmt.Errorf("the stream %c is at %d of %d, and %d wait", 'a'+s, at.Last, p.lengths[s], at.Blocked)
		}
	}
	return err
}
