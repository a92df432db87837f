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

// Live shows one line per consumer on a terminal. Log lines that are written to Live appear above the lines
// of the consumers. Call Close before anything else is written to the terminal.
type Live struct {
	screen    io.Writer
	container *mpb.Progress
	bars      []*mpb.Bar
}

// refresh is the interval at which the lines are redrawn.
const refresh = 200 * time.Millisecond

// NewLive returns a Live without lines.
func NewLive(screen io.Writer) *Live {
	container := mpb.New(mpb.WithOutput(screen), mpb.WithRefreshRate(refresh), mpb.WithAutoRefresh())
	return &Live{screen: screen, container: container}
}

// Write prints the text p above the lines of the consumers. After Close, Write prints the text p below the
// lines.
func (l *Live) Write(p []byte) (int, error) {
	n, err := l.container.Write(p)
	if errors.Is(err, mpb.ErrDone) {
		return l.screen.Write(p)
	}
	return n, err
}

// Watched is a consumer as shown on a live line. The methods of Watched may be called at any time.
type Watched interface {
	Counts() semel.Counts
	// Ready returns false, with a text about the reason, while the consumer or one of its lanes is blocked.
	Ready() (bool, string)
	// Source returns a text about the consumer's lag, or "" if the lag is unknown.
	Source() string
}

// Add shows a line for a consumer until Close.
func (l *Live) Add(name string, c Watched) {
	meter := meter{now: time.Now, consumer: c, at: time.Now()}
	show := decor.Any(func(s decor.Statistics) string {
		return meter.line(name, s.AvailableWidth)
	})
	l.bars = append(l.bars, l.container.New(0, mpb.NopStyle(), mpb.PrependDecorators(show), mpb.BarFillerTrim()))
}

// Interrupted erases the text ^C, which the terminal shows below the lines after an interrupt. If the text ^C
// stayed, the lines would be redrawn in the wrong column.
func (l *Live) Interrupted() { _, _ = io.WriteString(l.screen, "\r\x1b[K") }

// Close draws the lines once more and leaves them on the screen.
func (l *Live) Close() {
	for _, b := range l.bars {
		b.SetTotal(-1, true)
	}
	l.container.Wait()
}

// longestName is the maximum width of a consumer's name.
const longestName = 24

// longestReason is the maximum width of the reason why a consumer is not ready.
const longestReason = 40

// meter formats a consumer's counts, and the rate of the last seconds, as a line. meter must be used by one
// goroutine only.
type meter struct {
	now           func() time.Time
	consumer      Watched
	rate          float64
	at            time.Time
	previousCount int64
}

// rateHalfLife is the half-life with which older rates count in the average rate.
const rateHalfLife = time.Second

// attentionCounts lists the counts that need attention. The line of a consumer begins with the counts that need
// attention. A narrow terminal leaves out other counts first.
var attentionCounts = []string{"failed", "dead_lettered", "inbox.dead_lettered", "parked", "inbox.parked", "conflicts", "discarded", "inbox.discarded"}

// urgency returns the index of a count in attentionCounts, or len(attentionCounts) for other counts.
func urgency(name string) int {
	if i := slices.Index(attentionCounts, name); i >= 0 {
		return i
	}
	return len(attentionCounts)
}

// line returns the consumer's line, which has at most the given width. The reason why the consumer is not
// ready can be shortened but is never left out, because it explains the counts.
func (m *meter) line(name string, columns int) string {
	const between, missing = "  ", "  …"
	name = terminal.Cut(name, longestName)
	reason := longestReason
	if columns != terminal.Unlimited {
		reason = max(1, min(reason, columns-terminal.Columns(name+between+missing)))
	}
	return terminal.Parts(columns, append([]string{name}, m.parts(reason)...)...)
}

// parts returns the parts of the line, most urgent first. Counts of zero are left out. The parameter reason
// is the maximum width of the reason why the consumer is not ready.
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
	lines := append(endingLines(), fromInbox()...)
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(urgency(a.name), urgency(b.name)) })
	for _, l := range lines {
		shown := fmt.Sprintf("%s %d", l.name, l.count(c))
		switch {
		case l.count(c) == 0:
		case urgency(l.name) < len(attentionCounts):
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

// measure updates the rate with the progress since the last call.
func (m *meter) measure(done int64) {
	now := m.now()
	if passed := now.Sub(m.at); passed > 0 {
		fresh := float64(done-m.previousCount) / passed.Seconds()
		weight := float64(passed) / float64(passed+rateHalfLife)
		m.rate += (fresh - m.rate) * weight
	}
	m.at, m.previousCount = now, done
}
