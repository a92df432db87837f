// Package stored has the form of what a source keeps in the consumer's store and in the
// metadata of the group's offsets.
package stored

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

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

// Beginning is where a group began a topic.
type Beginning struct {
	TopicID [16]byte
	// Starts are where Start led, by partition. Partitions behind them were not
	// there, or were not meant.
	Starts []int64
	// Fresh: it was decided just now, by this source.
	Fresh bool
}

// Name names a topic's beginning in the store. A topic has no colon.
func Name(group, topic string) string { return "kafka:" + group + ":" + topic }

// beginningForm is the first byte of Position.Check: the topic's id follows, and
// then each start as an unsigned varint. Position.Length counts the starts.
const beginningForm = 1

// Position returns the beginning as the store keeps it.
func (b Beginning) Position() source.Position {
	check := append([]byte{beginningForm}, b.TopicID[:]...)
	for _, at := range b.Starts {
		check = binary.AppendUvarint(check, uint64(at))
	}
	return source.Position{Length: int64(len(b.Starts)), Check: check}
}

// ErrDamaged is of a row that this release cannot read.
var ErrDamaged = errors.New("it was written by a newer release, or damaged; use that release, or restore the row")

// BeginningOf returns the beginning that a store kept, or ErrDamaged.
func BeginningOf(p source.Position) (Beginning, error) {
	var b Beginning
	if len(p.Check) < 1+len(b.TopicID) || p.Check[0] != beginningForm {
		return b, ErrDamaged
	}
	rest := p.Check[1+copy(b.TopicID[:], p.Check[1:]):]
	for len(rest) > 0 {
		at, n := binary.Uvarint(rest)
		if n <= 0 || int64(at) < 0 {
			return b, ErrDamaged
		}
		b.Starts = append(b.Starts, int64(at))
		rest = rest[n:]
	}
	if int64(len(b.Starts)) != p.Length {
		return b, ErrDamaged
	}
	return b, nil
}

// Store is the consumer's store as a source uses it. What it keeps is never
// removed, also when a topic is gone: some hundred bytes a topic. Removed too
// early, for a topic that was only out of sight, it would let Start count twice,
// and records would be passed over.
type Store struct {
	Consumer  string
	Positions source.PositionStore // nil where nobody called Positions
}

// Load returns the beginning of this name, and whether there is one.
func (m Store) Load(ctx context.Context, name string) (Beginning, bool, error) {
	if m.Positions == nil {
		return Beginning{}, false, nil
	}
	p, known, err := m.Positions.LoadPosition(ctx, m.Consumer, name)
	if err != nil || !known {
		return Beginning{}, false, err
	}
	b, err := BeginningOf(p)
	return b, true, err
}

// Keep keeps a beginning unless there is one, and returns what is there.
func (m Store) Keep(ctx context.Context, name string, b Beginning) (Beginning, error) {
	if m.Positions == nil {
		return b, nil
	}
	p, err := m.Positions.KeepPosition(ctx, m.Consumer, name, b.Position())
	if err != nil {
		return Beginning{}, err
	}
	kept, err := BeginningOf(p)
	kept.Fresh = true
	return kept, err
}

// PartitionName names the position of a partition in the store, by its lane and the id of
// its topic. A topic has neither a colon nor a slash. One that is made anew has another id:
// its offsets begin again.
func PartitionName(group, lane string, id [16]byte) string {
	return fmt.Sprintf("kafka:%s:%s@%x", group, lane, id)
}
