package kafka

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"

	"github.com/semel-go/semel/contract"
)

// elder is a topic that was there when the group first joined, by its name and
// id. Start is for such topics only: one that was created later, also while no
// process ran, is read from its beginning.
type elder [16]byte

func elderOf(topic string, id [16]byte) elder {
	sum := sha256.Sum256(append(id[:], topic...))
	return elder(sum[:16])
}

// eldersName names them in the store. No topic has this name.
func eldersName(group string) string { return beginningName(group, "*") }

// eldersForm is the first byte of Position.Check; each elder follows, and
// Position.Length counts them.
const eldersForm = 1

func eldersPosition(there map[elder]bool) contract.Position {
	all := slices.SortedFunc(maps.Keys(there), func(a, b elder) int { return bytes.Compare(a[:], b[:]) })
	check := []byte{eldersForm}
	for _, e := range all {
		check = append(check, e[:]...)
	}
	return contract.Position{Length: int64(len(all)), Check: check}
}

func eldersOf(p contract.Position) (map[elder]bool, error) {
	if len(p.Check) == 0 || p.Check[0] != eldersForm || int64(len(p.Check)-1) != p.Length*int64(len(elder{})) {
		return nil, errBeginning
	}
	all := map[elder]bool{}
	for e := range slices.Chunk(p.Check[1:], len(elder{})) {
		all[elder(e)] = true
	}
	return all, nil
}

// decideElders finds out, or keeps in the store, which topics were there when
// the group first joined by a pattern. It comes before the first topic begins.
func (b *beginnings) decideElders(ctx context.Context) error {
	b.mu.Lock()
	known := b.atFirst != nil
	b.mu.Unlock()
	if known || b.topics.pattern == nil {
		return nil
	}
	name := eldersName(b.config.Group)
	atFirst, err := b.memory.elders(ctx, name, b.topics.there())
	if err != nil {
		return errMemory{fmt.Errorf("kafka: which topics were there when group %s first joined is not known, and nothing is read: position %s of consumer %s in the store: %w", b.config.Group, name, b.memory.consumer, err)}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.atFirst = atFirst
	return nil
}

// elders are those that are kept; there, if none are.
func (m memory) elders(ctx context.Context, name string, there map[elder]bool) (map[elder]bool, error) {
	if m.store == nil {
		return there, nil
	}
	p, known, err := m.store.LoadPosition(ctx, m.consumer, name)
	if err == nil && !known {
		p, err = m.store.KeepPosition(ctx, m.consumer, name, eldersPosition(there))
	}
	if err != nil {
		return nil, err
	}
	return eldersOf(p)
}

// younger reports whether a topic came after the group's first join, so that
// Start is not for it.
func (b *beginnings) younger(topic string, id [16]byte) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.topics.pattern != nil && !b.atFirst[elderOf(topic, id)]
}
