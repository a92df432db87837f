package kafka

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/semel-go/semel/contract"
	"github.com/twmb/franz-go/pkg/kmsg"
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

func (b beginning) position() contract.Position {
	check := append([]byte{beginningForm}, b.topicID[:]...)
	for _, at := range b.starts {
		check = binary.AppendUvarint(check, uint64(at))
	}
	return contract.Position{Length: int64(len(b.starts)), Check: check}
}

var errBeginning = errors.New("it was written by a newer release, or damaged; use that release, or restore the row")

func beginningOf(p contract.Position) (beginning, error) {
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

// Positions implements contract.Positioned: where the group first began is kept in
// the consumer's store, under the name "kafka:GROUP:TOPIC".
func (s *Source) Positions(consumer string, store contract.PositionStore) {
	s.memory = memory{consumer, store}
}

// memory is the consumer's store as a source uses it.
type memory struct {
	consumer string
	store    contract.PositionStore // nil where nobody called Positions
}

func (m memory) load(ctx context.Context, name string) (beginning, bool, error) {
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
func (m memory) keep(ctx context.Context, name string, b beginning) (beginning, error) {
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

// errMemory is of a store that does not answer: no topic can begin.
type errMemory struct{ err error }

func (e errMemory) Error() string { return e.err.Error() }
func (e errMemory) Unwrap() error { return e.err }

// decide finds where each topic began, before anything is read. Of a topic for
// which it cannot, those partitions wait that have no offset; an error says
// that nothing can be read.
func (s *Source) decide(ctx context.Context) error {
	if err := s.decideElders(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	topics := s.reading
	s.mu.Unlock()
	return s.decideTopics(ctx, topics)
}

func (s *Source) decideTopics(ctx context.Context, topics []string) error {
	var all error
	begun := 0
	for _, topic := range topics {
		own, err := s.decideTopic(ctx, topic)
		var down errMemory
		if errors.As(err, &down) {
			return err
		}
		s.mu.Lock()
		if err == nil || own {
			begun++
		}
		if err == nil {
			delete(s.undecided, topic)
		} else {
			s.undecided[topic] = err
			all = errors.Join(all, err)
		}
		s.mu.Unlock()
	}
	if begun == 0 {
		return all
	}
	return nil
}

// decideTopic finds where a topic began. With an error, own says whether the
// group has offsets of it all the same.
func (s *Source) decideTopic(ctx context.Context, topic string) (own bool, err error) {
	s.mu.Lock()
	_, known := s.beginnings[topic]
	id := s.topicIDs[topic]
	s.mu.Unlock()
	if known {
		return false, nil
	}
	name := beginningName(s.config.Group, topic)
	b, kept, err := s.memory.load(ctx, name)
	if err != nil {
		return false, errMemory{fmt.Errorf("kafka: topic %s: where group %s began is not known, and nothing is read: position %s of consumer %s in the store: %w", topic, s.config.Group, name, s.memory.consumer, err)}
	}
	if !kept {
		b = beginning{topicID: id, fresh: true}
		if !s.younger(topic, id) {
			b.starts, own, err = s.firstStarts(ctx, topic)
		}
		if err != nil {
			return own, err
		}
		if b, err = s.memory.keep(ctx, name, b); err != nil {
			return own, errMemory{fmt.Errorf("kafka: topic %s: where group %s begins could not be kept in the store, and nothing is read: %w", topic, s.config.Group, err)}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.beginnings[topic] = b
	return own, nil
}

// The metadata of the group's offsets says for how many partitions Start was,
// so that a consumer with another store, which knows nothing of the first join,
// begins the others at their beginning.
const startMark = "semel-start/"

// metadata is called with Source.mu held.
func (s *Source) metadata(topic string) *string {
	b, known := s.beginnings[topic]
	if !known || s.config.Start == (Start{}) {
		return nil
	}
	n := len(b.starts)
	if b.topicID != s.topicIDs[topic] {
		n = 0
	}
	return kmsg.StringPtr(startMark + strconv.Itoa(n))
}

// markedStarts reads it; 0 without.
func markedStarts(metadata string) int {
	digits, found := strings.CutPrefix(metadata, startMark)
	n, err := strconv.ParseInt(digits, 10, 32)
	if !found || err != nil {
		return 0
	}
	return int(n)
}

// decideAgain tries again, now and then, what decide could not find. What it
// finds then, a new member begins.
func (s *Source) decideAgain(now time.Time) {
	s.mu.Lock()
	waiting, member := len(s.undecided), s.member
	due := waiting > 0 && member != nil && !s.decideNext.After(now)
	if due {
		s.decideNext = now.Add(askEvery)
	}
	s.mu.Unlock()
	if !due {
		return
	}
	ctx, cancel := context.WithTimeout(s.life, askTimeout)
	defer cancel()
	_ = s.decide(ctx) // what it cannot find is told by the lanes that wait
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.undecided) < waiting {
		s.replace("where to begin is known now")
	}
}
