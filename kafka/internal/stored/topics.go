package stored

import (
	"bytes"
	"context"
	"crypto/sha256"
	"maps"
	"slices"

	"github.com/semel-go/semel/source"
)

// TopicKey is a hash of a topic's name and id. When the group first joins, the source stores the keys of all existing
// topics. Start applies only to the topics that existed at the first join. A topic that is created later, even while no
// process runs, is read from its beginning.
type TopicKey [16]byte

// TopicKeyOf returns the key of a topic.
func TopicKeyOf(topic string, id [16]byte) TopicKey {
	sum := sha256.Sum256(append(id[:], topic...))
	return TopicKey(sum[:16])
}

// FirstTopicsName returns the name under which the keys of the first topics are stored. No topic has this name.
func FirstTopicsName(group string) string { return Name(group, "*") }

// FirstTopicsForm is the first byte of Position.Check. The keys follow this byte; Position.Length is the number of
// keys.
const FirstTopicsForm = 1

func firstTopicsPosition(there map[TopicKey]bool) source.Position {
	all := slices.SortedFunc(maps.Keys(there), func(a, b TopicKey) int { return bytes.Compare(a[:], b[:]) })
	check := []byte{FirstTopicsForm}
	for _, e := range all {
		check = append(check, e[:]...)
	}
	return source.Position{Length: int64(len(all)), Check: check}
}

func firstTopicsOf(p source.Position) (map[TopicKey]bool, error) {
	if len(p.Check) == 0 || p.Check[0] != FirstTopicsForm || int64(len(p.Check)-1) != p.Length*int64(len(TopicKey{})) {
		return nil, ErrDamaged
	}
	all := map[TopicKey]bool{}
	for e := range slices.Chunk(p.Check[1:], len(TopicKey{})) {
		all[TopicKey(e)] = true
	}
	return all, nil
}

// FirstTopics returns the stored keys. If no keys are stored, FirstTopics stores and returns the keys in the parameter
// there, which are the topics that exist now.
func (m Store) FirstTopics(ctx context.Context, name string, there map[TopicKey]bool) (map[TopicKey]bool, error) {
	if m.Positions == nil {
		return there, nil
	}
	p, known, err := m.Positions.LoadPosition(ctx, m.Consumer, name)
	if err == nil && !known {
		p, err = m.Positions.KeepPosition(ctx, m.Consumer, name, firstTopicsPosition(there))
	}
	if err != nil {
		return nil, err
	}
	return firstTopicsOf(p)
}
