package consumer

import (
	"hash/maphash"
	"log/slog"

	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/source"
)

// Identities that make one of different messages drop all but the first as duplicates, and
// nothing else notices it. What gives them away is where the duplicates lie.
const (
	// elsewhereOf is of how many messages the share of duplicates is looked at.
	elsewhereOf = 1000
	// elsewhereSets and elsewhereWays are how many identities are remembered, 64 KiB in all.
	// An identity that many messages share comes again soon, and so is remembered.
	elsewhereSets, elsewhereWays = 1 << 10, 4
)

// elsewhere warns once where more than half of a thousand messages are duplicates of
// messages that this run met at another place of the source. The rule is sound for
// redeliveries: a broker delivers a record again from the same partition and offset, so that
// what comes again after a failure, a rebalance, or because somebody set offsets back has
// one place, and does not count. Two copies at two places were sent twice, and more than
// half are such copies only if producers send everything more than twice, or if different
// messages share one identity. A message without an offset does not count at all. Of the
// loop's goroutine.
type elsewhere struct {
	sets             []elsewhereSet // nil until the first message
	seed             maphash.Seed
	messages, copies int // of the present thousand
	told             bool
}

// elsewhereSet has the identity met last first.
type elsewhereSet [elsewhereWays]struct{ id, place uint64 }

// met remembers where the message lies, and reports whether its identity was met elsewhere.
func (e *elsewhere) met(it *machine.Item, p *parcel) bool {
	if e.sets == nil {
		e.sets, e.seed = make([]elsewhereSet, elsewhereSets), maphash.MakeSeed()
	}
	o := &p.message.Origin
	const odd = 0x9e3779b97f4a7c15
	id := maphash.String(e.seed, it.Identity) ^ maphash.String(e.seed, it.Source)*odd | 1 // 0: nothing was met
	place := (maphash.String(e.seed, p.message.Topic)+uint64(uint32(o.Partition)))*odd + uint64(o.Offset)
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

// placed looks at a message that has ended, or was received.
func (n *reporter) placed(item *machine.Settlement) {
	e, it := &n.elsewhere, item.Item
	p, _ := it.Handle.(*parcel)
	if e.told || p == nil || it.Claim != nil || it.Refused != nil || p.message.Origin.Offset < 0 || p.message.Replayed != nil {
		return
	}
	e.messages++
	if e.met(it, p) && item.Ending == source.EndDuplicate {
		e.copies++
	}
	switch {
	case e.messages < elsewhereOf:
		return
	case e.copies > e.messages/2:
		e.told = true
		n.logger.Warn("most messages count as duplicates of messages at other places of the source, and a broker delivers again from the same place: if producers do not send everything several times, different messages share one identity, and all but the first are dropped; look at the identity",
			slog.String("consumer", n.consumer), slog.Int("messages", e.messages), slog.Int("duplicates", e.copies), slog.String("id", it.Identity))
	}
	e.messages, e.copies = 0, 0
}
