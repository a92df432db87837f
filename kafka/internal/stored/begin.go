// Package stored defines the format of the data that a source keeps in the consumer's store and in the metadata of the
// group's offsets.
package stored

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/semel-go/semel/source"
)

// Config.Start is used once, when the group first joins a topic. A second use would skip records, and no error would
// show the loss. The brokers remove a group's offsets when a topic is deleted, and some days after the last member has
// left. With Start.Now, a second use would skip records that arrived after the first use. So the start offsets and the
// topic's id are stored in the consumer's store before the first record is read, and never change. A partition that
// later has no offset begins at its start offset if the topic has the same id. If the topic's id differs, or if the
// partition was added later, the partition begins at the beginning of its log.

// Beginning holds the offsets at which a group began to read a topic.
type Beginning struct {
	TopicID [16]byte
	// Starts are the start offsets, indexed by partition. A partition outside of Starts did not exist at the
	// first join, or Start did not apply to it.
	Starts []int64
	// Fresh is true if the present source has just determined the beginning.
	Fresh bool
}

// Name returns the name under which a topic's beginning is stored. Names of topics contain no colon.
func Name(group, topic string) string { return "kafka:" + group + ":" + topic }

// The first byte of Position.Check. The topic's id follows, and then the start offset of each partition as an unsigned
// varint. Position.Length is the number of these start offsets.
const beginningForm = 1

// Position encodes the beginning for the store.
func (b Beginning) Position() source.Position {
	check := append([]byte{beginningForm}, b.TopicID[:]...)
	for _, at := range b.Starts {
		check = binary.AppendUvarint(check, uint64(at))
	}
	return source.Position{Length: int64(len(b.Starts)), Check: check}
}

// ErrDamaged is the error for a row that this release cannot read.
var ErrDamaged = errors.New("the row was written by a newer release, or is damaged; use that release, or restore the row")

// BeginningOf decodes the beginning in a stored position. If the position cannot be decoded, the error is ErrDamaged.
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

// Store writes the data of a source to the consumer's store. The data is some hundred bytes for each topic and is never
// removed, even if a topic is deleted. A topic that the source cannot see for some time looks deleted. If the data of a
// topic were removed, Start would be used a second time and skip records.
type Store struct {
	Consumer  string
	Positions source.PositionStore // nil if Source.Positions was not called
}

// Load returns the beginning with a given name. The result is false if the store has no beginning with this name.
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

// Keep stores a beginning, unless the store already has a beginning with the given name. Keep returns the beginning
// that is in the store after the call.
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

// PartitionName returns the name under which the position of a partition is stored. The name contains the lane and the
// topic's id, because a topic that is deleted and created again has another id, and its offsets begin at 0. Names of
// topics contain neither a colon nor a slash.
func PartitionName(group, lane string, id [16]byte) string {
	return fmt.Sprintf("kafka:%s:%s@%x", group, lane, id)
}
