package recording

import (
	"bytes"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/semel-go/semel/internal/machine"
)

// Result is what a replay found.
type Result struct {
	// Steps are those that were replayed, Bytes the size of their decisions.
	Steps int
	Bytes int64
	// Differs is the first step that was decided otherwise, nil if none was.
	Differs *Difference
	// Broken are the laws that steps break, by step; at most mostBroken.
	Broken []At
	// Unended: the last event was heard, and its step did not end. Panic is how it ends
	// here, if it panics.
	Unended bool
	Panic   string
	// Load is what the machine has in hand behind the last step, at Now.
	Load machine.Load
	Now  time.Duration
}

// At is a law that a step breaks.
type At struct {
	Step int
	Broken
}

// Difference is a step that was decided otherwise.
type Difference struct {
	Step             int
	Event            string
	Recorded, Replay []string
}

// Step is a step, as text.
type Step struct {
	Number  int
	At      time.Duration
	Event   string
	Actions []string
}

const mostBroken = 10

// ErrOtherShape is returned for a recording of a build whose machine is built otherwise.
var ErrOtherShape = errors.New("the machine of the build that recorded it has other parts than this build's")

// player replays one recording.
type player struct {
	file    *File
	known   *known
	watch   watch
	events  eventReader
	actions actionWriter
	now     time.Duration
	each    func(Step)
	result  Result
}

// Replay gives a machine of this build what was recorded, from the first picture on, and
// compares what it decides byte for byte. It ends at the first difference. each, if not
// nil, is told each step.
func (f *File) Replay(each func(Step)) (result Result, err error) {
	if f.Shape != shapeNumber() {
		return Result{}, fmt.Errorf("%w: it was recorded by %s, and this is %s; build the revision that recorded it", ErrOtherShape, f.Build, ThisBuild())
	}
	p := &player{file: f, each: each}
	defer func() {
		if r := recover(); r != nil { // of a picture that is none
			err = fmt.Errorf("%w: %v", ErrDamaged, r)
		}
	}()
	first := restorer{reader: reader{in: f.pieces[0].Picture}}
	p.now = first.time()
	p.known = first.restore()
	if first.err != nil {
		return Result{}, first.err
	}
	p.watch.workers = make([]watched, len(p.known.Flights))
	for i, flight := range p.known.Flights {
		p.watch.workers[i].open = flight != nil
	}
	p.events.known = p.known
	for i, piece := range f.pieces {
		if more, err := p.play(piece.Steps, i == len(f.pieces)-1); err != nil || !more {
			return p.end(), err
		}
	}
	return p.end(), nil
}

func (p *player) end() Result {
	if p.result.Panic == "" {
		p.result.Load, p.result.Now = p.known.Machine.Load(), p.now
	}
	return p.result
}

// play replays the steps of a segment. It reports whether the next one is to be.
func (p *player) play(steps []byte, last bool) (more bool, err error) {
	p.events.in, p.events.last = steps, nil
	for len(p.events.in) > 0 {
		p.now += p.events.time()
		event := p.events.event()
		if p.events.err != nil {
			return false, p.events.err
		}
		p.result.Steps++
		p.result.Unended = last && len(p.events.in) == 0
		told := describe(event, p.known, p.file.IDs) // before the step, which may change it
		actions, fault := p.step(event)
		if fault != "" {
			p.result.Panic = fault
			p.tell(told, []string{"panic: " + fault})
			return false, nil
		}
		if more, err := p.compare(event, told, actions); err != nil || !more {
			return false, err
		}
	}
	return true, nil
}

// step is the machine's, with a panic turned into a fault.
func (p *player) step(e machine.Event) (actions []machine.Action, fault string) {
	defer func() {
		if r := recover(); r != nil {
			fault = fmt.Sprintf("%v\n%s", r, debug.Stack())
		}
	}()
	return p.known.Machine.Step(e, p.now), ""
}

// compare holds a step against what was recorded of it.
func (p *player) compare(event machine.Event, told string, actions []machine.Action) (more bool, err error) {
	w := &p.actions
	w.out = w.out[:0]
	w.uint(uint64(len(actions)))
	w.actions(actions)
	p.tell(told, show(w.out))
	if p.result.Unended { // nothing was recorded of it
		return false, nil
	}
	recorded := p.events.in
	if !bytes.HasPrefix(recorded, w.out) {
		p.result.Differs = &Difference{Step: p.result.Steps, Event: told, Recorded: show(recorded), Replay: show(w.out)}
		return false, nil
	}
	p.events.in = recorded[len(w.out):]
	p.result.Bytes += int64(len(w.out))
	p.known.step(event, actions)
	if b := p.watch.step(event, p.now, actions); b != nil && len(p.result.Broken) < mostBroken {
		p.result.Broken = append(p.result.Broken, At{p.result.Steps, *b})
	}
	return true, nil
}

func (p *player) tell(event string, actions []string) {
	if p.each != nil {
		p.each(Step{Number: p.result.Steps, At: p.now, Event: event, Actions: actions})
	}
}
