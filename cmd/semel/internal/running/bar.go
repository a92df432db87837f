package running

import (
	"fmt"
	"io"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// Bar shows a progress bar on a terminal. Close it before anything else is written there.
type Bar struct {
	container *mpb.Progress
	bar       *mpb.Bar
}

// NewBar shows a bar with nothing done.
func NewBar(screen io.Writer, total int) *Bar {
	container := mpb.New(mpb.WithOutput(screen), mpb.WithRefreshRate(refresh), mpb.WithAutoRefresh(), mpb.WithWidth(barWidth))
	bar := container.New(int64(total), mpb.BarStyle(),
		mpb.PrependDecorators(decor.CountersNoUnit("%d of %d messages ")),
		mpb.AppendDecorators(decor.Percentage()))
	return &Bar{container, bar}
}

// barWidth is the width of the bar in columns.
const barWidth = 40

// Set sets how many are done.
func (b *Bar) Set(done int) { b.bar.SetCurrent(int64(done)) }

// Close draws the bar a last time and leaves it.
func (b *Bar) Close() {
	b.bar.Abort(false)
	b.container.Wait()
}

// Lines reports progress on lines, at an interval. Lines is used by one goroutine.
type Lines struct {
	to    io.Writer
	total int
	now   func() time.Time
	began time.Time
	told  time.Time
}

// NewLines prints nothing yet.
func NewLines(to io.Writer, total int, now func() time.Time) *Lines {
	return &Lines{to: to, total: total, now: now, began: now(), told: now()}
}

// toldEvery is the interval between lines.
const toldEvery = 10 * time.Second

// Set sets how many are done.
func (l *Lines) Set(done int) {
	now := l.now()
	if now.Sub(l.told) < toldEvery {
		return
	}
	l.told = now
	fmt.Fprintf(l.to, "%d of %d messages, %.0f/s\n", done, l.total, float64(done)/now.Sub(l.began).Seconds())
}

// Close does nothing: the command prints the totals at the end.
func (l *Lines) Close() {}
