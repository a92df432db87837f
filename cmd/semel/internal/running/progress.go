package running

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/semel-go/semel"
)

// Live shows one line a consumer on a terminal and lets a log be written above
// the lines. Close it before anything else is written there.
type Live struct {
	terminal  io.Writer
	container *mpb.Progress
	bars      []*mpb.Bar
}

// refresh is how often the lines are drawn.
const refresh = 200 * time.Millisecond

// NewLive shows nothing until lines are added.
func NewLive(terminal io.Writer) *Live {
	container := mpb.New(mpb.WithOutput(terminal), mpb.WithRefreshRate(refresh), mpb.WithAutoRefresh())
	return &Live{terminal: terminal, container: container}
}

// Write prints above the lines, and after Close below them.
func (l *Live) Write(p []byte) (int, error) {
	n, err := l.container.Write(p)
	if errors.Is(err, mpb.ErrDone) {
		return l.terminal.Write(p)
	}
	return n, err
}

// Add shows a consumer until Close. counts and source, which says how far it is
// behind or nothing, may be called at any time.
func (l *Live) Add(name string, counts func() semel.Counts, source func() string) {
	meter := meter{now: time.Now, counts: counts, source: source, at: time.Now()}
	show := decor.Any(func(decor.Statistics) string { return name + "  " + meter.line() })
	l.bars = append(l.bars, l.container.New(0, mpb.NopStyle(), mpb.PrependDecorators(show)))
}

// Close draws the lines a last time and leaves them.
func (l *Live) Close() {
	for _, b := range l.bars {
		b.SetTotal(-1, true)
	}
	l.container.Wait()
}

// meter turns counts into a line with a rate over the last seconds. It is used
// by one goroutine.
type meter struct {
	now    func() time.Time
	counts func() semel.Counts
	source func() string
	rate   float64
	at     time.Time
	then   int64
}

// settle is how long an old rate takes to lose half of its weight.
const settle = time.Second

// line is short, for a terminal: counts that are zero are left out.
func (m *meter) line() string {
	c, now := m.counts(), m.now()
	done := c.Deliveries - c.InFlight
	if !m.at.IsZero() {
		if passed := now.Sub(m.at); passed > 0 {
			fresh := float64(done-m.then) / passed.Seconds()
			weight := float64(passed) / float64(passed+settle)
			m.rate += (fresh - m.rate) * weight
		}
	}
	m.at, m.then = now, done
	source := m.source()
	if source != "" {
		source = "  " + source
	}
	var others strings.Builder
	for _, l := range endings() {
		if n := l.count(c); n > 0 {
			fmt.Fprintf(&others, "  %s %d", l.name, n)
		}
	}
	return fmt.Sprintf("%.0f/s%s  deliveries %d%s", m.rate, source, c.Deliveries, others.String())
}
