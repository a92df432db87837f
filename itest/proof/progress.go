package proof

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
	// Watch is given what is to be counted while the proof runs.
	Watch(...Count)
	// Close is called at the end.
	Close()
}

// Count is something that grows to a total.
type Count struct {
	Name  string
	Total int64
	Now   func() int64
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
func (l *Lines) Watch(...Count) {}

// Close implements Progress.
func (l *Lines) Close() {}

// Bars draws counts as bars, below the steps.
type Bars struct {
	*Lines
	container     *mpb.Progress
	bars          []*mpb.Bar
	stopped, done chan struct{}
}

// NewBars draws on a terminal.
func NewBars(terminal io.Writer) *Bars {
	container := mpb.New(mpb.WithOutput(terminal), mpb.WithAutoRefresh())
	return &Bars{Lines: NewLines(container), container: container}
}

// Watch implements Progress.
func (b *Bars) Watch(counts ...Count) {
	for _, c := range counts {
		b.bars = append(b.bars, b.container.AddBar(c.Total,
			mpb.PrependDecorators(decor.Name(c.Name, decor.WCSyncWidth), decor.CountersNoUnit(" %d / %d", decor.WCSyncWidth))))
	}
	b.stopped, b.done = make(chan struct{}), make(chan struct{})
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
			for i, c := range counts {
				b.bars[i].SetCurrent(c.Now())
			}
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
