package kafka

import (
	"context"
	"slices"
	"time"

	"github.com/semel-go/semel/contract"
	"github.com/semel-go/semel/internal/worker"
	"github.com/twmb/franz-go/pkg/kgo"
)

// A lane's stamp says as whom it may be committed. It is taken when the lane is
// given, and renewed only here, while the group's callbacks run: a member that
// has kept its id through a rebalance was asked, in each generation, what it
// owns, and what it owns is given to nobody else before it has given it up in
// one of these callbacks. A member that got another id was out of the group in
// between; someone else may have owned the lane and gone further, so all it has
// is lost, whatever it is assigned afterwards.

// renewStamps renews the stamps of what a member holds. It returns those lanes
// that the member of this stamp cannot have held all the time. Called with
// Source.mu held.
func (s *Source) renewStamps(now stamp) (lost []*lane) {
	for _, l := range s.order {
		switch {
		case l.gone:
		case l.stamp.member == now.member:
			l.stamp = now
		default:
			lost = append(lost, l)
		}
	}
	return lost
}

// lastCommit is how long the last commit of lanes that are given up may take.
const lastCommit = 5 * time.Second

func stampOf(member *kgo.Client) stamp {
	id, generation := member.GroupMetadata()
	return stamp{id, generation}
}

// assigned is called at the begin of every generation, with what is new in it.
func (s *Source) assigned(_ context.Context, member *kgo.Client, added map[string][]int32) {
	s.gate.hold()
	defer s.gate.release()
	s.mu.Lock()
	if s.member != member {
		s.mu.Unlock()
		return
	}
	now := stampOf(member)
	lost := s.renewStamps(now)
	if len(lost) > 0 {
		s.replace("the group had forgotten this member")
	}
	lost = append(lost, s.lanesOf(added)...) // what is given is new
	s.mu.Unlock()
	s.lose(lost, "the group had forgotten this member")
	s.tellGiven(member, now, added)
	s.touch()
}

func (s *Source) tellGiven(member *kgo.Client, now stamp, added map[string][]int32) {
	s.telling.Lock()
	defer s.telling.Unlock()
	for _, l := range s.giveLanes(member, now, added) {
		s.observe(func(o contract.LaneObserver) { o.Given(l.id) })
	}
}

func (s *Source) giveLanes(member *kgo.Client, now stamp, added map[string][]int32) []*lane {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.member != member {
		return nil
	}
	s.unplaced = false
	var given []*lane
	for topic, partitions := range added {
		for _, partition := range partitions {
			s.epoch++
			l := newLane(place{topic, partition}, s.epoch)
			l.stamp, l.topicID = now, s.topicIDs[topic]
			s.forget(l.place)
			s.lanes[l.place] = l
			s.order = append(s.order, l)
			member.ResumeFetchPartitions(l.asMap())
			given = append(given, l)
		}
	}
	return given
}

func newLane(p place, epoch uint64) *lane {
	return &lane{
		place: p,
		id:    contract.Lane{ID: p.lane(), Epoch: epoch},
		next:  -1, done: position{-1, -1}, committed: position{-1, -1}, end: -1, stable: -1, delivered: -1,
	}
}

// forget drops what is known of a partition. Called with Source.mu held.
func (s *Source) forget(p place) {
	if l := s.lanes[p]; l != nil {
		l.gone = true
		s.back -= len(l.back)
		s.room.held.Add(-l.held)
		l.held = 0
		delete(s.lanes, p)
		s.order = slices.DeleteFunc(s.order, func(other *lane) bool { return other == l })
	}
	delete(s.faults.stays, p)
}

func (s *Source) observe(tell func(contract.LaneObserver)) {
	if s.observer != nil {
		tell(s.observer)
	}
}

// revoked is called with what the group takes away, before it gives it to
// anyone else.
func (s *Source) revoked(_ context.Context, member *kgo.Client, taken map[string][]int32) {
	s.mu.Lock()
	if s.member != member {
		s.mu.Unlock()
		return
	}
	lost := s.renewStamps(stampOf(member))
	lanes := slices.DeleteFunc(s.lanesOf(taken), func(l *lane) bool { return slices.Contains(lost, l) })
	s.mu.Unlock()
	s.lose(lost, "the group had forgotten this member")
	s.handOver(lanes)
	s.drop(taken)
}

// lostAll is called when the group has taken everything away without asking.
func (s *Source) lostAll(_ context.Context, member *kgo.Client, _ map[string][]int32) {
	s.mu.Lock()
	if s.member != member {
		s.mu.Unlock()
		return
	}
	lanes := slices.Clone(s.order)
	s.mu.Unlock()
	s.lose(lanes, "this member's session in the group has ended")
	s.mu.Lock()
	s.unplaced = true // it joins again
	for _, l := range lanes {
		s.forget(l.place)
	}
	s.mu.Unlock()
}

// lanesOf are the living lanes of partitions. Called with Source.mu held.
func (s *Source) lanesOf(taken map[string][]int32) []*lane {
	var lanes []*lane
	for topic, partitions := range taken {
		for _, partition := range partitions {
			if l := s.lanes[place{topic, partition}]; l != nil && !l.gone {
				lanes = append(lanes, l)
			}
		}
	}
	return lanes
}

func (s *Source) drop(taken map[string][]int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for topic, partitions := range taken {
		for _, partition := range partitions {
			s.forget(place{topic, partition})
		}
	}
}

// handOver lets lanes end what they began, all at once, commits, and gives
// them up. The group and who replaces a member may do that at once; each lane
// is handed over once, and both return when it is.
func (s *Source) handOver(lanes []*lane) {
	if len(lanes) == 0 {
		return
	}
	s.handing <- struct{}{}
	defer func() { <-s.handing }()
	s.mu.Lock()
	lanes = slices.DeleteFunc(lanes, func(l *lane) bool { return l.gone })
	for _, l := range lanes {
		l.leaving = true
	}
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(s.open, s.config.RevokeTimeout)
	defer cancel()
	var asked worker.Group
	for _, l := range lanes {
		asked.Go(func() { s.observe(func(o contract.LaneObserver) { o.Revoking(ctx, l.id) }) })
	}
	asked.Wait()
	last, stop := context.WithTimeout(s.life, lastCommit)
	defer stop()
	_ = s.commits.wait(last) // what is not committed comes again, from the next owner
	s.lose(lanes, "")
}

// lose ends lanes: nothing of them is delivered or settled any more. A reason
// is logged; what was handed over has none.
func (s *Source) lose(lanes []*lane, reason string) {
	for _, l := range lanes {
		s.mu.Lock()
		was := l.gone
		l.gone, l.goneAt = true, time.Now()
		if !was && s.config.Observe != nil {
			s.lastStates = append(s.lastStates, s.state(l))
		}
		s.mu.Unlock()
		if was {
			continue
		}
		if reason != "" {
			s.config.Logger.Warn("lane lost", "group", s.config.Group, "lane", l.id.ID, "reason", reason)
		}
		s.observe(func(o contract.LaneObserver) { o.Lost(l.id) })
	}
	s.touch()
}
