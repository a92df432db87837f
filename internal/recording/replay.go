package recording

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
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

// Step is a step, with event and actions as the file has them.
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
	known  *known
	watch  watch
	reader reader
	writer writer
	now    time.Duration
	each   func(Step)
	result Result
}

// line is a line of a recording: a picture, an event or the actions that answer one.
type line struct {
	At      time.Duration     `json:"at"`
	Picture []any             `json:"picture"`
	Event   string            `json:"event"`
	With    json.RawMessage   `json:"with"`
	Actions []json.RawMessage `json:"actions"`
}

// decode keeps numbers as they are written.
func decode(text []byte, into any) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	must(d.Decode(into))
}

// Replay gives a machine of this build what was recorded, from the picture on, and
// compares what it decides byte for byte. It ends at the first difference. each, if not
// nil, is told each step.
func (f *File) Replay(each func(Step)) (result Result, err error) {
	p := &player{each: each}
	defer func() {
		switch r := recover().(type) {
		case nil:
		case error:
			if err = r; errors.Is(r, ErrOtherShape) {
				err = fmt.Errorf("%w; it was recorded by %s, and this is %s; build the revision that recorded it", r, f.Build, ThisBuild())
			} else {
				err = fmt.Errorf("%w: %w", ErrDamaged, r)
			}
		default:
			err = fmt.Errorf("%w: %v", ErrDamaged, r)
		}
	}()
	lines := slices.Collect(bytes.Lines(f.lines))
	p.begin(lines[0])
	for step := range slices.Chunk(lines[1:], 2) {
		if !p.play(step) {
			break
		}
	}
	if p.result.Panic == "" {
		p.result.Load, p.result.Now = p.known.Machine.Load(), p.now
	}
	return p.result, nil
}

// begin restores the machine from a picture.
func (p *player) begin(text []byte) {
	var first line
	decode(text, &first)
	p.now = first.At
	p.known = p.reader.restore(first.Picture)
	p.writer.known, p.writer.hide = p.known, &hider{ids: true} // it is hidden already
	p.watch.workers = make([]watched, len(p.known.Flights))
	for i, flight := range p.known.Flights {
		p.watch.workers[i].open = flight != nil
	}
}

// play replays a step: the line of its event and, if it ended, the line of its actions. It
// reports whether the next step is to be replayed.
func (p *player) play(step [][]byte) (more bool) {
	var heard line
	var with any
	decode(step[0], &heard)
	if heard.With != nil {
		decode(heard.With, &with)
	}
	event, told := p.reader.event(heard.Event, with), strings.TrimSpace(heard.Event+" "+string(heard.With))
	p.now = heard.At
	p.result.Steps++
	p.result.Unended = len(step) == 1
	actions, fault := p.step(event)
	if fault != "" {
		p.result.Panic = fault
		p.tell(told, []string{"panic: " + fault})
		return false
	}
	p.writer.out = p.writer.out[:0]
	p.writer.actions(actions)
	decided := p.writer.out
	p.tell(told, show(decided))
	switch {
	case p.result.Unended: // nothing was recorded of it
		return false
	case !bytes.Equal(step[1], decided):
		p.result.Differs = &Difference{Step: p.result.Steps, Event: told, Recorded: show(step[1]), Replay: show(decided)}
		return false
	}
	p.result.Bytes += int64(len(decided))
	p.known.step(event, actions)
	if b := p.watch.step(event, p.now, actions); b != nil && len(p.result.Broken) < mostBroken {
		p.result.Broken = append(p.result.Broken, At{p.result.Steps, *b})
	}
	return true
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

func (p *player) tell(event string, actions []string) {
	if p.each != nil {
		p.each(Step{Number: p.result.Steps, At: p.now, Event: event, Actions: actions})
	}
}

// show returns the actions of a line, each as JSON.
func show(actions []byte) (all []string) {
	var l line
	decode(actions, &l)
	for _, a := range l.Actions {
		all = append(all, string(a))
	}
	return all
}

// Hands says in words what a machine has in hand at a moment.
func Hands(l machine.Load, now time.Duration) string {
	if l.Messages == 0 {
		return "it has nothing in hand"
	}
	text := fmt.Sprintf("it has %d messages in hand, the oldest for %v: %d queued, %d in flight, %d held, %d riding, %d settling; %d of %d lanes wait, %d of %d workers stick",
		l.Messages, (now - l.Since).Round(time.Millisecond), l.Queued, l.Flying, l.Held, l.Riding, l.Settling, l.Paused, l.Lanes, l.Stuck, l.Workers)
	if l.Serial {
		text += "; batches run one at a time"
	}
	return text
}
