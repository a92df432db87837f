package rebuild

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/timing"
	"github.com/semel-go/semel/store"
)

// Point names a step of a switch, at which tests kill it.
type Point string

// The points, in their order.
const (
	BeforeFence  Point = "BeforeFence"
	AfterFence   Point = "AfterFence"
	AfterEqual   Point = "AfterEqual"
	BeforeSwitch Point = "BeforeSwitch"
	AfterSwitch  Point = "AfterSwitch"
)

// Points returns them, in order.
func Points() []Point {
	return []Point{BeforeFence, AfterFence, AfterEqual, BeforeSwitch, AfterSwitch}
}

// Switch says what is switched, and how.
type Switch struct {
	Store interface {
		admin.Generations
		store.Inbox
	}
	Consumer string
	// To is the generation that is being built.
	To  int64
	Far Far
	// CatchUp is how long the rebuild may take to come near, Fence for how long at most nobody
	// applies anything.
	CatchUp, Fence time.Duration
	// AllowParked switches although messages of the new generation were set aside, or wait.
	AllowParked bool
	Act         store.Act
	// At, if not nil, is asked at each point; an error of it ends the switch as the death of
	// its process would. For tests.
	At func(Point) error
	// Report, if not nil, is called with what the switch waits for.
	Report func(string)
}

// Errors of a switch after which nothing has changed.
var (
	// ErrNotEqual: the rebuild did not come as far as the source in time.
	ErrNotEqual = errors.New("the rebuild has not come as far as its source")
	// ErrParked: messages of the new generation were set aside, or wait.
	ErrParked = errors.New("messages of the new generation have not taken effect")
)

// ErrUnknown: the last step has failed, and the store does not say whether it is done.
var ErrUnknown = errors.New("whether the generation was switched is not known; the same command again says so, or does it")

// errLast: the last step has failed.
var errLast = errors.New("the switch itself")

// killedError is what At has said.
type killedError struct{ error }

func (e killedError) Unwrap() error { return e.error }

// lookAgain is how often it is looked how far the rebuild is.
const lookAgain = 50 * time.Millisecond

// Do switches, and returns the generation that was active before. Until the last step it
// changes nothing that does not end by itself: whoever kills it leaves a fence, which ends
// after its time, and the consumer goes on in the generation that it had.
func (s *Switch) Do(ctx context.Context) (from int64, err error) {
	if from, err = s.generations(ctx); err != nil {
		return 0, err
	}
	if err := s.clean(ctx); err != nil {
		return 0, err
	}
	near, cancel := context.WithTimeout(ctx, s.CatchUp)
	defer cancel()
	if err := s.equal(near, "the rebuild comes near the end of its source"); err != nil {
		return 0, err
	}
	err = s.at(BeforeFence)
	if err == nil {
		err = s.fenced(ctx, from)
	}
	var killed killedError
	if err != nil && !errors.As(err, &killed) {
		err = s.giveUp(ctx, err)
	}
	return from, err
}

// giveUp ends the fences of a switch that failed. Where the last step failed otherwise than by
// a refusal, as with a connection that broke, it may have committed: who lifts the fences waits
// for that, so that what is active can be read behind it. It is nil if the switch is done.
func (s *Switch) giveUp(ctx context.Context, why error) error {
	ctx, end := context.WithTimeout(context.WithoutCancel(ctx), liftWithin)
	defer end()
	lifted := s.Store.LiftFences(ctx, s.Consumer)
	if !errors.Is(why, errLast) || errors.Is(why, semel.ErrState) {
		return errors.Join(why, lifted)
	}
	all, err := s.Store.Generations(ctx, s.Consumer)
	for _, g := range all {
		if g.Number == s.To && g.State == store.GenerationActive {
			return nil
		}
	}
	if err = errors.Join(lifted, err); err != nil {
		return fmt.Errorf("%w: %w", ErrUnknown, errors.Join(why, err))
	}
	return why
}

// liftWithin is how long it may take to end the fences of a switch that failed.
const liftWithin = 10 * time.Second

// generations finds the active one, and sees that the other is being built.
func (s *Switch) generations(ctx context.Context) (from int64, err error) {
	all, err := s.Store.Generations(ctx, s.Consumer)
	if err != nil {
		return 0, err
	}
	built := false
	for _, g := range all {
		switch {
		case g.Fenced > 0:
			return 0, fmt.Errorf("another switch of consumer %s is under way, or has died: wait for %v: %w", s.Consumer, g.Fenced.Round(time.Second), semel.ErrState)
		case g.State == store.GenerationActive:
			from = g.Number
		case g.Number == s.To:
			built = g.State == store.GenerationBuilding
		}
	}
	if from == s.To {
		return 0, fmt.Errorf("generation %d of consumer %s is active already: %w", s.To, s.Consumer, semel.ErrState)
	}
	if !built {
		return 0, fmt.Errorf("generation %d of consumer %s is not being built any more: %w", s.To, s.Consumer, semel.ErrState)
	}
	return from, nil
}

// fenced does what is done while nobody works in the old generation. What anybody has applied
// there lies before the source's end of now, whatever the source was told of it, so that when
// the rebuild has come to that end nothing was applied in the old one alone.
func (s *Switch) fenced(ctx context.Context, from int64) error {
	ctx, cancel := context.WithTimeout(ctx, s.Fence)
	defer cancel()
	s.report("whoever works in the old generation comes to his end")
	if err := s.Store.FenceGeneration(ctx, s.Consumer, from, s.Fence); err != nil {
		return fmt.Errorf("a batch of the live consumer did not end in time, or a switch is under way: %w", err)
	}
	if err := s.at(AfterFence); err != nil {
		return err
	}
	if err := s.equal(ctx, "the rebuild comes to the end of its source"); err != nil {
		return err
	}
	if err := s.at(AfterEqual); err != nil {
		return err
	}
	if err := s.Store.FenceGeneration(ctx, s.Consumer, s.To, s.Fence); err != nil {
		return fmt.Errorf("a batch of the rebuild did not end in time: %w", err)
	}
	if err := s.clean(ctx); err != nil {
		return err
	}
	if err := s.at(BeforeSwitch); err != nil {
		return err
	}
	if err := s.Store.SwitchGeneration(ctx, s.Consumer, from, s.To, s.Act); err != nil {
		return fmt.Errorf("%w: %w", errLast, err)
	}
	return s.at(AfterSwitch)
}

func (s *Switch) at(p Point) error {
	if s.At == nil {
		return nil
	}
	if err := s.At(p); err != nil {
		return killedError{err}
	}
	return nil
}

func (s *Switch) report(what string) {
	if s.Report != nil {
		s.Report(what)
	}
}

// equal waits until the rebuild has come to where the source ends now, and has nothing in
// hand.
func (s *Switch) equal(ctx context.Context, what string) error {
	s.report(what)
	ends, err := s.Far.Ends(ctx)
	if err != nil {
		return err
	}
	for {
		done, err := s.Far.Done(ctx)
		if err != nil && ctx.Err() == nil {
			return err
		}
		short := behind(ends, done)
		if err == nil && len(short) == 0 {
			p, err := s.Store.Pending(ctx, s.name())
			if err != nil && ctx.Err() == nil {
				return err
			}
			if err == nil && p.Due+p.InProgress == 0 {
				return nil
			}
			short = []string{fmt.Sprintf("%d rows of its inbox are due or in progress", p.Due+p.InProgress)}
		}
		if !timing.Wait(ctx, lookAgain) {
			return fmt.Errorf("%w: %s; see that it runs (semel replay status), and that it is faster than what comes: %w", ErrNotEqual, strings.Join(short, ", "), ctx.Err())
		}
	}
}

func (s *Switch) name() string { return admin.GenerationName(s.Consumer, s.To) }

// behind are the lanes that have not come to their ends.
func behind(ends, done map[string]int64) (short []string) {
	for _, lane := range sorted(ends) {
		if done[lane] < ends[lane] {
			short = append(short, fmt.Sprintf("lane %s is at %d of %d", lane, done[lane], ends[lane]))
		}
	}
	return short
}

func sorted(of map[string]int64) []string { return slices.Sorted(maps.Keys(of)) }

// unfinished are the states of messages that have not taken effect, and may wait for long.
var unfinished = []store.RowState{store.StateParked, store.StateBlocked, store.StateFailedRetryable}

// clean refuses where messages of the new generation have not taken effect.
func (s *Switch) clean(ctx context.Context) error {
	if s.AllowParked {
		return nil
	}
	rows, err := s.Store.Rows(ctx, store.RowFilter{Consumer: s.name(), States: unfinished, Limit: mostShown})
	if err != nil || len(rows) == 0 {
		return err
	}
	some := fmt.Sprint(len(rows))
	if len(rows) == mostShown {
		some = fmt.Sprintf("%d or more", mostShown)
	}
	return fmt.Errorf("%w: %s were set aside or wait, as row %d; look at them (semel parked ls --consumer %s), or allow it", ErrParked, some, rows[0].Number, s.name())
}

// mostShown is how many rows are counted at most.
const mostShown = 100
