package kafka

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/semel-go/semel/kafka/internal/hook"
	"github.com/semel-go/semel/source"
	"github.com/twmb/franz-go/pkg/kgo"
)

// lanes holds the partitions that this process owns, the observer of assignments, and the lock for changes of lanes.
// The type lanes sends no requests: the type group calls it when the consumer group assigns or revokes partitions.
// Other types handle the other aspects of a lane: intake reads records, deliveries passes records to the consumer,
// commits commits offsets, and progress computes positions in the log.
type lanes struct {
	config   *Config
	budget   *hook.Budget
	member   *member
	observer source.LaneObserver // nil if there is no observer
	// onEnd is called with each lane that this process gives up or loses, while mu is held. The function
	// is nil unless Config.Observe is set.
	onEnd func(*lane)
	// The channel changed gets a value when a lane was assigned, lost or stopped.
	changed chan struct{}

	// mu guards the fields below, and the fields of every lane and record. Other types access these fields in callbacks
	// of the methods each, withLane and withAll. mu is not held during blocking calls. A goroutine that holds mu may
	// lock only the mutexes of intake, progress, member and faults.
	mu          sync.Mutex
	byPartition map[topicPartition]*lane
	// The lanes in the order of assignment.
	order []*lane
	epoch uint64
}

func newLanes(c *Config, o *hook.Budget, m *member) *lanes {
	return &lanes{config: c, budget: o, member: m, byPartition: map[topicPartition]*lane{}, changed: make(chan struct{}, 1)}
}

// The method each iterates over all lanes, including lost lanes that are not forgotten yet. The iteration holds the
// lock.
func (ls *lanes) each(yield func(*lane) bool) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, l := range ls.order {
		if !yield(l) {
			return
		}
	}
}

// withLane calls the function do with the lane of a partition, if the partition has a lane that is not gone.
// The lock is held during the call.
func (ls *lanes) withLane(p topicPartition, do func(*lane)) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if l := ls.byPartition[p]; l != nil && !l.ended {
		do(l)
	}
}

// withAll calls the function do with all lanes in order. The lock is held during the call.
func (ls *lanes) withAll(do func(all []*lane)) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	do(ls.order)
}

// find returns the lane of a partition, even if the lane is lost; nil if the partition has no lane. Only
// callbacks of withLane and withAll may call find.
func (ls *lanes) find(p topicPartition) *lane { return ls.byPartition[p] }

// touch requests a report of the lanes at once. touch never blocks.
func (ls *lanes) touch() {
	select {
	case ls.changed <- struct{}{}:
	default:
	}
}

func (ls *lanes) observe(tell func(source.LaneObserver)) {
	if ls.observer != nil {
		tell(ls.observer)
	}
}

// assign creates a lane for each newly assigned partition of a member, and notifies the observer.
func (ls *lanes) assign(client *kgo.Client, now owner, added map[string][]int32, ids map[string][16]byte) {
	for _, l := range ls.add(client, now, added, ids) {
		ls.observe(func(o source.LaneObserver) { o.Given(l.id) })
	}
}

func (ls *lanes) add(client *kgo.Client, now owner, added map[string][]int32, ids map[string][16]byte) []*lane {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if !ls.member.isCurrent(client) {
		return nil
	}
	var given []*lane
	for topic, partitions := range added {
		for _, partition := range partitions {
			ls.epoch++
			l := newLane(topicPartition{topic, partition}, ls.epoch)
			l.owner, l.topicID = now, ids[topic]
			ls.forgetPartition(l.topicPartition)
			ls.byPartition[l.topicPartition] = l
			ls.order = append(ls.order, l)
			client.ResumeFetchPartitions(l.asMap())
			given = append(given, l)
		}
	}
	ls.member.setAssigned(true)
	return given
}

func newLane(p topicPartition, epoch uint64) *lane {
	return &lane{
		topicPartition: p,
		id:             source.Lane{ID: p.lane(), Epoch: epoch},
		next:           -1, acked: position{-1, -1}, committed: position{-1, -1}, storedOffset: -1, end: -1, stable: -1, delivered: -1,
	}
}

// renew sets the current owner in the lanes of a member. The result found contains the lanes of the given partitions.
// The result lost contains lanes that another owner may have had since the last assignment.
func (ls *lanes) renew(client *kgo.Client, now owner, partitions map[string][]int32) (found, lost []*lane, ok bool) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if !ls.member.isCurrent(client) {
		return nil, nil, false
	}
	for _, l := range ls.order {
		switch {
		case l.ended:
		case l.owner.member == now.member:
			l.owner = now
		default:
			lost = append(lost, l)
		}
	}
	for topic, numbers := range partitions {
		for _, number := range numbers {
			if l := ls.byPartition[topicPartition{topic, number}]; l != nil && !l.ended && !slices.Contains(lost, l) {
				found = append(found, l)
			}
		}
	}
	return found, lost, true
}

// The method all returns all lanes, including lost lanes that are not forgotten yet.
func (ls *lanes) all() []*lane {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return slices.Clone(ls.order)
}

// hasAny reports whether this process has a lane.
func (ls *lanes) hasAny() bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return len(ls.order) > 0
}

// hasLane reports whether this process has a lane for a partition, and the lane is not gone.
func (ls *lanes) hasLane(p topicPartition) (lives bool) {
	ls.withLane(p, func(*lane) { lives = true })
	return lives
}

// countAssigned returns the number of lanes that were ever assigned to this source.
func (ls *lanes) countAssigned() uint64 {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return ls.epoch
}

// forget removes the lanes of partitions.
func (ls *lanes) forget(partitions map[string][]int32) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for topic, numbers := range partitions {
		for _, number := range numbers {
			ls.forgetPartition(topicPartition{topic, number})
		}
	}
}

// forgetLanes removes the partitions of the given lanes, even if these partitions have newer lanes now.
func (ls *lanes) forgetLanes(which []*lane) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, l := range which {
		ls.forgetPartition(l.topicPartition)
	}
}

// forgetPartition removes a partition with its lane. The caller holds lanes.mu.
func (ls *lanes) forgetPartition(p topicPartition) {
	l := ls.byPartition[p]
	if l == nil {
		return
	}
	l.ended = true
	ls.budget.Hold(-l.heldBytes)
	l.heldBytes = 0
	delete(ls.byPartition, p)
	ls.order = slices.DeleteFunc(ls.order, func(other *lane) bool { return other == l })
}

// drain stops the deliveries of lanes before a handover. drain returns the lanes that are not gone.
func (ls *lanes) drain(which []*lane) []*lane {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	which = slices.DeleteFunc(which, func(l *lane) bool { return l.ended })
	for _, l := range which {
		l.leaving = true
	}
	return which
}

// lose ends lanes: the lanes' records are no longer delivered, and acks have no effect. With a reason, lose logs a
// warning for each lane. The parameter reason is empty for lanes that were handed over to another member.
func (ls *lanes) lose(which []*lane, reason string) {
	var given []partitionOffset
	for _, l := range which {
		at, ended := ls.end(l)
		if !ended {
			continue
		}
		given = append(given, at)
		if reason != "" {
			ls.config.Logger.Warn("lane lost", "group", ls.config.Group, "lane", l.id.ID, "reason", reason)
		}
		ls.observe(func(o source.LaneObserver) { o.Lost(l.id) })
	}
	if reason == "" {
		logPartitions(ls.config, "partitions given up", given)
	}
	ls.touch()
}

// end ends a lane, and returns its partition and committed offset. The result is false if the lane had ended
// before.
func (ls *lanes) end(l *lane) (partitionOffset, bool) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	was := l.ended
	l.ended, l.endedAt = true, time.Now()
	if !was && ls.config.Observe != nil {
		ls.onEnd(l)
	}
	return partitionOffset{l.topicPartition, l.committed.offset}, !was
}

// findOrphans demands a new member in two cases: the client still reads a lane that is lost here, or a
// generation has begun that did not renew the owner of a lane.
func (ls *lanes) findOrphans() (stale []*lane) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, l := range ls.order {
		switch {
		case l.ended && time.Since(l.endedAt) > orphanAfter:
			ls.member.demandReplacement("the client still reads lanes that are lost", l.topicPartition)
		case !l.ended && l.refused == l.owner && time.Since(l.refusedAt) > rebalanceTimeout:
			ls.member.demandReplacement("the group continued without this member", l.topicPartition)
			stale = append(stale, l)
		}
	}
	return stale
}

// partitionOffset is a partition with the group's offset; the offset is negative if the group has no offset.
type partitionOffset struct {
	topicPartition
	next int64
}

// logPartitions writes one log line with the partitions that were assigned or given up, and their offsets. The line
// names at most mostNamed partitions, and contains the number of all partitions.
func logPartitions(c *Config, what string, all []partitionOffset) {
	if len(all) == 0 {
		return
	}
	slices.SortFunc(all, func(a, b partitionOffset) int { return a.compare(b.topicPartition) })
	var named []string
	for _, h := range all[:min(len(all), mostNamed)] {
		if h.next < 0 {
			named = append(named, h.lane()+"@start") // the group has no offset
			continue
		}
		named = append(named, fmt.Sprintf("%s@%d", h.lane(), h.next))
	}
	c.Logger.Info(what, "group", c.Group, "count", len(all), "partitions", named)
}
