package running

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/terminal"
)

// Live shows one line for each consumer on a terminal and lets a log be written above the lines. Close
// it before anything else is written there.
type Live struct {
	screen    io.Writer
	container *mpb.Progress
	bars      []*mpb.Bar
}

// refresh is the interval in which the lines are drawn.
const refresh = 200 * time.Millisecond

// NewLive shows nothing until lines are added.
func NewLive(screen io.Writer) *Live {
	container := mpb.New(mpb.WithOutput(screen), mpb.WithRefreshRate(refresh), mpb.WithAutoRefresh())
	return &Live{screen: screen, container: container}
}

// Write prints above the lines, and after Close below them.
func (l *Live) Write(p []byte) (int, error) {
	n, err := l.container.Write(p)
	if errors.Is(err, mpb.ErrDone) {
		return l.screen.Write(p)
	}
	return n, err
}

// Watched is the source of a live line. Its methods may be called at any time.
type Watched interface {
	Counts() semel.Counts
	// Ready is false, with the reason, while the consumer or a lane is blocked.
	Ready() (bool, string)
	// Source returns how far the consumer is behind its source, or nothing.
	Source() string
}

// Add shows a consumer until Close.
func (l *Live) Add(name string, c Watched) {
	meter := meter{now: time.Now, consumer: c, at: time.Now()}
	show := decor.Any(func(s decor.Statistics) string {
		return meter.line(name, s.AvailableWidth)
	})
	l.bars = append(l.bars, l.container.New(0, mpb.NopStyle(), mpb.PrependDecorators(show), mpb.BarFillerTrim()))
}

// Interrupted erases the ^C that a terminal shows below the lines. With it the lines would be drawn
// again in the wrong column, and only in part.
func (l *Live) Interrupted() { _, _ = io.WriteString(l.screen, "\r\x1b[K") }

// Close draws the lines a last time and leaves them.
func (l *Live) Close() {
	for _, b := range l.bars {
		b.SetTotal(-1, true)
	}
	l.container.Wait()
}

// longestName limits the columns of a consumer's name on its line.
const longestName = 24

// longestReason limits the columns of the reason why a consumer is not ready.
const longestReason = 40

// meter formats counts for a line, with a rate over the last seconds. meter is used by one
// goroutine.
type meter struct {
	now      func() time.Time
	consumer Watched
	rate     float64
	at       time.Time
	then     int64
}

// settle is the half-life of an old rate.
const settle = time.Second

// bad are the counts that need attention. They come first and are the last that a narrow terminal
// drops.
var bad = []string{"failed", "dead_lettered", "inbox.dead_lettered", "parked", "inbox.parked", "conflicts", "discarded", "inbox.discarded"}

// urgency returns the place of a count among the bad ones, or the place after them.
func urgency(name string) int {
	if i := slices.Index(bad, name); i >= 0 {
		return i
	}
	return len(bad)
}

// line returns the consumer's line, at most the given columns wide. A reason for not being ready is
// cut instead of dropped, because it explains the counts.
func (m *meter) line(name string, columns int) string {
	const between, missing = "  ", "  …"
	name = terminal.Cut(name, longestName)
	reason := longestReason
	if columns != terminal.Unlimited {
		reason = max(1, min(reason, columns-terminal.Columns(name+between+missing)))
	}
	return terminal.Parts(columns, append([]string{name}, m.parts(reason)...)...)
}

// parts returns the parts of the line, most urgent first, without counts that are zero. The reason for
// not being ready takes at most the given columns.
func (m *meter) parts(reason int) []string {
	c := m.consumer.Counts()
	done := c.Deliveries - c.InFlight
	for _, l := range fromInbox() {
		done += l.count(c)
	}
	m.measure(done)
	var parts, good []string
	switch ready, why := m.consumer.Ready(); {
	case !ready:
		parts = append(parts, terminal.Cut("not ready: "+terminal.Line(why), reason))
	case why != "": // the consumer works, but one of its lanes is blocked
		parts = append(parts, terminal.Cut(terminal.Line(why), reason))
	}
	lines := append(endings(), fromInbox()...)
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(urgency(a.name), urgency(b.name)) })
	for _, l := range lines {
		shown := fmt.Sprintf("%s %d", l.name, l.count(c))
		switch {
		case l.count(c) == 0:
		case urgency(l.name) < len(bad):
			parts = append(parts, shown)
		default:
			good = append(good, shown)
		}
	}
	parts = append(parts, fmt.Sprintf("%.0f/s", m.rate))
	if source := terminal.Line(m.consumer.Source()); source != "" {
		parts = append(parts, source)
	}
	return append(append(parts, fmt.Sprintf("deliveries %d", c.Deliveries)), good...)
}

// measure adds the progress since the last call to the rate.
func (m *meter) measure(done int64) {
	now := m.now()
	if passed := now.Sub(m.at); passed > 0 {
		fresh := float64(done-m.then) / passed.Seconds()
		weight := float64(passed) / float64(passed+settle)
		m.rate += (fresh - m.rate) * weight
	}
	m.at, m.then = now, done
}
