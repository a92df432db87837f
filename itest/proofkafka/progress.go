//go:build linux

package proofkafka

import (
	"fmt"
	"io"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// Progress is told how a proof goes on.
type Progress interface {
	// Say is called for each step.
	Say(step string)
	// Watch is given what counts records and effects while the proof runs.
	Watch(published, applied func() int64)
	// Close is called at the end.
	Close()
}

// Lines writes each step with the seconds since the start.
type Lines struct {
	to    io.Writer
	began time.Time
}

// NewLines starts counting.
func NewLines(to io.Writer) *Lines { return &Lines{to, time.Now()} }

// Say implements Progress.
func (l *Lines) Say(step string) {
	fmt.Fprintf(l.to, "%5.1f s  %s\n", time.Since(l.began).Seconds(), step)
}

// Watch implements Progress.
func (l *Lines) Watch(_, _ func() int64) {}

// Close implements Progress.
func (l *Lines) Close() {}

// Bars draws how many records are published and effects stand, below the steps.
type Bars struct {
	container       *mpb.Progress
	lines           *Lines
	records, events int64
	bars            []*mpb.Bar
	stopped, done   chan struct{}
}

// NewBars draws on a terminal.
func NewBars(terminal io.Writer, p Proof) *Bars {
	b := &Bars{container: mpb.New(mpb.WithOutput(terminal), mpb.WithAutoRefresh()), records: int64(p.Events + p.Duplicates), events: int64(p.Events)}
	b.lines = NewLines(b.container)
	return b
}

// Say implements Progress.
func (b *Bars) Say(step string) { b.lines.Say(step) }

// Watch implements Progress.
func (b *Bars) Watch(published, applied func() int64) {
	bar := func(name string, total int64) *mpb.Bar {
		return b.container.AddBar(total, mpb.PrependDecorators(decor.Name(name, decor.WCSyncWidth), decor.CountersNoUnit(" %d / %d", decor.WCSyncWidth)))
	}
	first, second := bar("published", b.records), bar("applied", b.events)
	b.bars, b.stopped, b.done = []*mpb.Bar{first, second}, make(chan struct{}), make(chan struct{})
	go func() {
		defer close(b.done)
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-b.stopped:
				return
			case <-ticker.C:
			}
			first.SetCurrent(published())
			second.SetCurrent(applied())
		}
	}()
}

// Close implements Progress.
func (b *Bars) Close() {
	if b.stopped != nil {
		close(b.stopped)
		<-b.done
	}
	for _, bar := range b.bars {
		bar.Abort(false)
	}
	b.container.Wait()
}
