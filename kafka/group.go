package kafka

import (
	"context"
	"maps"
	"slices"
	"sync"
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

func (s semaphore) acquire() { s <- struct{}{} }

func (s semaphore) release() { <-s }

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

// member is who this process is in the group. A member that is replaced is
// another client: callbacks and records of the one before it count no more.
type member struct {
	// replacementDemanded is called when a new member is asked for. It must not wait.
	replacementDemanded func()

	// mu guards the rest. It is the innermost lock: who holds it takes no other.
	mu     sync.Mutex
	client *kgo.Client // nil before the first join, and while it is replaced
	closed bool
	// reasons are why a new member is to take this one's place; empty if none is.
	reasons []reason
	// replacing: the old member leaves, and the next may not join yet.
	replacing bool
	// unassigned: it has joined, or joins again, and has not been told yet what
	// it reads.
	unassigned bool
}

// current is the client that is the member; nil while there is none.
func (m *member) current() *kgo.Client {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.client
}

// is reports whether a client is the member, so that what it tells counts.
func (m *member) is(client *kgo.Client) bool { return m.current() == client }

// missing reports whether a member is to join.
func (m *member) missing() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.client == nil && !m.closed && !m.replacing
}

// join makes the client that is the member from now on, unless the source was
// closed. Its callbacks wait for the lock before they ask whether it is the member.
func (m *member) join(options []kgo.Opt) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return err
	}
	m.client, m.unassigned = client, true
	return nil
}

// demandReplacement asks for a new member instead of this one. It is for what should not
// happen: this source and the client disagree on what is owned, or a topic is
// another one. A new member begins at the group's offsets; while there is none,
// the next one does. It reports whether nobody had asked for this reason before.
func (m *member) demandReplacement(why string, of topicPartition) (first bool) {
	m.mu.Lock()
	first = !slices.Contains(m.reasons, reason{why, of})
	if first && m.client != nil {
		m.reasons = append(m.reasons, reason{why, of})
	}
	m.mu.Unlock()
	m.replacementDemanded()
	return first
}

// replaceDemanded reports whether the member is to be replaced because of a partition.
func (m *member) replaceDemanded(p topicPartition) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(m.reasons, func(r reason) bool { return r.about(p) })
}

// toReplace is why the member is to be replaced; empty if it is not.
func (m *member) toReplace() []reason {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || m.client == nil {
		return nil
	}
	return slices.Clone(m.reasons)
}

// retire ends the member and returns it, so that one caller alone lets it leave:
// its callbacks are ignored from here on, and the next one joins after replaced. What asked for a new member until now is done with
// it: a reason that stayed would replace the next one, too; and one that went
// before would let the source look idle meanwhile.
func (m *member) retire() *kgo.Client {
	m.mu.Lock()
	defer m.mu.Unlock()
	client := m.client
	m.client, m.replacing, m.reasons = nil, true, nil
	return client
}

// replaced lets the next member join.
func (m *member) replaced() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.replacing = false
}

// assigned notes whether the group has told the member what it reads.
func (m *member) assigned(told bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.unassigned = !told
}

// close lets no further member join. It reports whether that is new.
func (m *member) close() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	was := m.closed
	m.closed = true
	return !was
}

func (m *member) isClosed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.closed
}

// reading is the client that was told what it reads, and goes on; nil if there
// is none.
func (m *member) reading() *kgo.Client {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.reasons) > 0 || m.unassigned || m.closed {
		return nil
	}
	return m.client
}

// orphanAfter is how long the client may think it owns a lane that is lost
// here before the member is replaced: it finds out by itself with a heartbeat.
const orphanAfter = 3 * heartbeat

// reason is why a member is to be replaced. One that comes back equals the one
// before it, so why tells no offsets.
type reason struct {
	why string
	// of is the partition that it is about, allOf a topic, or nothing: the member.
	of topicPartition
}

func allOf(topic string) topicPartition { return topicPartition{topic, -1} }

// about reports whether a reason is about a partition.
func (r reason) about(p topicPartition) bool { return r.of == p || r.of == allOf(p.topic) }

// A reason that comes back replaces the next member after a pause: a topic whose
// deletion hangs would else cost the group a rebalance a second. Each pause is
// twice as long as the one before it, from the shortest to the longest; where it
// stayed away for long they begin anew. Another reason does not wait for it: of
// a partition that stands still retention may take more.
const (
	shortestPause = time.Second
	longestPause  = time.Minute
	lasting       = 2 * longestPause
)

// backoff are the pauses of reasons. It is of the goroutine that replaces members.
type backoff map[reason]delay

type delay struct {
	length time.Duration
	// until is when the reason may replace a member again.
	until time.Time
}

// over finds a reason for which the member may be replaced now. If there is one,
// pauses begin: the next member is a try for the other reasons, too.
func (b backoff) over(now time.Time, reasons []reason) (first reason, found bool) {
	i := slices.IndexFunc(reasons, func(r reason) bool { return !now.Before(b[r].until) })
	if i < 0 {
		return reason{}, false
	}
	maps.DeleteFunc(b, func(_ reason, d delay) bool { return now.Sub(d.until) > lasting })
	for _, r := range reasons {
		d := b[r]
		if !now.Before(d.until) {
			d.length = min(max(shortestPause, 2*d.length), longestPause)
		}
		d.until = now.Add(d.length)
		b[r] = d
	}
	return reasons[i], true
}

// replaceMember lets a new member take this one's place, if somebody demands it.
func (g *group) replaceMember(now time.Time) {
	stale := g.lanes.findOrphans()
	reasons, which := g.toReplace()
	first, found := g.backoff.over(now, reasons)
	if !found {
		return
	}
	g.config.Logger.Warn("joining the group anew", "group", g.config.Group, "reason", first.why)
	g.lanes.lose(stale, "its generation is over") // not before: nobody else would read them
	g.handOver(which)
	if client := g.endMember(); client != nil { // else the source is being closed
		ctx, cancel := context.WithTimeout(g.life, askTimeout)
		defer cancel()
		_ = g.discard(ctx, client) // a member that could not leave is removed when its session ends
	}
	g.member.replaced()
	g.gate.rouse()
}

func (g *group) toReplace() ([]reason, []*lane) {
	g.announcing.acquire() // so that the lanes were told of
	defer g.announcing.release()
	return g.member.toReplace(), g.lanes.all()
}

// endMember ends what a member has, also what it was given while its other
// lanes were handed over.
func (g *group) endMember() *kgo.Client {
	g.announcing.acquire()
	defer g.announcing.release()
	client := g.member.retire()
	which := g.lanes.all()
	g.lanes.lose(which, "")
	g.lanes.forgetLanes(which)
	return client
}

// leave ends the member, because the source is closed, after a last commit.
func (g *group) leave(ctx context.Context) error {
	err := g.commits.last(ctx)
	client := g.member.retire()
	g.lanes.lose(g.lanes.all(), "")
	if client == nil { // it has not joined, or is being replaced
		return err
	}
	if left := g.discard(ctx, client); left != nil {
		g.config.Logger.Warn("the group was not left and waits for this member until its session ends", "group", g.config.Group, "error", left)
	}
	return err
}

// discard lets a member leave the group, for as long as ctx allows, and ends it.
func (g *group) discard(ctx context.Context, client *kgo.Client) error {
	err := client.LeaveGroupContext(ctx)
	client.Close()
	return err
}
