package kafka

import "sync"

// progress is where lanes have got to in their logs, which of them do not go on,
// and what is told of that.
type progress struct {
	config *Config
	lanes  *lanes

	mu sync.Mutex // guards the rest; no other lock is taken under it
	// last are the states of lanes that ended since the last report.
	last []LaneState
}

// states are of all lanes, and for the last time of those that ended.
func (p *progress) states() []LaneState {
	var states []LaneState
	p.lanes.with(func(all []*lane) {
		states = p.takeLast()
		for _, l := range all {
			if !l.gone {
				states = append(states, p.state(l))
			}
		}
	})
	return states
}

func (p *progress) takeLast() []LaneState {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := p.last
	p.last = nil
	return last
}

// ended notes how a lane ended. Called with lanes.mu held.
func (p *progress) ended(l *lane) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = append(p.last, p.state(l))
}

// state is called with lanes.mu held.
func (p *progress) state(l *lane) LaneState {
	return LaneState{
		Topic: l.topic, Partition: l.partition, Committed: l.committed.offset, Delivered: l.reached(), End: l.end,
		Unsettled: l.unsettled, Oldest: l.oldest(), Paused: l.paused, HeldUp: l.heldUp(p.config.ReadUncommitted), Fault: l.fault, Lost: l.gone,
	}
}
