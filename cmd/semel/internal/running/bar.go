package running

import (
	"fmt"
	"io"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// Bar is a progress bar on a terminal. Call Close before anything else is written to the terminal.
type Bar struct {
	container *mpb.Progress
	bar       *mpb.Bar
}

// NewBar shows an empty bar.
func NewBar(screen io.Writer, total int) *Bar {
	container := mpb.New(mpb.WithOutput(screen), mpb.WithRefreshRate(refresh), mpb.WithAutoRefresh(), mpb.WithWidth(barWidth))
	bar := container.New(int64(total), mpb.BarStyle(),
		mpb.PrependDecorators(decor.CountersNoUnit("%d of %d messages ")),
		mpb.AppendDecorators(decor.Percentage()))
	return &Bar{container, bar}
}

const barWidth = 40

// Set sets the number of completed messages.
func (b *Bar) Set(done int) { b.bar.SetCurrent(int64(done)) }

// Close draws the bar once more and leaves it on the screen.
func (b *Bar) Close() {
	b.bar.Abort(false)
	b.container.Wait()
}

// Lines prints the progress as lines, at an interval. Lines must be used by one goroutine only.
type Lines struct {
	to        io.Writer
	total     int
	now       func() time.Time
	began     time.Time
	printedAt time.Time
}

// NewLines returns a Lines. Lines prints the first line after one interval.
func NewLines(to io.Writer, total int, now func() time.Time) *Lines {
	return &Lines{to: to, total: total, now: now, began: now(), printedAt: now()}
}

// printInterval is the interval between lines.
const printInterval = 10 * time.Second

// Set sets the number of completed messages.
func (l *Lines) Set(done int) {
	now := l.now()
	if now.Sub(l.printedAt) < printInterval {
		return
	}
	l.printedAt = now
	fmt.Fprintf(l.to, "%d of %d messages, %.0f/s\n", done, l.total, float64(done)/now.Sub(l.began).Seconds())
}

// Close does nothing, because the command prints the totals.
func (l *Lines) Close() {}
