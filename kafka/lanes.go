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

// lanes are the partitions that this process owns, the observer of assignments, and the lock for changes of lanes.
// lanes sends no requests: group reports what the consumer group assigns and revokes. Other types handle the rest of a
// lane: intake (what the client reads), deliveries (what the consumer has), commits (what the group has) and progress
// (its position in the log).
type lanes struct {
	config   *Config
	budget   *hook.Budget
	member   *member
	observer source.LaneObserver // nil if there is no observer
	// ended is called with a lane that has ended, while mu is held, if Observe is set.
	ended func(*lane)
	// changed has a value if a lane was assigned, lost or stopped.
	changed chan struct{}

	// mu guards the fields below, and the fields of every lane and record. Other types access them through each, living
	// and with. mu is not held during blocking calls; only the locks of intake, progress, member and faults are taken
	// while it is held.
	mu          sync.Mutex
	byPartition map[topicPartition]*lane
	// order contains the lanes in the order of assignment.
	order []*lane
	epoch uint64
}

func newLanes(c *Config, o *hook.Budget, m *member) *lanes {
	return &lanes{config: c, budget: o, member: m, byPartition: map[topicPartition]*lane{}, changed: make(chan struct{}, 1)}
}

// each iterates over all lanes, including lost lanes that are not forgotten yet. The lock is held during the iteration.
func (ls *lanes) each(yield func(*lane) bool) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, l := range ls.order {
		if !yield(l) {
			return
		}
	}
}

// living calls do with the living lane of a partition, if there is one, while the lock is held.
func (ls *lanes) living(p topicPartition, do func(*lane)) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if l := ls.byPartition[p]; l != nil && !l.gone {
		do(l)
	}
}

// with calls do with all lanes in order, while the lock is held.
func (ls *lanes) with(do func(all []*lane)) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	do(ls.order)
}

// at returns the lane of a partition, even if it is lost; nil if there is none. Call it only within with.
func (ls *lanes) at(p topicPartition) *lane { return ls.byPartition[p] }

// touch causes a report of the lanes at once. touch never blocks.
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

// give creates lanes for newly assigned partitions of a member, and notifies the observer.
func (ls *lanes) give(client *kgo.Client, now owner, added map[string][]int32, ids map[string][16]byte) {
	for _, l := range ls.add(client, now, added, ids) {
		ls.observe(func(o source.LaneObserver) { o.Given(l.id) })
	}
}

func (ls *lanes) add(client *kgo.Client, now owner, added map[string][]int32, ids map[string][16]byte) []*lane {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if !ls.member.is(client) {
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
	ls.member.assigned(true)
	return given
}

func newLane(p topicPartition, epoch uint64) *lane {
	return &lane{
		topicPartition: p,
		id:             source.Lane{ID: p.lane(), Epoch: epoch},
		next:           -1, done: position{-1, -1}, committed: position{-1, -1}, kept: -1, end: -1, stable: -1, delivered: -1,
	}
}

// renew changes the owner of a member's lanes and finds its lanes of partitions. lost are the lanes that this owner
// cannot have owned without interruption.
func (ls *lanes) renew(client *kgo.Client, now owner, partitions map[string][]int32) (found, lost []*lane, ok bool) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if !ls.member.is(client) {
		return nil, nil, false
	}
	for _, l := range ls.order {
		switch {
		case l.gone:
		case l.owner.member == now.member:
			l.owner = now
		default:
			lost = append(lost, l)
		}
	}
	for topic, numbers := range partitions {
		for _, number := range numbers {
			if l := ls.byPartition[topicPartition{topic, number}]; l != nil && !l.gone && !slices.Contains(lost, l) {
				found = append(found, l)
			}
		}
	}
	return found, lost, true
}

// all returns all lanes, including lost lanes that are not forgotten yet.
func (ls *lanes) all() []*lane {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return slices.Clone(ls.order)
}

// any reports whether there is a lane.
func (ls *lanes) any() bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return len(ls.order) > 0
}

// has reports whether a partition is a living lane.
func (ls *lanes) has(p topicPartition) (lives bool) {
	ls.living(p, func(*lane) { lives = true })
	return lives
}

// given returns how many lanes were ever assigned.
func (ls *lanes) given() uint64 {
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

// forgetLanes removes lanes, or the later lanes of their partitions.
func (ls *lanes) forgetLanes(which []*lane) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, l := range which {
		ls.forgetPartition(l.topicPartition)
	}
}

// forgetPartition removes a partition. The caller holds lanes.mu.
func (ls *lanes) forgetPartition(p topicPartition) {
	l := ls.byPartition[p]
	if l == nil {
		return
	}
	l.gone = true
	ls.budget.Hold(-l.held)
	l.held = 0
	delete(ls.byPartition, p)
	ls.order = slices.DeleteFunc(ls.order, func(other *lane) bool { return other == l })
}

// drain stops deliveries of lanes, because they are handed over. drain returns the living ones.
func (ls *lanes) drain(which []*lane) []*lane {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	which = slices.DeleteFunc(which, func(l *lane) bool { return l.gone })
	for _, l := range which {
		l.leaving = true
	}
	return which
}

// lose ends lanes: nothing of them is delivered or settled any more. If reason is not empty, a warning is logged for
// each lane; lanes that were handed over have no reason.
func (ls *lanes) lose(which []*lane, reason string) {
	var given []held
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

// end ends a lane, and returns it with its committed offset. end reports whether the lane was
// living.
func (ls *lanes) end(l *lane) (held, bool) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	was := l.gone
	l.gone, l.goneAt = true, time.Now()
	if !was && ls.config.Observe != nil {
		ls.ended(l)
	}
	return held{l.topicPartition, l.committed.offset}, !was
}

// findOrphans demands a new member if the client still reads lanes that are lost here, or if a generation has passed
// without a lane's owner.
func (ls *lanes) findOrphans() (stale []*lane) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, l := range ls.order {
		switch {
		case l.gone && time.Since(l.goneAt) > orphanAfter:
			ls.member.demandReplacement("the client still reads lanes that are lost", l.topicPartition)
		case !l.gone && l.refused == l.owner && time.Since(l.refusedAt) > rebalanceTimeout:
			ls.member.demandReplacement("the group continued without this member", l.topicPartition)
			stale = append(stale, l)
		}
	}
	return stale
}

// held is a partition and the group's offset in it; negative if the group has none.
type held struct {
	topicPartition
	next int64
}

// logPartitions logs in one line the partitions that were assigned or given up, with their offsets. A line names at most
// mostNamed partitions and the number of others.
func logPartitions(c *Config, what string, all []held) {
	if len(all) == 0 {
		return
	}
	slices.SortFunc(all, func(a, b held) int { return a.compare(b.topicPartition) })
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
