package kafka

import (
	"context"
	"time"
)

const (
	// lookEvery is how often the ends of partitions are asked for when
	// somebody observes, and askEvery when nobody does, or the brokers do not
	// answer: the client logs each try.
	lookEvery = time.Second
	askEvery  = 15 * time.Second
	// heldUpAfter is how long a transaction may stay open at the head of what
	// is to be read before it is logged.
	heldUpAfter = time.Minute
)

// watch looks after the source: it replaces a member that must be, asks for the
// ends of logs, and reports lanes.
func (s *Source) watch() {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	var next time.Time
	for {
		select {
		case <-s.life.Done():
			return
		case <-s.changed:
		case now := <-ticker.C:
			s.seek(now)
			s.decideAgain(now)
			s.passLost()
			s.remind()
			s.replaceMember()
			if s.unanswered.lately(now) {
				s.commits.rouse()
			}
			if !now.Before(next) && s.reads() {
				next = now.Add(askEvery)
				if s.look() && s.config.Observe != nil {
					next = now
				}
			}
		}
		s.tellStays(time.Now())
		s.report()
	}
}

// remind lets Fetch say what others noted, also where nothing comes that would
// end its wait.
func (s *Source) remind() {
	s.mu.Lock()
	due := len(s.faults.news) > 0
	s.mu.Unlock()
	if due {
		s.gate.rouse()
	}
}

// touch lets lanes be reported at once. It never waits.
func (s *Source) touch() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// reads reports whether it has a lane.
func (s *Source) reads() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.order) > 0
}

// look asks where the partitions begin and end. It reports whether that was
// answered; who cannot reach the brokers hears it from Fetch.
func (s *Source) look() bool {
	ctx, cancel := context.WithTimeout(s.life, askTimeout)
	defer cancel()
	if s.askEnds(ctx) != nil {
		return false
	}
	s.askStalled(ctx)
	return true
}

// noteHeldUp logs once that a transaction stays open. Called with Source.mu held.
func (s *Source) noteHeldUp(l *lane, now time.Time) {
	switch {
	case !l.heldUp(s.config.ReadUncommitted):
		l.heldUpSince = time.Time{}
	case l.heldUpSince.IsZero():
		l.heldUpSince, l.heldUpTold = now, false
	case !l.heldUpTold && now.Sub(l.heldUpSince) >= heldUpAfter:
		l.heldUpTold = true
		s.config.Logger.Warn("a transaction stays open and holds up what is behind it; its producer must end it, or an operator (kafka-transactions.sh find-hanging, abort)",
			"group", s.config.Group, "lane", l.id.ID, "offset", l.stable, "end", l.end)
	}
}

// heldUp reports whether records are there and none can be delivered.
func (l *lane) heldUp(uncommitted bool) bool {
	return !uncommitted && !l.gone && l.stable >= 0 && l.stable < l.end && len(l.ready) == 0 && l.reached() >= l.stable
}

// reached is the offset behind the last record delivered, or passed over
// because it carries nothing; -1 before the first.
func (l *lane) reached() int64 {
	if len(l.ready) == 0 {
		return max(l.next, l.delivered)
	}
	return l.delivered
}

// report tells Observe of all lanes, and for the last time of those lost.
func (s *Source) report() {
	if s.config.Observe == nil {
		return
	}
	s.mu.Lock()
	states := s.lastStates
	s.lastStates = nil
	for _, l := range s.order {
		if !l.gone {
			states = append(states, s.state(l))
		}
	}
	s.mu.Unlock()
	if len(states) > 0 {
		s.config.Observe(states)
	}
}

// state is called with Source.mu held.
func (s *Source) state(l *lane) LaneState {
	return LaneState{
		Topic: l.topic, Partition: l.partition, Committed: l.committed.offset, Delivered: l.reached(), End: l.end,
		Unsettled: l.unsettled, Oldest: l.oldest(), Paused: l.paused, HeldUp: l.heldUp(s.config.ReadUncommitted), Fault: s.faultOf(l), Lost: l.gone,
	}
}
