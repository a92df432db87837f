// Package stored defines the form of the data that a source keeps in the consumer's store and in the metadata of the
// group's offsets.
package stored

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/semel-go/semel/source"
)

// Config.Start is used once: when the group first joins a topic. Using it again later would lose records silently. The
// brokers drop a group's offsets when a topic is deleted, and some days after the last member has left; records that
// were produced in the meantime are before "now". So the start offsets and the topic's id are kept in the consumer's
// store before the first record is read, and never change. A partition without an offset begins there later if its topic
// is the same, and otherwise at its beginning, for example a partition that was added or a topic that was created again.

// Beginning is where a group began to read a topic.
type Beginning struct {
	TopicID [16]byte
	// Starts are the start offsets by partition. Later partitions did not exist, or Start did not apply to them.
	Starts []int64
	// Fresh: this source has just decided it.
	Fresh bool
}

// Name returns the name of a topic's beginning in the store. Names of topics contain no colon.
func Name(group, topic string) string { return "kafka:" + group + ":" + topic }

// beginningForm is the first byte of Position.Check. The topic's id follows, and then each start as an unsigned varint.
// Position.Length is the number of starts.
const beginningForm = 1

// Position returns the beginning in the form of the store.
func (b Beginning) Position() source.Position {
	check := append([]byte{beginningForm}, b.TopicID[:]...)
	for _, at := range b.Starts {
		check = binary.AppendUvarint(check, uint64(at))
	}
	return source.Position{Length: int64(len(b.Starts)), Check: check}
}

// ErrDamaged is the error for a row that this release cannot read.
var ErrDamaged = errors.New("the row was written by a newer release, or is damaged; use that release, or restore the row")

// BeginningOf returns the beginning in a stored position, or ErrDamaged.
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

// Store is the consumer's store as a source uses it. Its data is never removed, even if a topic is deleted: some hundred
// bytes for each topic. If the data were removed too early, for a topic that was only invisible, Start would be used
// again and skip records.
type Store struct {
	Consumer  string
	Positions source.PositionStore // nil if Positions was not called
}

// Load returns the beginning with this name, and whether it exists.
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

// Keep stores a beginning unless there is one, and returns the stored one.
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

// PartitionName returns the name of a partition's position in the store, made of its lane and its topic's id. Names of
// topics contain neither a colon nor a slash. A topic that is created again has another id, and its offsets start again.
func PartitionName(group, lane string, id [16]byte) string {
	return fmt.Sprintf("kafka:%s:%s@%x", group, lane, id)
}
