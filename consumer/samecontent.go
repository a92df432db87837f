package consumer

import (
	"context"
	"encoding/binary"
	"hash/maphash"
	"log/slog"
	"sync/atomic"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/machine"
)

// How much of what took effect is remembered: 16,384 sets of four, 1 MiB a consumer. A
// set is as long as what a processor reads from memory at once.
const (
	recentSets = 1 << 14
	recentWays = 4
)

// recent remembers of the contents that took effect last under which id they did, to
// notice a producer that mints another id when it sends again. It is asked for what has
// ended and decides nothing. It is a hint: a restart forgets it, it knows nothing of other
// processes, and of contents that share a set the one met longest ago is forgotten: of the
// last 10,000 contents it knows more than 99 in 100, of the last 65,536 some 80.
// Of the loop's goroutine but count, which anybody may read.
type recent struct {
	sets  []recentSet // nil until something with a fingerprint took effect
	seed  maphash.Seed
	count atomic.Int64 // of what took effect under a second id, or a further one

	// source is that of the message before, sum its hash: mostly there is one.
	source string
	sum    uint64
}

// recentSet has the content met last first.
type recentSet [recentWays]struct{ content, id uint64 }

// again reports whether the content of a message took effect under another id of the same
// source, and remembers it.
func (r *recent) again(it *machine.Item) bool {
	if it.Print.Version == 0 || it.Identity == "" {
		return false
	}
	if r.sets == nil {
		r.sets, r.seed = make([]recentSet, recentSets), maphash.MakeSeed()
	}
	if it.Source != r.source {
		r.source, r.sum = it.Source, sumOf(it.Source)
	}
	content, id := r.contentOf(&it.Print), maphash.String(r.seed, it.Identity)
	set := &r.sets[content%recentSets]
	n := 0
	for n < recentWays-1 && set[n].content != content {
		n++
	}
	met := set[n]
	copy(set[1:n+1], set[:n])
	if met.content == content {
		set[0] = met
		return met.id != id
	}
	set[0].content, set[0].id = content, id
	return false
}

// sumOf is FNV-1a: in each process a content is in the same set, so that two runs over the
// same messages count the same.
func sumOf(source string) uint64 {
	sum := uint64(0xcbf29ce484222325)
	for i := range len(source) {
		sum = (sum ^ uint64(source[i])) * 0x100000001b3
	}
	return sum
}

// contentOf is never 0, which a set has where nothing was met. A fingerprint of a user's
// own may say little in some of its bits, so all of them are mixed.
func (r *recent) contentOf(f *semel.Fingerprint) uint64 {
	const odd = 0x9e3779b97f4a7c15
	sum := binary.LittleEndian.Uint64(f.Sum[:8]) ^ r.sum ^ uint64(f.Version)
	sum = (sum ^ sum>>32) * odd
	sum = (sum ^ sum>>29 ^ binary.LittleEndian.Uint64(f.Sum[8:])) * odd
	return (sum ^ sum>>32) | 1<<63
}

// applied tells of a message that took effect if its content did under another id. The log
// hears of the first such message, the tenth, the hundredth and so on.
func (n *reporter) applied(it *machine.Item) {
	if !n.recent.again(it) {
		return
	}
	count := n.recent.count.Add(1)
	if len(n.observers) > 0 {
		n.tell(n.about(it, semel.Event{Kind: semel.EventSameContent, Messages: 1}))
	}
	if powerOfTen(count) {
		n.logger.LogAttrs(context.Background(), slog.LevelWarn, string(semel.EventSameContent), slog.String("consumer", n.consumer), slog.String("id", it.Identity),
			slog.String("source", it.Source), slog.String("lane", it.Lane.ID), slog.Int64("so_far", count))
	}
}

func powerOfTen(n int64) bool {
	for n > 1 && n%10 == 0 {
		n /= 10
	}
	return n == 1
}
