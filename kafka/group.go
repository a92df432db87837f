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

// group keeps this process in its consumer group as a member. The type finishes the work of revoked lanes before other
// members get the lanes, and replaces the member if necessary.
type group struct {
	config     *Config
	gate       *gate
	member     *member
	lanes      *lanes
	topics     *topics
	beginnings *beginnings
	commits    *commits
	// The context open ends when the source begins to close. The context life ends when the source is closed.
	open, life context.Context
	// The lock announcing is held while the observer is notified of lanes, so that the observer learns of a new lane
	// before it learns that the lane has ended. The lock handingOver is held while lanes are handed over to other
	// members.
	announcing, handingOver semaphore
	backoff                 backoff
}

// semaphore is a lock that may be held during blocking calls.
type semaphore chan struct{}

func newSemaphore() semaphore { return make(semaphore, 1) }

func (s semaphore) acquire() { s <- struct{}{} }

func (s semaphore) release() { <-s }

// The owner of a lane is the member id and generation with which the lane's offsets are committed. The owner is set
// when the lane is assigned, and changed only in the callbacks of the group in this file. A member that kept its id
// during a rebalance still owns its lanes: the group assigns a lane to another member only after this member has given
// up the lane in a callback of the group. A member with a new id was out of the group for some time. While the member
// was out of the group, another member may have owned the lanes and processed further records. So a member with a new
// id loses all its lanes, also lanes that are assigned to it again.

// The maximum duration of the last commit of revoked lanes.
const lastCommit = 5 * time.Second

func ownerOf(member *kgo.Client) owner {
	id, generation := member.GroupMetadata()
	return owner{id, generation}
}

// onAssigned is called at the beginning of every generation, with the new partitions.
func (g *group) onAssigned(_ context.Context, client *kgo.Client, added map[string][]int32) {
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
	g.lanes.lose(append(lost, again...), whyForgotten) // partitions that are assigned again become new lanes
	g.assign(client, now, added)
	g.lanes.touch()
}

const whyForgotten = "the group had removed this member"

func (g *group) assign(client *kgo.Client, now owner, added map[string][]int32) {
	g.announcing.acquire()
	defer g.announcing.release()
	g.lanes.assign(client, now, added, g.topics.allIDs())
}

// onRevoked is called with the partitions that the group revokes. The group assigns revoked partitions to
// other members after the callback returns.
func (g *group) onRevoked(_ context.Context, client *kgo.Client, taken map[string][]int32) {
	which, lost, ours := g.lanes.renew(client, ownerOf(client), taken)
	if !ours {
		return
	}
	g.lanes.lose(lost, whyForgotten)
	g.handOver(which)
	g.lanes.forget(taken)
}

// onLost is called when the group has taken away all partitions without a revocation.
func (g *group) onLost(_ context.Context, client *kgo.Client, _ map[string][]int32) {
	if !g.member.isCurrent(client) {
		return
	}
	which := g.lanes.all()
	g.lanes.lose(which, "this member's session in the group has ended")
	g.member.setAssigned(false) // the client joins the group again
	g.lanes.forgetLanes(which)
}

// handOver lets all given lanes finish their work at the same time, commits their offsets and gives up the lanes. A
// callback of the group and the replacement of a member may call handOver at the same time. Each lane is handed over
// once, and no call returns before the lanes are handed over.
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
	_ = g.commits.wait(last) // the next owner gets uncommitted messages again
	g.lanes.lose(which, "")
}

// member is the membership of this process in the group. Each new member has a new client; callbacks and
// records of the previous client are ignored.
type member struct {
	// onReplacementDemand is called when the source demands a new member. The function must not block.
	onReplacementDemand func()

	// mu guards the fields below. mu is the innermost lock: no other lock is taken while it is held.
	mu     sync.Mutex
	client *kgo.Client // nil before the first join, and during a replacement
	closed bool
	// The reasons why a new member must replace this member; empty if there is no reason.
	reasons []reason
	// The field replacing is true while the old member leaves the group and the next member must not join yet.
	replacing bool
	// The field unassigned is true while the member joins the group and has not received its assignment.
	unassigned bool
}

// currentClient returns the client of the member; nil if there is no member.
func (m *member) currentClient() *kgo.Client {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.client
}

// isCurrent reports whether client is the client of the current member. Callbacks of other clients are ignored.
func (m *member) isCurrent(client *kgo.Client) bool { return m.currentClient() == client }

// needsJoin reports whether a new member must join.
func (m *member) needsJoin() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.client == nil && !m.closed && !m.replacing
}

// join creates the client of the next member, unless the source was closed. Each callback of the client takes
// the lock and then checks whether the client is still the current one.
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

// demandReplacement demands a new member. A new member is demanded in states that should not occur: this source and the
// client disagree about the owned partitions, or a topic was deleted and created again. A new member begins at the
// group's offsets. If there is no member at present, the next member satisfies the demand. demandReplacement reports
// whether the reason is new.
func (m *member) demandReplacement(why string, of topicPartition) (first bool) {
	m.mu.Lock()
	first = !slices.Contains(m.reasons, reason{why, of})
	if first && m.client != nil {
		m.reasons = append(m.reasons, reason{why, of})
	}
	m.mu.Unlock()
	m.onReplacementDemand()
	return first
}

// replaceDemanded reports whether one of the reasons to replace the member is about partition p.
func (m *member) replaceDemanded(p topicPartition) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(m.reasons, func(r reason) bool { return r.concerns(p) })
}

// replaceReasons returns the reasons why the member must be replaced; empty if there is no reason.
func (m *member) replaceReasons() []reason {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || m.client == nil {
		return nil
	}
	return slices.Clone(m.reasons)
}

// retire ends the member and returns its client. Only one caller gets the client, and this caller must leave the group.
// After retire, callbacks of the client are ignored, and the next member joins after a call of allowJoin. retire also
// removes all reasons. A reason that stayed in the list would also replace the next member. If retire removed the
// reasons earlier, the source would look idle.
func (m *member) retire() *kgo.Client {
	m.mu.Lock()
	defer m.mu.Unlock()
	client := m.client
	m.client, m.replacing, m.reasons = nil, true, nil
	return client
}

// allowJoin allows the next member to join.
func (m *member) allowJoin() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.replacing = false
}

// setAssigned stores whether the member has received its assignment.
func (m *member) setAssigned(told bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.unassigned = !told
}

// The method close prevents further members from joining. The result is false if close was called before.
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

// readingClient returns the client if the client has received its assignment and must not be replaced. In all other
// cases readingClient returns nil.
func (m *member) readingClient() *kgo.Client {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.reasons) > 0 || m.unassigned || m.closed {
		return nil
	}
	return m.client
}

// orphanAfter is the time for which the client may keep a lane that this source has marked as lost. After the time
// orphanAfter, the member is replaced. Usually the client learns earlier from a heartbeat that the lane is lost.
const orphanAfter = 3 * heartbeat

// reason is a reason why a member must be replaced. Equal reasons count as a repetition, so the text contains no
// offsets.
type reason struct {
	why string
	// The partition that the reason concerns; allOf(topic) for a whole topic, and zero for the member.
	partition topicPartition
}

func allOf(topic string) topicPartition { return topicPartition{topic, -1} }

func (r reason) concerns(p topicPartition) bool {
	return r.partition == p || r.partition == allOf(p.topic)
}

// A repeated reason replaces the next member only after a pause. Without the pause, a topic whose deletion hangs would
// cause a rebalance every second. Each pause is twice as long as the previous pause, up to a maximum. If the reason
// does not occur for a long time, the next pause is the shortest again. A different reason does not wait for the pause
// of an earlier reason, because in a stopped partition the retention of the topic may remove more records.
const (
	shortestPause = time.Second
	longestPause  = time.Minute
	lasting       = 2 * longestPause
)

// backoff contains the pause of each reason. Only the goroutine that replaces members uses a backoff.
type backoff map[reason]delay

type delay struct {
	length time.Duration
	// The time from which the reason may replace a member again.
	until time.Time
}

// takeDue returns a reason whose pause has ended. If a reason is found, the pauses of all reasons begin again, because
// the next member is also an attempt to fix the other reasons.
func (b backoff) takeDue(now time.Time, reasons []reason) (first reason, found bool) {
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

// replaceMember replaces this member by a new member if there is a reason.
func (g *group) replaceMember(now time.Time) {
	stale := g.lanes.findOrphans()
	reasons, which := g.replaceReasons()
	first, found := g.backoff.takeDue(now, reasons)
	if !found {
		return
	}
	g.config.Logger.Warn("joining the group again", "group", g.config.Group, "reason", first.why)
	g.lanes.lose(stale, "its generation has ended") // not earlier, because no other member would read these lanes
	g.handOver(which)
	if client := g.endMember(); client != nil { // nil if the source is being closed
		ctx, cancel := context.WithTimeout(g.life, askTimeout)
		defer cancel()
		_ = g.discard(ctx, client) // if the member cannot leave, the group removes it after its session timeout
	}
	g.member.allowJoin()
	g.gate.wakeUp()
}

func (g *group) replaceReasons() ([]reason, []*lane) {
	g.announcing.acquire() // wait until the observer knows all lanes
	defer g.announcing.release()
	return g.member.replaceReasons(), g.lanes.all()
}

// endMember ends the member and all its lanes, also lanes that were assigned while other lanes were handed over.
func (g *group) endMember() *kgo.Client {
	g.announcing.acquire()
	defer g.announcing.release()
	client := g.member.retire()
	which := g.lanes.all()
	g.lanes.lose(which, "")
	g.lanes.forgetLanes(which)
	return client
}

// leave is called when the source is closed: it commits a last time and ends the member.
func (g *group) leave(ctx context.Context) error {
	err := g.commits.commitLast(ctx)
	client := g.member.retire()
	g.lanes.lose(g.lanes.all(), "")
	if client == nil { // no member has joined, or the member is being replaced
		return err
	}
	if left := g.discard(ctx, client); left != nil {
		g.config.Logger.Warn("the group could not be left; it waits for this member until its session ends", "group", g.config.Group, "error", left)
	}
	return err
}

// discard makes a member leave the group and closes its client. The request to leave ends with ctx.
func (g *group) discard(ctx context.Context, client *kgo.Client) error {
	err := client.LeaveGroupContext(ctx)
	client.Close()
	return err
}
