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

// Result is the result of a replay.
type Result struct {
	// Steps is the number of replayed steps. Bytes is the size of the actions of the replayed steps.
	Steps int
	Bytes int64
	// Differs is the first step whose actions differ from the recorded actions, or nil if no step differs.
	Differs *Difference
	// Broken contains the violations of laws by step, at most mostBroken of them.
	Broken []At
	// Unended means that the last step of the recording has an event but no actions. Panic is the text of the machine's
	// panic in the replay, or "" if the machine did not panic.
	Unended bool
	Panic   string
	// Load is the load of the machine after the last step. Now is the time of the last step.
	Load machine.Load
	Now  time.Duration
}

// At is a violation of a law by a step.
type At struct {
	Step int
	Broken
}

// Difference is a step whose actions differ from the recorded actions.
type Difference struct {
	Step             int
	Event            string
	Recorded, Replay []string
}

// Step is a replayed step, with event and actions as JSON.
type Step struct {
	Number  int
	At      time.Duration
	Event   string
	Actions []string
}

const mostBroken = 10

// ErrOtherShape is returned if the machine that made the recording has other fields than the machine of this
// build.
var ErrOtherShape = errors.New("the machine of the build that recorded it has other fields than the machine of this build")

// player replays one recording.
type player struct {
	state  *externalState
	watch  watch
	reader reader
	writer writer
	now    time.Duration
	each   func(Step)
	result Result
}

// line is a line of a recording: a snapshot of the machine's state (picture), an event, or the actions of a step.
type line struct {
	At      time.Duration     `json:"at"`
	Picture []any             `json:"picture"`
	Event   string            `json:"event"`
	With    json.RawMessage   `json:"with"`
	Actions []json.RawMessage `json:"actions"`
}

// decode decodes JSON, and decodes numbers as texts.
func decode(text []byte, into any) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	must(d.Decode(into))
}

// Replay passes the recorded events to a machine of the current build, which starts from the recorded state, and
// compares the actions byte for byte. Replay stops at the first difference. The function each, if not nil, is called
// with each step.
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
		p.result.Load, p.result.Now = p.state.Machine.Load(), p.now
	}
	return p.result, nil
}

// begin restores the machine from a snapshot of its state.
func (p *player) begin(text []byte) {
	var first line
	decode(text, &first)
	p.now = first.At
	p.state = p.reader.restore(first.Picture)
	p.writer.state, p.writer.hide = p.state, &hider{ids: true} // the recording contains hashes already
	p.watch.workers = make([]watched, len(p.state.Flights))
	for i, flight := range p.state.Flights {
		p.watch.workers[i].open = flight != nil
	}
}

// play replays a step: the line of the event and, if the step has ended, the line of the actions. play
// returns true if the next step must be replayed.
func (p *player) play(step [][]byte) (more bool) {
	var heard line
	var with any
	decode(step[0], &heard)
	if heard.With != nil {
		decode(heard.With, &with)
	}
	event, told := p.reader.readEvent(heard.Event, with), strings.TrimSpace(heard.Event+" "+string(heard.With))
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
	p.writer.writeActions(actions)
	decided := p.writer.out
	p.tell(told, show(decided))
	switch {
	case p.result.Unended: // the actions of the last step were not recorded
		return false
	case !bytes.Equal(step[1], decided):
		p.result.Differs = &Difference{Step: p.result.Steps, Event: told, Recorded: show(step[1]), Replay: show(decided)}
		return false
	}
	p.result.Bytes += int64(len(decided))
	p.state.step(event, actions)
	if b := p.watch.step(event, p.now, actions); b != nil && len(p.result.Broken) < mostBroken {
		p.result.Broken = append(p.result.Broken, At{p.result.Steps, *b})
	}
	return true
}

// step calls the machine. If the machine panics, the result fault describes the panic.
func (p *player) step(e machine.Event) (actions []machine.Action, fault string) {
	defer func() {
		if r := recover(); r != nil {
			fault = fmt.Sprintf("%v\n%s", r, debug.Stack())
		}
	}()
	return p.state.Machine.Step(e, p.now), ""
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

// Hands returns a text that describes the load of a machine at the time now.
func Hands(l machine.Load, now time.Duration) string {
	if l.Messages == 0 {
		return "it has no messages"
	}
	text := fmt.Sprintf("it has %d messages in hand, the oldest for %v: %d queued, %d in flight, %d held, %d riding, %d settling; %d of %d lanes wait, %d of %d workers stick",
		l.Messages, (now - l.Since).Round(time.Millisecond), l.Queued, l.Flying, l.Held, l.Riding, l.Settling, l.Paused, l.Lanes, l.Stuck, l.Workers)
	if l.Serial {
		text += "; batches run one at a time"
	}
	return text
}
