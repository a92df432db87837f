package demo

import (
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// watch shows one line per consumer on a terminal. Without a terminal, watch shows nothing.
type watch struct {
	container  *mpb.Progress
	deliveries int
	bars       []*mpb.Bar
}

// barWidth is the width of the progress bar. With this width, the texts beside the bar fit on a narrow
// terminal.
const barWidth = 24

// refresh is the interval at which the lines are redrawn.
const refresh = 100 * time.Millisecond

func newWatch(terminal io.Writer, deliveries int) *watch {
	w := &watch{deliveries: deliveries}
	if terminal != nil {
		w.container = mpb.New(mpb.WithOutput(terminal), mpb.WithRefreshRate(refresh), mpb.WithAutoRefresh(), mpb.WithWidth(barWidth))
	}
	return w
}

// add adds a line for a consumer. add returns a function that updates the line.
func (w *watch) add(name string) func(*broker) {
	if w.container == nil {
		return func(*broker) {}
	}
	var crashed atomic.Int64
	bar := w.container.New(int64(w.deliveries), mpb.BarStyle(),
		mpb.PrependDecorators(decor.Name(name, decor.WC{W: len(SettleFirst) + 1, C: decor.DindentRight})),
		mpb.AppendDecorators(decor.CountersNoUnit("%d of %d settled"), decor.Any(func(decor.Statistics) string {
			return fmt.Sprintf("  killed %d times", crashed.Load())
		})))
	w.bars = append(w.bars, bar)
	return func(b *broker) {
		crashed.Store(int64(b.crashCount))
		bar.SetCurrent(int64(b.ackedCount()))
	}
}

// close draws the lines once more and leaves them on the screen.
func (w *watch) close() {
	if w.container == nil {
		return
	}
	for _, b := range w.bars {
		b.SetTotal(-1, true)
	}
	w.container.Wait()
}
