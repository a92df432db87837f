package kafka

import (
	"time"

	"github.com/semel-go/semel"
)

// A lane that stands still is not a source that does not work: Fetch goes on
// without an error, and the fault is told by the lane's name: in the log, to
// Observe, as a LaneFault, and as what is left where a run ends idle.

// standsEvery is how often the log has a lane that stands still.
const standsEvery = time.Minute

// stay is why a lane cannot go on, and when that was logged last.
type stay struct {
	why    error
	logged time.Time
}

func (f *faultList) stay(p place, why error) {
	if known := f.stays[p]; known != nil {
		known.why = why
		return
	}
	if f.stays == nil {
		f.stays = map[place]*stay{}
	}
	f.stays[p] = &stay{why: why}
}

// faultOf is why a lane stands still; nil where it does not. Called with
// Source.mu held.
func (s *Source) faultOf(l *lane) error {
	if known := s.faults.stays[l.place]; known != nil {
		return known.why
	}
	return nil
}

// tellStays logs lanes that stand still, each at once and then seldom.
func (s *Source) tellStays(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.order {
		known := s.faults.stays[l.place]
		if known == nil || l.gone || !known.logged.IsZero() && now.Sub(known.logged) < standsEvery {
			continue
		}
		known.logged = now
		s.config.Logger.Warn("a partition stands still; the others go on",
			"group", s.config.Group, "lane", l.id.ID, "unread", l.unread(), "error", known.why)
	}
}

// LaneFaults implements contract.LaneFaulting.
func (s *Source) LaneFaults() []semel.Left {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []semel.Left
	for _, l := range s.order {
		if why := s.faultOf(l); why != nil && !l.gone {
			all = append(all, l.fault(why))
		}
	}
	return all
}

func (l *lane) fault(why error) semel.Left {
	return semel.Left{Lane: l.id.ID, Messages: l.unread(), Reason: why.Error(), Fault: true}
}
