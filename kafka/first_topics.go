package kafka

import (
	"context"
	"fmt"

	"github.com/semel-go/semel/kafka/internal/stored"
)

// decideFirstTopics finds out, or keeps in the store, which topics were there when
// the group first joined by a pattern. It comes before the first topic begins.
func (b *beginnings) decideFirstTopics(ctx context.Context) error {
	b.mu.Lock()
	known := b.atFirst != nil
	b.mu.Unlock()
	if known || b.topics.pattern == nil {
		return nil
	}
	name := stored.FirstTopicsName(b.config.Group)
	atFirst, err := b.store.FirstTopics(ctx, name, b.topics.there())
	if err != nil {
		return errStore{fmt.Errorf("kafka: which topics were there when group %s first joined is not known, and nothing is read: position %s of consumer %s in the store: %w", b.config.Group, name, b.store.Consumer, err)}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.atFirst = atFirst
	return nil
}

// createdLater reports whether a topic came after the group's first join, so that
// Start is not for it.
func (b *beginnings) createdLater(topic string, id [16]byte) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.topics.pattern != nil && !b.atFirst[stored.TopicKeyOf(topic, id)]
}
