//go:build unix

package replay

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/semel-go/semel/itest/proof"
)

// The number of concurrent producers. Each producer writes to its own partitions.
const producers = 2

// The parts of the transfers, as percentages of all: published before the first repair, before the rebuild,
// before the switch, and at the end.
const (
	untilRepair  = 55
	untilRebuild = 75
	untilSwitch  = 95
	untilEnd     = 100
)

// firstAfter returns the number of the first transfer after the given percentage of all transfers.
func (p Proof) firstAfter(percent int) int { return p.Messages * percent / 100 }

// publish starts to publish the transfers between two percentages, within the given time. Copies of new and of earlier
// transfers are also published.
func (r *run) publish(ctx context.Context, from, to int, within time.Duration) {
	if r.Feed != nil {
		r.Feed.Stop()
	}
	r.sent = r.firstAfter(to)
	plan := r.plan(r.firstAfter(from), r.firstAfter(to))
	random := rand.New(rand.NewPCG(r.Seed, uint64(from)))
	r.Feed = proof.Publish(ctx, producers, func(ctx context.Context, p *proof.Publisher) {
		p.Evenly(ctx, len(plan), within, func(i int) {
			record := r.record(plan[i], random)
			p.Send(ctx, int(record.Partition)%producers, record)
		})
	}, r.ProducerOptions(topic)...)
}

// plan lists the records in their order. Each transfer from first to end occurs once. Copies of these transfers follow
// some records later. The list also has copies of earlier transfers (one copy in three belongs to a transfer that fails
// permanently), and records that have the identity of a transfer but other content.
func (p Proof) plan(first, end int) []place {
	random := rand.New(rand.NewPCG(p.Seed, uint64(end)))
	failing := []int{7, 33, 57} // of every eighty transfers, these fail
	var all []place
	for i := first; i < end; i++ {
		all = append(all, place{transfer: i, at: 2 * i})
		if isContradicted(i) {
			all = append(all, place{transfer: i, at: 2 * (i + 1 + random.IntN(1000)), otherContent: true})
		}
	}
	for range p.Copies * (end - first) / p.Messages {
		at := first + random.IntN(end-first)
		of := max(0, at-random.IntN(5000))
		switch random.IntN(6) {
		case 0, 1:
			of = of/80*80 + failing[random.IntN(len(failing))]
			at = max(at, of)
		case 2:
			of = random.IntN(at + 1)
		}
		if of < end {
			all = append(all, place{transfer: of, at: 2*at + 1})
		}
	}
	slices.SortStableFunc(all, func(a, b place) int { return cmp.Compare(a.at, b.at) })
	return all
}

// waitPublished waits until the current part of the transfers is published without further faults, and until the group
// has committed the offsets of the part.
func (r *run) waitPublished(ctx context.Context) {
	r.Published(ctx)
	r.ledger.Records += int(r.Feed.Acknowledged())
	r.Settled(ctx, patience)
}

// The time for which the fault test waits for the remaining work after the last fault. The ledger reports work that is
// not done in time.
const patience = 3 * time.Minute
