//go:build unix

package upgrade

import (
	"fmt"
	"math/rand/v2"
)

// Feed is the input: the messages 0 to IDs-1, each with its copies.
type Feed struct {
	IDs  int
	Seed uint64
}

// kind is the kind of a message, which determines its expected result.
type kind int

// Of every twenty messages, one message is of each kind below, and the other messages are plain.
const (
	plain       kind = iota
	unmet            // parked, because its guarded statement changes no row
	conflicting      // delivered with two contents: one content takes effect, and the other is parked
	nameless         // parked, because it has no id
)

func kindOf(i int) kind {
	switch i % 20 {
	case 3:
		return unmet
	case 7:
		return conflicting
	case 11:
		return nameless
	}
	return plain
}

func id(i int) string { return fmt.Sprintf("m%d", i) }

// countKind returns the number of messages of a kind.
func (f Feed) countKind(k kind) (n int) {
	for i := range f.IDs {
		if kindOf(i) == k {
			n++
		}
	}
	return n
}

// countEffects returns the number of messages that must take effect.
func (f Feed) countEffects() int { return f.countKind(plain) + f.countKind(conflicting) }

// countParkedRows returns the number of parked rows after the given number of feeds was read. A message without an id
// has a row for each feed, because such a message is identified by its position in the feed.
func (f Feed) countParkedRows(feeds int) int {
	return f.countKind(unmet) + f.countKind(conflicting) + feeds*f.countKind(nameless)
}

// countParkedDeliveries returns the number of deliveries in one feed that are parked or are duplicates of parked
// messages. The result does not depend on the order of the two contents of a conflicting message.
func (f Feed) countParkedDeliveries() int {
	return 2*f.countKind(unmet) + 2*f.countKind(conflicting) + f.countKind(nameless)
}

// countLateDuplicates returns the number of deliveries in one feed that are duplicates of parked rows after the retried
// rows have taken effect.
func (f Feed) countLateDuplicates() int { return f.countParkedDeliveries() - 2*f.countKind(unmet) }

// delivery is one arrival of a message.
type delivery struct {
	id     string // empty if the message has no id
	amount int
}

func (d delivery) headers() string {
	if d.id == "" {
		return "{}"
	}
	return fmt.Sprintf(`{"id":%q}`, d.id)
}

func (d delivery) body() string { return fmt.Sprintf(`{"amount":%d}`, d.amount) }

// makeDeliveries returns all deliveries of one feed. Each feed has an order of its own.
func (f Feed) makeDeliveries(feed uint64) (all []delivery) {
	add := func(times int, d delivery) {
		for range times {
			all = append(all, d)
		}
	}
	for i := range f.IDs {
		switch kindOf(i) {
		case unmet:
			add(2, delivery{id(i), 0})
		case conflicting:
			add(2, delivery{id(i), i})
			add(2, delivery{id(i), f.IDs + i})
		case nameless:
			add(1, delivery{"", i})
		default:
			add(1+i%2, delivery{id(i), i + 1})
		}
	}
	r := rand.New(rand.NewPCG(f.Seed, feed))
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// selectPart divides all deliveries into equal parts and returns part number n. The parameter parts is the
// number of parts.
func selectPart(all []delivery, n, parts int) []delivery {
	return all[len(all)*n/parts : len(all)*(n+1)/parts]
}
