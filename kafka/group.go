package kafka

import (
	"context"
	"time"

	"github.com/semel-go/semel/internal/worker"
	"github.com/semel-go/semel/source"
	"github.com/twmb/franz-go/pkg/kgo"
)

// group keeps the member in its consumer group: it hands lanes over before others
// get them, and replaces a member that must be.
type group struct {
	config     *Config
	gate       *gate
	member     *member
	lanes      *lanes
	offsets    *offsets
	topics     *topics
	beginnings *beginnings
	commits    *commits
	// open ends when the source begins to close, life when it is closed.
	open, life context.Context
	// announcing is held by who tells of lanes that come and go, so that the end of
	// one is not told before its begin; handingOver by who hands lanes over.
	announcing, handingOver semaphore
	backoff                 backoff
}

// semaphore is a lock for what may take long: what it guards waits for others.
type semaphore chan struct{}

func newSemaphore() semaphore { return make(semaphore, 1) }
func (s semaphore) acquire()  { s <- struct{}{} }
func (s semaphore) release()  { <-s }

// A lane's owner says as whom it may be committed. It is noted when the lane is
// given, and renewed only here, while the group's callbacks run: a member that
// has kept its id through a rebalance was asked, in each generation, what it
// owns, and what it owns is given to nobody else before it has given it up in
// one of these callbacks. A member that got another id was out of the group in
// between; someone else may have owned the lane and gone further, so all it has
// is lost, whatever it is assigned afterwards.

// lastCommit is how long the last commit of lanes that are given up may take.
const lastCommit = 5 * time.Second

func ownerOf(member *kgo.Client) owner {
	id, generation := member.GroupMetadata()
	return owner{id, generation}
}

// assigned is called at the begin of every generation, with what is new in it.
func (g *group) assigned(_ context.Context, client *kgo.Client, added map[string][]int32) {
	g.gate.hold()
	defer g.gate.release()
	now := ownerOf(client)
	again, lost, ours := g.lanes.renew(client, now, added)
	if !ours {
		return
	}
	if len(lost) > 0 {
		g.member.demandReplacement(whyForgotten, topicPartition{})
	}
	g.lanes.lose(append(lost, again...), whyForgotten) // what is given is new
	g.give(client, now, added)
	g.lanes.touch()
}

const whyForgotten = "the group had forgotten this member"

func (g *group) give(client *kgo.Client, now owner, added map[string][]int32) {
	g.announcing.acquire()
	defer g.announcing.release()
	g.lanes.give(client, now, added, g.topics.allIDs())
}

// revoked is called with what the group takes away, before it gives it to
// anyone else.
func (g *group) revoked(_ context.Context, client *kgo.Client, taken map[string][]int32) {
	which, lost, ours := g.lanes.renew(client, ownerOf(client), taken)
	if !ours {
		return
	}
	g.lanes.lose(lost, whyForgotten)
	g.handOver(which)
	g.lanes.forget(taken)
}

// lostAll is called when the group has taken everything away without asking.
func (g *group) lostAll(_ context.Context, client *kgo.Client, _ map[string][]int32) {
	if !g.member.is(client) {
		return
	}
	which := g.lanes.all()
	g.lanes.lose(which, "this member's session in the group has ended")
	g.member.assigned(false) // it joins again
	g.lanes.forgetLanes(which)
}

// handOver lets lanes end what they began, all at once, commits, and gives
// them up. The group and who replaces a member may do that at once; each lane
// is handed over once, and both return when it is.
func (g *group) handOver(which []*lane) {
	if len(which) == 0 {
		return
	}
	g.handingOver.acquire()
	defer g.handingOver.release()
	which = g.lanes.drain(which)
	ctx, cancel := context.WithTimeout(g.open, g.config.RevokeTimeout)
	defer cancel()
	var asked worker.Group
	for _, l := range which {
		asked.Go(func() { g.lanes.observe(func(o source.LaneObserver) { o.Revoking(ctx, l.id) }) })
	}
	asked.Wait()
	last, stop := context.WithTimeout(g.life, lastCommit)
	defer stop()
	_ = g.commits.wait(last) // what is not committed comes again, from the next owner
	g.lanes.lose(which, "")
}
