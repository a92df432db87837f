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
	"github.com/semel-go/semel/internal/generations"
	"github.com/semel-go/semel/internal/timing"
	"github.com/semel-go/semel/store"
)

// Point is a step of a switch at which tests kill the process.
type Point string

// The steps in order.
const (
	BeforeFence  Point = "BeforeFence"
	AfterFence   Point = "AfterFence"
	AfterEqual   Point = "AfterEqual"
	BeforeSwitch Point = "BeforeSwitch"
	AfterSwitch  Point = "AfterSwitch"
)

// Points returns all steps in order.
func Points() []Point {
	return []Point{BeforeFence, AfterFence, AfterEqual, BeforeSwitch, AfterSwitch}
}

// Switch describes a switch from one generation to another.
type Switch struct {
	Store interface {
		admin.Generations
		store.Inbox
	}
	Consumer string
	// To is the new generation, which the rebuild fills.
	To  int64
	Far Far
	// CatchUp is how long the switch waits for the rebuild to come close to the end of the source. Fence is the
	// time during which no process may apply messages during the switch.
	CatchUp, Fence time.Duration
	// AllowParked switches even if messages of the new generation are parked or waiting.
	AllowParked bool
	Act         store.Act
	// The function At is called at each step, for tests; may be nil. If At returns an error, the switch ends as
	// if its process had crashed.
	At func(Point) error
	// Report is called with a text about the cause for which the switch waits; may be nil.
	Report func(string)
}

// The errors of a switch that has changed nothing.
var (
	// ErrNotEqual means that the rebuild did not reach the end of the source in time.
	ErrNotEqual = errors.New("the rebuild has not reached the end of its source")
	// ErrParked means that messages of the new generation are parked or waiting.
	ErrParked = errors.New("messages of the new generation have not taken effect")
)

// ErrUnknown means that the last step failed, and that the step may have been committed.
var ErrUnknown = errors.New("it is unknown whether the generation was switched; run the same command again to find out or to switch")

// errLast marks errors of the last step.
var errLast = errors.New("the switch itself")

// killedError is an error that At returned.
type killedError struct{ error }

func (e killedError) Unwrap() error { return e.error }

// lookAgain is the interval at which the progress of the rebuild is read.
const lookAgain = 50 * time.Millisecond

// Do executes the switch and returns the previously active generation. All changes before the last step of the switch
// expire by themselves. If the process of the switch is killed, the fence (the time in which no process applies
// messages of the consumer) remains until it expires; the consumer then continues in the previous generation.
func (s *Switch) Do(ctx context.Context) (from int64, err error) {
	if from, err = s.generations(ctx); err != nil {
		return 0, err
	}
	if err := s.checkApplied(ctx); err != nil {
		return 0, err
	}
	near, cancel := context.WithTimeout(ctx, s.CatchUp)
	defer cancel()
	if err := s.waitUntilEqual(near, "the rebuild approaches the end of its source"); err != nil {
		return 0, err
	}
	err = s.reachPoint(BeforeFence)
	if err == nil {
		err = s.switchFenced(ctx, from)
	}
	var killed killedError
	if err != nil && !errors.As(err, &killed) {
		err = s.giveUp(ctx, err)
	}
	return from, err
}

// giveUp removes the fences of a failed switch. If the connection broke during the last step, the step may
// have been committed. Removing the fences waits for the commit of the last step, so giveUp can then read the
// active generation. giveUp returns nil if the switch was committed.
func (s *Switch) giveUp(ctx context.Context, why error) error {
	ctx, end := context.WithTimeout(context.WithoutCancel(ctx), liftWithin)
	defer end()
	lifted := s.Store.LiftFences(ctx, s.Consumer)
	if !errors.Is(why, errLast) || errors.Is(why, semel.ErrState) {
		return errors.Join(why, lifted)
	}
	all, err := s.Store.Generations(ctx, s.Consumer)
	for _, g := range all {
		if g.Number == s.To && g.State == generations.Active {
			return nil
		}
	}
	if err = errors.Join(lifted, err); err != nil {
		return fmt.Errorf("%w: %w", ErrUnknown, errors.Join(why, err))
	}
	return why
}

// liftWithin is the maximum time for removing the fences of a failed switch.
const liftWithin = 10 * time.Second

// generations returns the number of the active generation. generations returns an error unless generation
// s.To is being built.
func (s *Switch) generations(ctx context.Context) (from int64, err error) {
	all, err := s.Store.Generations(ctx, s.Consumer)
	if err != nil {
		return 0, err
	}
	built := false
	for _, g := range all {
		switch {
		case g.Fenced > 0:
			return 0, fmt.Errorf("another switch of consumer %s is running or was killed: wait for %v: %w", s.Consumer, g.Fenced.Round(time.Second), semel.ErrState)
		case g.State == generations.Active:
			from = g.Number
		case g.Number == s.To:
			built = g.State == generations.Building
		}
	}
	if from == s.To {
		return 0, fmt.Errorf("generation %d of consumer %s is active already: %w", s.To, s.Consumer, semel.ErrState)
	}
	if !built {
		return 0, fmt.Errorf("generation %d of consumer %s is no longer being built: %w", s.To, s.Consumer, semel.ErrState)
	}
	return from, nil
}

// switchFenced runs the steps during which no process works in the old generation. All messages that the
// old generation has applied come before the current end of the source, even if the consumer's recorded
// position is older. When the rebuild has reached the current end, the new generation has also applied all
// messages that the old generation has applied.
func (s *Switch) switchFenced(ctx context.Context, from int64) error {
	ctx, cancel := context.WithTimeout(ctx, s.Fence)
	defer cancel()
	s.report("running transactions in the old generation finish")
	if err := s.Store.FenceGeneration(ctx, s.Consumer, from, s.Fence); err != nil {
		return fmt.Errorf("a batch of the live consumer did not end in time, or another switch is running: %w", err)
	}
	if err := s.reachPoint(AfterFence); err != nil {
		return err
	}
	if err := s.waitUntilEqual(ctx, "the rebuild reaches the end of its source"); err != nil {
		return err
	}
	if err := s.reachPoint(AfterEqual); err != nil {
		return err
	}
	if err := s.Store.FenceGeneration(ctx, s.Consumer, s.To, s.Fence); err != nil {
		return fmt.Errorf("a batch of the rebuild did not end in time: %w", err)
	}
	if err := s.checkApplied(ctx); err != nil {
		return err
	}
	if err := s.reachPoint(BeforeSwitch); err != nil {
		return err
	}
	if err := s.Store.SwitchGeneration(ctx, s.Consumer, from, s.To, s.Act); err != nil {
		return fmt.Errorf("%w: %w", errLast, err)
	}
	return s.reachPoint(AfterSwitch)
}

func (s *Switch) reachPoint(p Point) error {
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

// waitUntilEqual waits until the rebuild has reached the current end of the source and has no messages in
// progress.
func (s *Switch) waitUntilEqual(ctx context.Context, what string) error {
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
		short := unfinishedLanes(ends, done)
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
			return fmt.Errorf("%w: %s; check that it runs (semel replay status) and is faster than new messages arrive: %w", ErrNotEqual, strings.Join(short, ", "), ctx.Err())
		}
	}
}

func (s *Switch) name() string { return admin.GenerationName(s.Consumer, s.To) }

// unfinishedLanes describes the lanes in which the rebuild has not reached the end.
func unfinishedLanes(ends, done map[string]int64) (short []string) {
	for _, lane := range sortedLanes(ends) {
		if done[lane] < ends[lane] {
			short = append(short, fmt.Sprintf("lane %s is at %d of %d", lane, done[lane], ends[lane]))
		}
	}
	return short
}

func sortedLanes(of map[string]int64) []string { return slices.Sorted(maps.Keys(of)) }

// unappliedStates has the states of messages that were not applied and may wait for a long time.
var unappliedStates = []store.RowState{store.StateParked, store.StateBlocked, store.StateFailedRetryable}

// checkApplied returns an error if messages of the new generation were not applied.
func (s *Switch) checkApplied(ctx context.Context) error {
	if s.AllowParked {
		return nil
	}
	rows, err := s.Store.Rows(ctx, store.RowFilter{Consumer: s.name(), States: unappliedStates, Limit: mostShown})
	if err != nil || len(rows) == 0 {
		return err
	}
	some := fmt.Sprint(len(rows))
	if len(rows) == mostShown {
		some = fmt.Sprintf("%d or more", mostShown)
	}
	return fmt.Errorf("%w: %s are parked or waiting, such as row %d; list them (semel messages ls --consumer %s), or allow them with --allow-parked", ErrParked, some, rows[0].Number, s.name())
}

// mostShown is the number at which counting of rows stops.
const mostShown = 100
