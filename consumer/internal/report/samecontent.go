package report

import (
	"context"
	"encoding/binary"
	"hash/maphash"
	"log/slog"
	"sync/atomic"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/eventkind"
	"github.com/semel-go/semel/internal/machine"
)

// recent has 16,384 sets with four contents each, and takes 1 MiB for each consumer. A set has the size of a CPU cache
// line.
const (
	recentSets = 1 << 14
	recentWays = 4
)

// recent remembers the id of each of the last applied contents, to detect producers that send a message again with
// another id. A repeated content is only a hint for the log. After a restart, recent is empty. Each process has its own
// set of contents. A set that is full drops its oldest content when a new content is added. Of the last 10,000
// contents, recent has more than 99 of 100; of the last 65,536, about 80 of 100. Only the loop's goroutine uses recent,
// except the field count.
type recent struct {
	sets  []recentSet // nil until a message with a fingerprint was applied
	seed  maphash.Seed
	count atomic.Int64 // number of messages whose content was applied under another id before

	// The field source is the source of the last message, and sum is the hash of that source. Most consumers have one
	// source, so the hash is rarely computed.
	source     string
	sourceHash uint64
}

// recentSet has the most recent content first.
type recentSet [recentWays]struct{ content, id uint64 }

// isRepeated remembers the content of a message, and reports whether the same content was applied before under another
// id of the same source.
func (r *recent) isRepeated(it *machine.Item) bool {
	if it.Print.Version == 0 || it.Identity == "" {
		return false
	}
	if r.sets == nil {
		r.sets, r.seed = make([]recentSet, recentSets), maphash.MakeSeed()
	}
	if it.Source != r.source {
		r.source, r.sourceHash = it.Source, sumOf(it.Source)
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

// sumOf returns the FNV-1a hash of a source. Unlike maphash, FNV-1a gives the same hash in each process. Two runs over
// the same messages therefore find the same number of repeated contents.
func sumOf(source string) uint64 {
	sum := uint64(0xcbf29ce484222325)
	for i := range len(source) {
		sum = (sum ^ uint64(source[i])) * 0x100000001b3
	}
	return sum
}

// contentOf returns a hash of a message's content. The hash is never 0, because 0 marks an empty entry. contentOf mixes
// all bits of the fingerprint, because some bits of a user's own fingerprint may hardly differ.
func (r *recent) contentOf(f *semel.Fingerprint) uint64 {
	const odd = 0x9e3779b97f4a7c15
	sum := binary.LittleEndian.Uint64(f.Sum[:8]) ^ r.sourceHash ^ uint64(f.Version)
	sum = (sum ^ sum>>32) * odd
	sum = (sum ^ sum>>29 ^ binary.LittleEndian.Uint64(f.Sum[8:])) * odd
	return (sum ^ sum>>32) | 1<<63
}

// reportRepeatedContent reports an applied message if its content was applied under another id before. Of the messages
// with repeated content, the first, the tenth, the hundredth and so on are logged.
func (n *Reporter) reportRepeatedContent(it *machine.Item) {
	if !n.recent.isRepeated(it) {
		return
	}
	count := n.recent.count.Add(1)
	if len(n.observers) > 0 {
		n.Notify(n.describeItem(it, semel.Event{Kind: eventkind.SameContent, Messages: 1}))
	}
	if powerOfTen(count) {
		n.logger.LogAttrs(context.Background(), slog.LevelWarn, string(eventkind.SameContent), slog.String("consumer", n.consumer), slog.String("id", it.Identity),
			slog.String("source", it.Source), slog.String("lane", it.Lane.ID), slog.Int64("so_far", count))
	}
}

func powerOfTen(n int64) bool {
	for n > 1 && n%10 == 0 {
		n /= 10
	}
	return n == 1
}
