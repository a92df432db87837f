package file

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"time"

	"github.com/semel-go/semel/source"
)

// The number of bytes before the position that are hashed. The hash shows whether a file is the same file.
const checked = 4 << 10

// saveEvery is the shortest interval at which Settle saves the position.
const saveEvery = time.Second

// saver saves the position in the store.
type saver struct {
	consumer string
	store    source.PositionStore
	// The channel busy contains a token while a position is saved, and so guards the fields below. Unlike the wait for
	// a mutex, the wait for the token ends when a context ends.
	busy   chan struct{}
	last   time.Time
	number int
	offset int64
	failed bool
}

// Info implements source.Source. Without source.Info.Positions the file is always read from its
// start.
func (s *Source) Info() source.Info {
	info := s.lane.Info()
	info.Positions = func(consumer string, store source.PositionStore) {
		s.saver.consumer, s.saver.store = consumer, store
	}
	return info
}

// load returns the offset at which reading starts. If the saved position belongs to another file, load calls Notice.
func (s *Source) load(ctx context.Context, f *os.File) (int64, error) {
	s.saver.busy <- struct{}{}
	defer func() { <-s.saver.busy }()
	s.saver.last = time.Now()
	if s.saver.store == nil {
		return 0, nil
	}
	p, ok, err := s.saver.store.LoadPosition(ctx, s.saver.consumer, s.id.ID)
	if err != nil {
		return 0, fmt.Errorf("file %s: its position cannot be loaded: %w", s.path, err)
	}
	if !ok || p.Offset <= 0 {
		return 0, nil
	}
	if stood := readBefore(f, p.Offset); stood == nil || !bytes.Equal(check(stood), p.Check) {
		s.options.Notice(fmt.Sprintf("file %s: is another file than the one read to byte %d; it is read from its start", s.path, p.Offset))
		return 0, nil
	}
	s.saver.offset = p.Offset
	return p.Offset, nil
}

// check returns the hash of the bytes before the position.
func check(stood []byte) []byte {
	sum := sha256.Sum256(stood)
	return sum[:16]
}

// saveIfDue saves the position, unless the last save is less than saveEvery ago or a save is in progress.
func (s *Source) saveIfDue(ctx context.Context) {
	select {
	case s.saver.busy <- struct{}{}:
	default:
		return
	}
	defer func() { <-s.saver.busy }()
	if time.Since(s.saver.last) >= saveEvery {
		_ = s.saveNow(ctx) // saveNow has reported the error; a later call tries again
	}
}

// save saves the position, even if the position was saved a moment ago.
func (s *Source) save(ctx context.Context) error {
	select {
	case s.saver.busy <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("file %s: its position was not saved; lines come again: %w", s.path, ctx.Err())
	}
	defer func() { <-s.saver.busy }()
	return s.saveNow(ctx)
}

func (s *Source) saveNow(ctx context.Context) error {
	v := &s.saver
	g, offset := s.ackedPosition()
	if v.store == nil || g == nil || g.number == v.number && offset == v.offset {
		return nil
	}
	v.last = time.Now()
	p, err := positionOf(g.file, offset)
	if err == nil {
		err = v.store.SavePosition(ctx, v.consumer, s.id.ID, p)
	}
	if err != nil {
		err = fmt.Errorf("file %s: its position, byte %d, was not saved; lines come again if it never is: %w", s.path, offset, err)
		if !v.failed {
			s.options.Notice(err.Error())
		}
		v.failed = true
		return err
	}
	v.number, v.offset, v.failed = g.number, offset, false
	return nil
}

// ackedPosition returns the current file, and the offset up to which all its lines are acked.
func (s *Source) ackedPosition() (*generation, int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.files) == 0 {
		return nil, 0
	}
	g := s.files[len(s.files)-1]
	return g, g.track.position()
}

func positionOf(f *os.File, offset int64) (source.Position, error) {
	info, err := f.Stat()
	if err != nil {
		return source.Position{}, err
	}
	stood := readBefore(f, offset)
	if stood == nil {
		return source.Position{}, fmt.Errorf("the file is shorter than what was read of it")
	}
	return source.Position{Offset: offset, Length: info.Size(), Check: check(stood)}, nil
}
