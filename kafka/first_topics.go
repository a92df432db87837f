package kafka

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"

	"github.com/semel-go/semel/source"
)

// topicKey is a hash of a topic's name and id. Those are kept of the topics that
// were there when the group first joined. Start is for such topics only: one that was created later, also while no
// process ran, is read from its beginning.
type topicKey [16]byte

func topicKeyOf(topic string, id [16]byte) topicKey {
	sum := sha256.Sum256(append(id[:], topic...))
	return topicKey(sum[:16])
}

// firstTopicsName names them in the store. No topic has this name.
func firstTopicsName(group string) string { return beginningName(group, "*") }

// firstTopicsForm is the first byte of Position.Check; each key follows, and
// Position.Length counts them.
const firstTopicsForm = 1

func firstTopicsPosition(there map[topicKey]bool) source.Position {
	all := slices.SortedFunc(maps.Keys(there), func(a, b topicKey) int { return bytes.Compare(a[:], b[:]) })
	check := []byte{firstTopicsForm}
	for _, e := range all {
		check = append(check, e[:]...)
	}
	return source.Position{Length: int64(len(all)), Check: check}
}

func firstTopicsOf(p source.Position) (map[topicKey]bool, error) {
	if len(p.Check) == 0 || p.Check[0] != firstTopicsForm || int64(len(p.Check)-1) != p.Length*int64(len(topicKey{})) {
		return nil, errBeginning
	}
	all := map[topicKey]bool{}
	for e := range slices.Chunk(p.Check[1:], len(topicKey{})) {
		all[topicKey(e)] = true
	}
	return all, nil
}

// decideFirstTopics finds out, or keeps in the store, which topics were there when
// the group first joined by a pattern. It comes before the first topic begins.
func (b *beginnings) decideFirstTopics(ctx context.Context) error {
	b.mu.Lock()
	known := b.atFirst != nil
	b.mu.Unlock()
	if known || b.topics.pattern == nil {
		return nil
	}
	name := firstTopicsName(b.config.Group)
	atFirst, err := b.store.firstTopics(ctx, name, b.topics.there())
	if err != nil {
		return errStore{fmt.Errorf("kafka: which topics were there when group %s first joined is not known, and nothing is read: position %s of consumer %s in the store: %w", b.config.Group, name, b.store.consumer, err)}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.atFirst = atFirst
	return nil
}

// firstTopics are those that are kept; there, if none are.
func (m positionStore) firstTopics(ctx context.Context, name string, there map[topicKey]bool) (map[topicKey]bool, error) {
	if m.store == nil {
		return there, nil
	}
	p, known, err := m.store.LoadPosition(ctx, m.consumer, name)
	if err == nil && !known {
		p, err = m.store.KeepPosition(ctx, m.consumer, name, firstTopicsPosition(there))
	}
	if err != nil {
		return nil, err
	}
	return firstTopicsOf(p)
}

// createdLater reports whether a topic came after the group's first join, so that
// Start is not for it.
func (b *beginnings) createdLater(topic string, id [16]byte) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.topics.pattern != nil && !b.atFirst[topicKeyOf(topic, id)]
}
