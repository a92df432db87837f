package file

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/source"
)

// generation is one file under the path. If the path gets another file, or if the file is truncated, a new
// generation begins, with offsets of its own.
type generation struct {
	number int
	file   *os.File
	track  tracker
	// abandoned is true if the lines of the file cannot be read again.
	abandoned bool
	// reportedLine is 0, or 1 plus the offset of an incomplete last line that Notice has reported. Only Fetch uses
	// the field.
	reportedLine int64
}

// input reads the bytes of a lane.
type input interface {
	// begin opens the input. The lane calls begin until the call succeeds.
	begin(ctx context.Context) error
	// fill adds bytes to the scanner, and reports whether the caller must ask the scanner again. fill does
	// not wait.
	fill() (bool, error)
	// reread reads a nacked line once more.
	reread(b *nackedLine) (line, error)
	// The lane calls nextCheck if there was nothing to read. nextCheck returns the time of the next check, or the zero
	// time if the caller must wait for a wake-up.
	nextCheck(ctx context.Context) time.Time
	// Each Fetch at the end of the data calls onEnd after all lines are acked.
	onEnd(ctx context.Context)
}

// lane is the common part of Source and Stream. A lane converts lines to deliveries and tracks the deliveries.
type lane struct {
	ledger
	fault    error
	options  Options
	id       source.Lane
	decoder  decoder
	input    input
	observer source.LaneObserver

	// Only the goroutine that calls Fetch uses the fields below and the decoder.

	begun   bool
	scan    *scanner
	current *generation
	// atLastLine is true if the bytes that are left in the scanner seem to be the last line. finished is
	// true if a second read found the end of the file at the same offset.
	atLastLine, finished bool
	// The field caughtUp is true if the last check found no new bytes.
	caughtUp bool
	// A delivery that was too large for the last Fetch.
	held *source.Delivery
	// The field endless is true if the input may never end.
	endless bool
}

func newLane(o Options, name, topic string) lane {
	o, err := o.withDefaults(name)
	return lane{
		ledger: newLedger(), fault: err, options: o, decoder: decoder{format: o.Format, topic: topic},
		id: source.Lane{ID: o.Lane, Epoch: 1},
	}
}

// Lanes implements source.Source. The lane is assigned with the first successful Fetch, and is never lost.
func (l *lane) Lanes(o source.LaneObserver) { l.observer = o }

// Flow pauses or resumes the lane. A Fetch in progress may still return lines of a paused lane.
func (l *lane) Flow(which source.Lane, on bool) {
	if which != l.id {
		return
	}
	l.mu.Lock()
	l.paused = !on
	l.mu.Unlock()
	l.wakeUp()
}

// Fetch waits for lines and returns them. Fetch returns source.ErrEnd when all lines were read and acked, and an error
// that wraps semel.ErrClosed after Close.
func (l *lane) Fetch(ctx context.Context, most source.Bound) ([]source.Delivery, error) {
	if err := l.start(ctx); err != nil {
		if ended := ctx.Err(); ended != nil {
			return nil, ended
		}
		return nil, err
	}
	for ctx.Err() == nil {
		paused, closed := l.flags()
		switch {
		case closed:
			return nil, fmt.Errorf("file %s: %w", l.id.ID, semel.ErrClosed)
		case paused:
			l.wait(ctx, time.Time{})
			continue
		}
		b := batch{most: most}
		next, err := l.take(ctx, &b)
		if len(b.out) > 0 {
			return b.out, nil
		}
		if _, closed := l.flags(); err != nil && !closed {
			return nil, err
		}
		l.wait(ctx, next)
	}
	return nil, nil
}

func (l *lane) start(ctx context.Context) error {
	if l.begun || ctx.Err() != nil {
		return nil
	}
	if _, closed := l.flags(); closed {
		return nil
	}
	if l.fault != nil {
		return l.fault
	}
	if err := l.input.begin(ctx); err != nil {
		return err
	}
	l.begun = true
	if l.observer != nil {
		l.observer.Given(l.id)
	}
	return nil
}

// take fills the batch with available lines. If no line is available, take returns the time of the next check.
func (l *lane) take(ctx context.Context, b *batch) (time.Time, error) {
	if l.held != nil && l.add(b, *l.held) {
		l.held = nil
	}
	due, err := l.takeNacked(b)
	if err == nil {
		err = l.takeLines(ctx, b)
	}
	if err != nil || len(b.out) > 0 || ctx.Err() != nil {
		return time.Time{}, err
	}
	if l.finished && l.isSettled() {
		l.input.onEnd(ctx)
		return time.Time{}, source.ErrEnd
	}
	return minTime(due, l.input.nextCheck(ctx)), nil
}

func minTime(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// takeNacked adds the nacked lines whose delay has passed, and returns the time of the next nacked line.
func (l *lane) takeNacked(b *batch) (time.Time, error) {
	for l.held == nil && !b.isFull() {
		back, next := l.takeDue()
		if back == nil {
			return next, nil
		}
		if back.message != nil {
			l.addOrHold(b, l.delivery(back.message.copyForRedelivery()))
			continue
		}
		found, err := l.input.reread(back)
		if err != nil {
			l.putBack(back)
			return time.Time{}, err
		}
		l.addOrHold(b, l.read(found, back.generation))
	}
	return time.Time{}, nil
}

func (l *lane) takeLines(ctx context.Context, b *batch) error {
	if l.hasTooManyNacked() {
		return nil
	}
	for l.held == nil && !b.isFull() && ctx.Err() == nil {
		if found, ok := l.nextLine(); ok {
			d := l.read(found, l.current)
			l.deliver(d.Handle.(*deliveryHandle))
			l.addOrHold(b, d)
			continue
		}
		if more, err := l.checkForMore(); !more {
			return err
		}
	}
	return nil
}

// checkForMore checks for more bytes after all known bytes were read.
func (l *lane) checkForMore() (more bool, err error) {
	more, err = l.input.fill()
	l.caughtUp = !more && err == nil
	return more, err
}

// nextLine returns the next line that has a line end. At the end of the data, nextLine also returns a complete line
// without a line end.
func (l *lane) nextLine() (line, bool) {
	found, ok := l.scan.nextLine(false)
	if ok || !l.atLastLine {
		return found, ok
	}
	if rest, some := l.scan.rest(); some && !l.decoder.isComplete(rest) {
		return line{}, false
	}
	return l.scan.nextLine(true)
}

// reportIncompleteLine reports an incomplete last line to Notice, once.
func (l *lane) reportIncompleteLine(remedy string) {
	rest, some := l.scan.rest()
	if !some || l.current.reportedLine == rest.start+1 {
		return
	}
	l.current.reportedLine = rest.start + 1
	l.options.Notice(fmt.Sprintf("file %s: the last line, from byte %d, has no line end and is no whole JSON object or array; it is left unread: %s",
		l.id.ID, rest.start, remedy))
}

// read converts a line to a delivery.
func (l *lane) read(found line, from *generation) source.Delivery {
	d := l.decoder.begin(found)
	d.generation = from
	return l.delivery(d)
}

func (l *lane) delivery(d *deliveryHandle) source.Delivery {
	out := source.Delivery{Message: &d.message, Lane: l.id, Before: source.Unknown, Refused: d.refused, Detail: d.detail(), Handle: d}
	if d.undecoded {
		out.Undecoded = d
	}
	return out
}

// addOrHold adds a delivery to the batch. If the delivery does not fit, addOrHold keeps the delivery for the next
// batch.
func (l *lane) addOrHold(b *batch, d source.Delivery) {
	if !l.add(b, d) {
		l.held = &d
	}
}

func (l *lane) add(b *batch, d source.Delivery) bool {
	size := int64(len(d.Message.Body) + len(d.Message.Key))
	for _, h := range d.Message.Headers {
		size += int64(len(h.Name) + len(h.Value))
	}
	return b.add(d, size)
}

// batch is the result of one Fetch.
type batch struct {
	most  source.Bound
	bytes int64
	out   []source.Delivery
}

func (b *batch) isFull() bool { return len(b.out) >= max(1, b.most.Messages) }

// add adds a delivery if it fits into the batch, and reports whether the delivery was added. The first delivery always
// fits.
func (b *batch) add(d source.Delivery, size int64) bool {
	if len(b.out) > 0 && (b.isFull() || b.bytes+size > b.most.Bytes) {
		return false
	}
	b.bytes += size
	b.out = append(b.out, d)
	return true
}

// wait waits until ctx ends, until a wake-up, or until the given time if that is not zero.
func (l *lane) wait(ctx context.Context, until time.Time) {
	var at <-chan time.Time
	if !until.IsZero() {
		timer := time.NewTimer(time.Until(until))
		defer timer.Stop()
		at = timer.C
	}
	select {
	case <-ctx.Done():
	case <-l.wake:
	case <-at:
	}
}

// Settle implements source.Source, in memory. A nacked line is read again. Files have no dead letters. If the consumer
// asks for a dead letter, Settle returns an error that wraps semel.ErrUnsupported, and the line is delivered again.
func (l *lane) Settle(_ context.Context, all []source.Settlement) ([]int, error) {
	var left []int
	for i, s := range all {
		d, ok := s.Delivery.Handle.(*deliveryHandle)
		switch {
		case !ok || s.Delivery.Lane != l.id:
		case s.Kind == semel.DeadLetter:
			left = append(left, i)
		default:
			l.settle(d, s)
		}
	}
	l.wakeUp()
	if left != nil {
		return left, fmt.Errorf("file %s: %w: a file has no dead letters; park the message instead", l.id.ID, semel.ErrUnsupported)
	}
	return nil, nil
}
