package kafka

import (
	"context"
	"encoding/binary"
	"errors"

	"github.com/semel-go/semel/source"
)

// Config.Start counts once: when the group first joins a topic. Asked again
// later it would lose records in silence, because the brokers drop a group's
// offsets with a topic that is deleted, and some days after its last member has
// left: what was produced meanwhile stands before "now". So where Start led, and
// in which topic, is kept in the consumer's store before the first record is
// read, and never changes. Whatever has no offset later begins there if it is
// in the same topic, and otherwise at its beginning: a partition that was added,
// a topic that was created anew.

// beginning is where a group began a topic.
type beginning struct {
	topicID [16]byte
	// starts are where Start led, by partition. Partitions behind them were not
	// there, or were not meant.
	starts []int64
	// fresh: it was decided just now, by this source.
	fresh bool
}

// beginningName names the beginning in the store. A topic has no colon.
func beginningName(group, topic string) string { return "kafka:" + group + ":" + topic }

// beginningForm is the first byte of Position.Check: the topic's id follows, and
// then each start as an unsigned varint. Position.Length counts the starts.
const beginningForm = 1

func (b beginning) position() source.Position {
	check := append([]byte{beginningForm}, b.topicID[:]...)
	for _, at := range b.starts {
		check = binary.AppendUvarint(check, uint64(at))
	}
	return source.Position{Length: int64(len(b.starts)), Check: check}
}

var errBeginning = errors.New("it was written by a newer release, or damaged; use that release, or restore the row")

func beginningOf(p source.Position) (beginning, error) {
	var b beginning
	if len(p.Check) < 1+len(b.topicID) || p.Check[0] != beginningForm {
		return b, errBeginning
	}
	rest := p.Check[1+copy(b.topicID[:], p.Check[1:]):]
	for len(rest) > 0 {
		at, n := binary.Uvarint(rest)
		if n <= 0 || int64(at) < 0 {
			return b, errBeginning
		}
		b.starts = append(b.starts, int64(at))
		rest = rest[n:]
	}
	if int64(len(b.starts)) != p.Length {
		return b, errBeginning
	}
	return b, nil
}

// positionStore is the consumer's store as a source uses it. What it keeps is never
// removed, also when a topic is gone: some hundred bytes a topic. Removed too
// early, for a topic that was only out of sight, it would let Start count twice,
// and records would be passed over.
type positionStore struct {
	consumer string
	store    source.PositionStore // nil where nobody called Positions
}

func (m positionStore) load(ctx context.Context, name string) (beginning, bool, error) {
	if m.store == nil {
		return beginning{}, false, nil
	}
	p, known, err := m.store.LoadPosition(ctx, m.consumer, name)
	if err != nil || !known {
		return beginning{}, false, err
	}
	b, err := beginningOf(p)
	return b, true, err
}

// keep keeps a beginning unless there is one, and returns what is there.
func (m positionStore) keep(ctx context.Context, name string, b beginning) (beginning, error) {
	if m.store == nil {
		return b, nil
	}
	p, err := m.store.KeepPosition(ctx, m.consumer, name, b.position())
	if err != nil {
		return beginning{}, err
	}
	kept, err := beginningOf(p)
	kept.fresh = true
	return kept, err
}

// errStore is of a store that does not answer: no topic can begin.
type errStore struct{ err error }

func (e errStore) Error() string { return e.err.Error() }
func (e errStore) Unwrap() error { return e.err }
