package report

import (
	"hash/maphash"
	"log/slog"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/source"
)

// If different messages share one identity, all messages except the first are dropped as duplicates. A wrong identity
// is visible only in the positions (partition and offset) of the duplicates.
const (
	// elsewhereOf is the number of messages for which the share of duplicates is computed.
	elsewhereOf = 1000
	// The cache has elsewhereSets sets, each with room for elsewhereWays identities; it takes 64 KiB. An identity that
	// many messages share arrives again soon, while it is still in the cache.
	elsewhereSets, elsewhereWays = 1 << 10, 4
)

// elsewhere warns once if, of a thousand messages, more than half are duplicates of messages that this run got from
// another position of the source. Redeliveries do not count: after a failure, a rebalance or a reset of offsets, a
// broker delivers a record again from the same partition and offset. If there are copies of a message at two positions,
// a producer sent the message twice. If more than half of the messages are copies at other positions, either producers
// send everything more than twice, or different messages share one identity. Messages without an offset are ignored,
// because their position is unknown. The type elsewhere is used only by the loop's goroutine.
type elsewhere struct {
	sets             []elsewhereSet // nil until the first message
	seed             maphash.Seed
	messages, copies int // counted since the last 1,000 messages
	warned           bool
}

// elsewhereSet is one set of the cache, with the most recent identity first.
type elsewhereSet [elsewhereWays]struct{ id, place uint64 }

// isMoved remembers the position of a message, and reports whether the same identity was seen at another position.
func (e *elsewhere) isMoved(it *machine.Item, m *semel.Message) bool {
	if e.sets == nil {
		e.sets, e.seed = make([]elsewhereSet, elsewhereSets), maphash.MakeSeed()
	}
	o := &m.Origin
	const odd = 0x9e3779b97f4a7c15
	id := maphash.String(e.seed, it.Identity) ^ maphash.String(e.seed, it.Source)*odd | 1 // 0 means that the entry is empty
	place := (maphash.String(e.seed, m.Topic)+uint64(uint32(o.Partition)))*odd + uint64(o.Offset)
	set := &e.sets[id>>1%elsewhereSets]
	n := 0
	for n < elsewhereWays-1 && set[n].id != id {
		n++
	}
	was := set[n]
	copy(set[1:n+1], set[:n])
	set[0] = was
	if was.id != id {
		set[0].id, set[0].place = id, place
	}
	return set[0].place != place
}

// checkPlace checks whether the identity of a message that has ended or was received was seen at another position. The
// parameter m is the delivered message, or nil for a row of the inbox.
func (n *Reporter) checkPlace(item *machine.Settlement, m *semel.Message) {
	e, it := &n.elsewhere, item.Item
	if e.warned || m == nil || it.Claim != nil || it.Refused != nil || m.Origin.Offset < 0 || m.Replayed != nil {
		return
	}
	e.messages++
	if e.isMoved(it, m) && item.Ending == source.EndDuplicate {
		e.copies++
	}
	switch {
	case e.messages < elsewhereOf:
		return
	case e.copies > e.messages/2:
		e.warned = true
		n.logger.Warn("most messages count as duplicates of messages at other places of the source, and a broker delivers again from the same place: if producers do not send everything several times, different messages share one identity, and all but the first are dropped; look at the identity",
			slog.String("consumer", n.consumer), slog.Int("messages", e.messages), slog.Int("duplicates", e.copies), slog.String("id", it.Identity))
	}
	e.messages, e.copies = 0, 0
}
