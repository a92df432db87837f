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

// lanes are the partitions that this process owns: who is told that they come
// and go, and the lock under which they change. They send no request: the group
// tells them what it gives and takes. What else happens to a lane has a room each:
// intake (what the client reads of it), deliveries (what the consumer has of it),
// commits (what the group knows of it) and progress (where it is in its log).
type lanes struct {
	config   *Config
	budget   *hook.Budget
	member   *member
	observer source.LaneObserver // nil if nobody is told
	// ended is called with a lane that has ended, under mu, if Observe is set.
	ended func(*lane)
	// changed has a value when a lane has changed hands, or stands still.
	changed chan struct{}

	// mu guards the rest, and the fields of every lane and record; other rooms
	// come to them through each, living and with. Who holds it waits for nothing;
	// under it only the locks of intake, progress, member and faults are taken.
	mu          sync.Mutex
	byPartition map[topicPartition]*lane
	// order are the lanes in the order in which they were given.
	order []*lane
	epoch uint64
}

func newLanes(c *Config, o *hook.Budget, m *member) *lanes {
	return &lanes{config: c, budget: o, member: m, byPartition: map[topicPartition]*lane{}, changed: make(chan struct{}, 1)}
}

// each runs over the lanes there are, also those that are lost and not forgotten
// yet. Nothing of any lane changes meanwhile but by who runs over them.
func (ls *lanes) each(yield func(*lane) bool) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, l := range ls.order {
		if !yield(l) {
			return
		}
	}
}

// living gives do the living lane of a partition, if there is one. Nothing of any
// lane changes meanwhile but by do.
func (ls *lanes) living(p topicPartition, do func(*lane)) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if l := ls.byPartition[p]; l != nil && !l.gone {
		do(l)
	}
}

// with gives do all lanes, in their order. Nothing of any lane changes meanwhile
// but by do.
func (ls *lanes) with(do func(all []*lane)) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	do(ls.order)
}

// at is the lane of a partition, also one that is lost; nil if there is none.
// Called within with.
func (ls *lanes) at(p topicPartition) *lane { return ls.byPartition[p] }

// touch lets lanes be reported at once. It never waits.
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

// give makes lanes of what the group has given to a member, and tells of them.
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

// renew renews the owner of what a member holds, and finds its lanes of
// partitions. Lost are those that this owner cannot have held all the time.
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

// all are the lanes there are, also those that are lost and not forgotten yet.
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

// given counts the lanes that were ever given.
func (ls *lanes) given() uint64 {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return ls.epoch
}

// forget drops what is known of partitions.
func (ls *lanes) forget(partitions map[string][]int32) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for topic, numbers := range partitions {
		for _, number := range numbers {
			ls.forgetPartition(topicPartition{topic, number})
		}
	}
}

// forgetLanes drops lanes, or what has come after them in their partitions.
func (ls *lanes) forgetLanes(which []*lane) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, l := range which {
		ls.forgetPartition(l.topicPartition)
	}
}

// forgetPartition is called with lanes.mu held.
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

// drain lets lanes deliver nothing more, because they are handed over. It
// returns those that live.
func (ls *lanes) drain(which []*lane) []*lane {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	which = slices.DeleteFunc(which, func(l *lane) bool { return l.gone })
	for _, l := range which {
		l.leaving = true
	}
	return which
}

// lose ends lanes: nothing of them is delivered or settled any more. A reason
// is a warning for each lane; lanes that were handed over have none.
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

// end ends a lane, and returns it with the offset that is committed for it. It reports
// whether the lane was living.
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

// findOrphans asks for a new member where lanes are lost here and the client
// goes on reading them, or where a generation has passed a lane by.
func (ls *lanes) findOrphans() (stale []*lane) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, l := range ls.order {
		switch {
		case l.gone && time.Since(l.goneAt) > orphanAfter:
			ls.member.demandReplacement("the client still reads lanes that are lost", l.topicPartition)
		case !l.gone && l.refused == l.owner && time.Since(l.refusedAt) > rebalanceTimeout:
			ls.member.demandReplacement("the group went on without this member", l.topicPartition)
			stale = append(stale, l)
		}
	}
	return stale
}

// held is a partition and the group's offset in it, negative if the group has none.
type held struct {
	topicPartition
	next int64
}

// logPartitions logs in one line which partitions the group has assigned or taken away, and at
// which offsets. A line names at most mostNamed of them and counts the others.
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
