package kafka

import (
	"time"

	"github.com/semel-go/semel"
)

// A lane that stands still is not a source that does not work: Fetch goes on
// without an error, and the fault is told by the lane's name: in the log, to
// Observe, as a LaneState, and as what is left where a run ends idle.

// standsEvery is how often the log has a lane that stands still.
const standsEvery = time.Minute

// setFault notes why a lane cannot go on. That is logged at once, unless the lane
// stood still before.
func (l *lane) setFault(why error) {
	if l.fault == nil {
		l.faultLogged = time.Time{}
	}
	l.fault = why
}

// logFaults logs lanes that stand still, each at once and then seldom.
func (p *progress) logFaults(now time.Time) {
	for l := range p.lanes.each {
		if l.fault == nil || l.gone || !l.faultLogged.IsZero() && now.Sub(l.faultLogged) < standsEvery {
			continue
		}
		l.faultLogged = now
		p.config.Logger.Warn("a partition stands still; the others go on",
			"group", p.config.Group, "lane", l.id.ID, "unread", l.unread(), "error", l.fault)
	}
}

// faulty are the lanes that stand still.
func (p *progress) faulty() []semel.Unfinished {
	var all []semel.Unfinished
	for l := range p.lanes.each {
		if l.fault != nil && !l.gone {
			all = append(all, l.left(l.fault))
		}
	}
	return all
}

// left is what stays behind where a lane stands still.
func (l *lane) left(why error) semel.Unfinished {
	return semel.Unfinished{Lane: l.id.ID, Messages: l.unread(), Reason: why.Error(), Fault: true}
}
