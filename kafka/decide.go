package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/semel-go/semel/kafka/internal/stored"
)

// beginnings are where the group began the topics that are read.
type beginnings struct {
	config  *Config
	brokers *brokers
	member  *member
	topics  *topics
	intake  *intake
	store   stored.Store

	// mu guards the rest. Who holds it waits for nothing and takes no other lock.
	mu sync.Mutex
	// known are the topics' beginnings, as the store remembers them; undecided is
	// why one could not be found.
	known     map[string]stored.Beginning
	undecided map[string]error
	// next is when to try again.
	next time.Time
	// atFirst are the topics that were there when the group first joined; see
	// first_topics.go.
	atFirst map[stored.TopicKey]bool
}

// look looks for topics that match the pattern. While the store does not answer
// where new ones begin, they wait for the next look.
func (b *beginnings) look(ctx context.Context) error {
	client, added, err := b.topics.look(ctx)
	if err != nil || len(added) == 0 {
		return err
	}
	var down errStore
	if err := b.decideTopics(ctx, slices.Sorted(maps.Keys(added))); errors.As(err, &down) {
		return err
	}
	b.topics.add(client, added)
	return nil
}

// forgetOthers forgets topics that are not read any more, before a member joins.
func (b *beginnings) forgetOthers() {
	reading := b.topics.read()
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.known, func(topic string, _ stored.Beginning) bool { return !slices.Contains(reading, topic) })
	maps.DeleteFunc(b.undecided, func(topic string, _ error) bool { return !slices.Contains(reading, topic) })
}

// decide finds where each topic began, before anything is read. Of a topic for
// which it cannot, those partitions wait that have no offset; an error says
// that nothing can be read.
func (b *beginnings) decide(ctx context.Context) error {
	if err := b.decideFirstTopics(ctx); err != nil {
		return err
	}
	return b.decideTopics(ctx, b.topics.read())
}

func (b *beginnings) decideTopics(ctx context.Context, topics []string) error {
	var all error
	begun := 0
	for _, topic := range topics {
		own, err := b.decideTopic(ctx, topic)
		var down errStore
		if errors.As(err, &down) {
			return err
		}
		b.mu.Lock()
		if err == nil || own {
			begun++
		}
		if err == nil {
			delete(b.undecided, topic)
		} else {
			b.undecided[topic] = err
			all = errors.Join(all, err)
		}
		b.mu.Unlock()
	}
	if begun == 0 {
		return all
	}
	return nil
}

// decideTopic finds where a topic began. With an error, own says whether the
// group has offsets of it all the same.
func (b *beginnings) decideTopic(ctx context.Context, topic string) (own bool, err error) {
	id := b.topics.id(topic)
	b.mu.Lock()
	_, known := b.known[topic]
	b.mu.Unlock()
	if known {
		return false, nil
	}
	name := stored.Name(b.config.Group, topic)
	found, kept, err := b.store.Load(ctx, name)
	if err != nil {
		return false, errStore{fmt.Errorf("kafka: topic %s: where group %s began is not known, and nothing is read: position %s of consumer %s in the store: %w", topic, b.config.Group, name, b.store.Consumer, err)}
	}
	if !kept {
		found = stored.Beginning{TopicID: id, Fresh: true}
		if !b.createdLater(topic, id) {
			found.Starts, own, err = b.firstStarts(ctx, topic)
		}
		if err != nil {
			return own, err
		}
		if found, err = b.store.Keep(ctx, name, found); err != nil {
			return own, errStore{fmt.Errorf("kafka: topic %s: where group %s begins could not be kept in the store, and nothing is read: %w", topic, b.config.Group, err)}
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.known[topic] = found
	return own, nil
}

// startWords say for how many partitions of a topic Start was.
func (b *beginnings) startWords(topic string) []string {
	id := b.topics.id(topic)
	b.mu.Lock()
	defer b.mu.Unlock()
	began, known := b.known[topic]
	if !known || b.config.Start == (Start{}) {
		return nil
	}
	n := len(began.Starts)
	if began.TopicID != id {
		n = 0
	}
	return []string{stored.StartWord(n)}
}

// decideAgain tries again, now and then, what decide could not find. What it
// finds then, a new member begins.
func (b *beginnings) decideAgain(life context.Context, now time.Time) {
	if b.member.current() == nil {
		return
	}
	waiting := b.waiting(now)
	if len(waiting) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(life, askTimeout)
	defer cancel()
	_ = b.decide(ctx) // what it cannot find is told by the lanes that wait
	for _, topic := range waiting {
		if !b.isUndecided(topic) {
			b.member.demandReplacement("where to begin is known now", allOf(topic))
		}
	}
}

// waiting are the topics whose beginning is to be looked for again now.
func (b *beginnings) waiting(now time.Time) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.undecided) == 0 || b.next.After(now) {
		return nil
	}
	b.next = now.Add(askEvery)
	return slices.Sorted(maps.Keys(b.undecided))
}

func (b *beginnings) isUndecided(topic string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.undecided[topic] != nil
}

// errStore is of a store that does not answer: no topic can begin.
type errStore struct{ err error }

func (e errStore) Error() string { return e.err.Error() }
func (e errStore) Unwrap() error { return e.err }
