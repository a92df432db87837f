package running

import (
	"fmt"
	"io"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// Bar shows on a terminal how many of a number of things are done. Close it before anything else
// is written there.
type Bar struct {
	container *mpb.Progress
	bar       *mpb.Bar
}

// NewBar shows that none of so many things is done.
func NewBar(screen io.Writer, total int) *Bar {
	container := mpb.New(mpb.WithOutput(screen), mpb.WithRefreshRate(refresh), mpb.WithAutoRefresh(), mpb.WithWidth(barWidth))
	bar := container.New(int64(total), mpb.BarStyle(),
		mpb.PrependDecorators(decor.CountersNoUnit("%d of %d letters ")),
		mpb.AppendDecorators(decor.Percentage()))
	return &Bar{container, bar}
}

// barWidth is how many columns the bar itself takes.
const barWidth = 40

// Set says how many are done.
func (b *Bar) Set(done int) { b.bar.SetCurrent(int64(done)) }

// Close draws the bar a last time and leaves it.
func (b *Bar) Close() {
	b.bar.Abort(false)
	b.container.Wait()
}

// Lines tells on lines how many of a number of things are done, one in every so often. It is
// used by one goroutine.
type Lines struct {
	to    io.Writer
	total int
	now   func() time.Time
	began time.Time
	told  time.Time
}

// NewLines tells nothing yet.
func NewLines(to io.Writer, total int, now func() time.Time) *Lines {
	return &Lines{to: to, total: total, now: now, began: now(), told: now()}
}

// toldEvery is how long nothing is told.
const toldEvery = 10 * time.Second

// Set says how many are done.
func (l *Lines) Set(done int) {
	now := l.now()
	if now.Sub(l.told) < toldEvery {
		return
	}
	l.told = now
	fmt.Fprintf(l.to, "%d of %d letters, %.0f/s\n", done, l.total, float64(done)/now.Sub(l.began).Seconds())
}

// Close does nothing: what happened in all is told at the end.
func (l *Lines) Close() {}
