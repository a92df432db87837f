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

// search looks for topics that match the pattern, and for beginnings that could
// not be found. It waits for the store; so nothing else waits for it.
func (s *Source) search() {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		select {
		case <-s.life.Done():
			return
		case now := <-ticker.C:
			s.seek(now)
			s.beginnings.decideAgain(s.life, now)
		}
	}
}

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
		case <-s.lanes.changed:
		case now := <-ticker.C:
			s.skipLost()
			s.faults.remind()
			s.group.replaceMember(now)
			if s.brokers.unanswered.Within(lateness, now) {
				s.commits.rouse()
			}
			if !now.Before(next) && s.lanes.any() {
				next = now.Add(askEvery)
				if s.look() && s.config.Observe != nil {
					next = now
				}
			}
		}
		s.progress.logFaults(time.Now())
		s.report()
	}
}

// seek looks from time to time for topics that match the pattern.
func (s *Source) seek(now time.Time) {
	if !s.topics.due(now) {
		return
	}
	ctx, cancel := context.WithTimeout(s.life, askTimeout)
	defer cancel()
	_ = s.beginnings.look(ctx) // Fetch says what is wrong with the brokers
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
	s.askUnread(ctx)
	return true
}

// noteHeldUp logs once that a transaction stays open. Called with lanes.mu held.
func (p *progress) noteHeldUp(l *lane, now time.Time) {
	switch {
	case !l.heldUp(p.config.ReadUncommitted):
		l.heldUpSince = time.Time{}
	case l.heldUpSince.IsZero():
		l.heldUpSince, l.heldUpTold = now, false
	case !l.heldUpTold && now.Sub(l.heldUpSince) >= heldUpAfter:
		l.heldUpTold = true
		p.config.Logger.Warn("a transaction stays open and holds up what is behind it; its producer must end it, or an operator (kafka-transactions.sh find-hanging, abort)",
			"group", p.config.Group, "lane", l.id.ID, "offset", l.stable, "end", l.end)
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
	if states := s.progress.states(); len(states) > 0 {
		s.config.Observe(states)
	}
}
