package assembly

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"

	"github.com/semel-go/semel/file"
	"github.com/semel-go/semel/source"
)

// watched is a file that says how far its consumer is behind its end.
type watched struct {
	*file.Source
	path string
	// fromStart says that the position of the last run is not asked for.
	fromStart bool
	done      atomic.Int64
	// began is where the last run stopped; 0 if that is the start or not known.
	began atomic.Int64
}

// Info implements source.Source: it sees each position that is saved.
func (w *watched) Info() source.Info {
	info := w.Source.Info()
	keep := info.Positions
	info.Positions = func(consumer string, store source.PositionStore) { keep(consumer, noting{store, w}) }
	return info
}

// line is for the terminal: how many bytes of the file are not settled yet.
func (w *watched) line() string {
	info, err := os.Stat(w.path)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("behind %.1f MB", float64(max(info.Size()-w.done.Load(), 0))/1e6)
}

// readBefore reports whether the file ends where the last run stopped, and where
// that is.
func (w *watched) readBefore() (int64, bool) {
	info, err := os.Stat(w.path)
	began := w.began.Load()
	return began, err == nil && began > 0 && info.Size() == began
}

// noting notes the offset of each position.
type noting struct {
	source.PositionStore
	file *watched
}

func (n noting) LoadPosition(ctx context.Context, consumer, lane string) (source.Position, bool, error) {
	if n.file.fromStart {
		return source.Position{}, false, nil
	}
	p, known, err := n.PositionStore.LoadPosition(ctx, consumer, lane)
	n.file.done.Store(p.Offset)
	n.file.began.Store(p.Offset)
	return p, known, err
}

func (n noting) SavePosition(ctx context.Context, consumer, lane string, p source.Position) error {
	err := n.PositionStore.SavePosition(ctx, consumer, lane, p)
	if err == nil {
		n.file.done.Store(p.Offset)
	}
	return err
}
