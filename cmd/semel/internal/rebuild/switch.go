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

// Point names a step of a switch at which tests kill it.
type Point string

// The points, in order.
const (
	BeforeFence  Point = "BeforeFence"
	AfterFence   Point = "AfterFence"
	AfterEqual   Point = "AfterEqual"
	BeforeSwitch Point = "BeforeSwitch"
	AfterSwitch  Point = "AfterSwitch"
)

// Points returns the points in order.
func Points() []Point {
	return []Point{BeforeFence, AfterFence, AfterEqual, BeforeSwitch, AfterSwitch}
}

// Switch describes a switch of generations.
type Switch struct {
	Store interface {
		admin.Generations
		store.Inbox
	}
	Consumer string
	// To is the generation that is being built.
	To  int64
	Far Far
	// CatchUp limits how long the rebuild may take to come near the end; Fence limits how long no process
	// applies anything.
	CatchUp, Fence time.Duration
	// AllowParked switches although messages of the new generation are parked or waiting.
	AllowParked bool
	Act         store.Act
	// At, if not nil, is called at each point. An error of it ends the switch like a crash of its process.
	// For tests.
	At func(Point) error
	// Report, if not nil, is called with what the switch waits for.
	Report func(string)
}

// Errors of a switch that has changed nothing.
var (
	// ErrNotEqual: the rebuild did not reach the end of the source in time.
	ErrNotEqual = errors.New("the rebuild has not reached the end of its source")
	// ErrParked: messages of the new generation are parked or waiting.
	ErrParked = errors.New("messages of the new generation have not taken effect")
)

// ErrUnknown: the last step has failed, and it is unknown whether it was committed.
var ErrUnknown = errors.New("it is unknown whether the generation was switched; run the same command again to find out or to switch")

// errLast: the last step has failed.
var errLast = errors.New("the switch itself")

// killedError is an error of At.
type killedError struct{ error }

func (e killedError) Unwrap() error { return e.error }

// lookAgain is the interval in which the progress of the rebuild is read.
const lookAgain = 50 * time.Millisecond

// Do switches and returns the generation that was active before. Until its last step every change
// expires by itself: a killed switch leaves a fence, which expires, and the consumer continues in its
// previous generation.
func (s *Switch) Do(ctx context.Context) (from int64, err error) {
	if from, err = s.generations(ctx); err != nil {
		return 0, err
	}
	if err := s.clean(ctx); err != nil {
		return 0, err
	}
	near, cancel := context.WithTimeout(ctx, s.CatchUp)
	defer cancel()
	if err := s.equal(near, "the rebuild approaches the end of its source"); err != nil {
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

// giveUp ends the fences of a switch that failed. A last step that failed with a broken connection may
// have committed. Lifting the fences waits for that commit, so the active generation can be read
// afterwards. giveUp returns nil if the switch is done.
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

// liftWithin limits how long ending the fences of a failed switch may take.
const liftWithin = 10 * time.Second

// generations finds the active generation and checks that the other one is being built.
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

// fenced runs the steps during which no process works in the old generation. Everything applied there
// lies before the current end of the source, even if the source has not recorded it. Once the rebuild
// has reached that end, no message was applied in the old generation alone.
func (s *Switch) fenced(ctx context.Context, from int64) error {
	ctx, cancel := context.WithTimeout(ctx, s.Fence)
	defer cancel()
	s.report("running transactions in the old generation finish")
	if err := s.Store.FenceGeneration(ctx, s.Consumer, from, s.Fence); err != nil {
		return fmt.Errorf("a batch of the live consumer did not end in time, or another switch is running: %w", err)
	}
	if err := s.at(AfterFence); err != nil {
		return err
	}
	if err := s.equal(ctx, "the rebuild reaches the end of its source"); err != nil {
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

// equal waits until the rebuild has reached the current end of the source and has no messages in
// flight.
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
			return fmt.Errorf("%w: %s; check that it runs (semel replay status) and is faster than new messages arrive: %w", ErrNotEqual, strings.Join(short, ", "), ctx.Err())
		}
	}
}

func (s *Switch) name() string { return admin.GenerationName(s.Consumer, s.To) }

// behind returns the lanes that have not reached their ends.
func behind(ends, done map[string]int64) (short []string) {
	for _, lane := range sorted(ends) {
		if done[lane] < ends[lane] {
			short = append(short, fmt.Sprintf("lane %s is at %d of %d", lane, done[lane], ends[lane]))
		}
	}
	return short
}

func sorted(of map[string]int64) []string { return slices.Sorted(maps.Keys(of)) }

// unfinished are the states of messages that have not taken effect and may wait for long.
var unfinished = []store.RowState{store.StateParked, store.StateBlocked, store.StateFailedRetryable}

// clean returns an error if messages of the new generation have not taken effect.
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
	return fmt.Errorf("%w: %s are parked or waiting, such as row %d; list them (semel messages ls --consumer %s), or allow them with --allow-parked", ErrParked, some, rows[0].Number, s.name())
}

// mostShown is how many rows are counted at most.
const mostShown = 100
