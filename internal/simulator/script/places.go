package script

import (
	"time"

	"github.com/semel-go/semel/internal/simulator/model"
)

// shuffleLanes moves copies away from the first delivery of their message, and sets the position and time of
// each delivery.
func (s *Script) shuffleLanes() {
	c, p := s.Random, &s.Plan
	for _, l := range s.Source.Lanes {
		for i := range l.Log {
			if j := i - c.Below(8); j >= 0 && c.Chance(3) {
				l.Log[i], l.Log[j] = l.Log[j], l.Log[i]
			}
		}
		l.Log = lastOfAll(l.Log)
		at := time.Duration(0)
		for i, d := range l.Log {
			if d.Message.Late {
				at += c.Wait(p.Config.Gap)
			}
			d.Position, d.Produced = i, at
			at += p.Span / time.Duration(1+len(l.Log)) * time.Duration(c.Below(5)) / 2
		}
	}
}

// drawVersions draws the versions of messages in streams. Some versions are missing, some are late, and some
// belong to two messages.
func (s *Script) drawVersions() {
	c, p := s.Random, &s.Plan
	if p.Streams == 0 {
		return
	}
	last, first, routes := map[string]int64{}, map[string]*model.Message{}, map[string]uint64{}
	for _, m := range s.Messages[:len(s.Messages):len(s.Messages)] {
		if m.Refused != "" {
			continue
		}
		if same := first[m.ID]; same != nil { // another content of the same identity
			m.Stream, m.Version, m.Route, m.Late = same.Stream, same.Version, same.Route, same.Late
			continue
		}
		first[m.ID] = m
		m.Stream = m.Source + "/" + string(rune('a'+c.Below(p.Streams)))
		if _, known := routes[m.Stream]; !known {
			routes[m.Stream] = m.Route
		}
		last[m.Stream]++
		if c.Chance(30) {
			s.Counts.Add("fault", "version missing for ever")
			last[m.Stream]++
		}
		m.Version, m.Route, m.Late = last[m.Stream], routes[m.Stream], c.Chance(15)
		if c.Chance(15) {
			s.publish(s.twin(m))
		}
	}
}

// twin returns another message with the same version, and with the same or another content.
func (s *Script) twin(m *model.Message) *model.Message {
	t := *m
	t.Number = len(s.Messages)
	t.Identity += "twin"
	t.ID, t.Late = t.Source+"/"+t.Identity, s.Random.Flip()
	if t.Print.Version != 0 && s.Random.Flip() {
		t.Print.Sum[2] = 9
	}
	s.Messages = append(s.Messages, &t)
	return &t
}

// lastOfAll moves late messages to the end of a lane.
func lastOfAll(log []*model.Delivery) []*model.Delivery {
	var early, late []*model.Delivery
	for _, d := range log {
		if d.Message.Late {
			late = append(late, d)
		} else {
			early = append(early, d)
		}
	}
	return append(early, late...)
}

// drawAges sets the age of messages: the time when their identity was first published. Copies and other contents have
// the same age. Finally, drawAges publishes some messages again, a long time later, together with new messages.
func (s *Script) drawAges() {
	if s.Plan.Keep == 0 {
		return
	}
	first := map[string]time.Duration{}
	for _, l := range s.Source.Lanes {
		for _, d := range l.Log {
			if at, known := first[d.Message.ID]; !d.Message.Foreign && (!known || d.Produced < at) {
				first[d.Message.ID] = d.Produced
			}
		}
	}
	for _, m := range s.Messages {
		m.Age = first[m.ID]
	}
	for _, l := range s.Source.Lanes {
		at := time.Duration(0)
		if n := len(l.Log); n > 0 {
			at = l.Log[n-1].Produced
		}
		for range s.Random.Below(8) {
			at += s.Random.Wait(s.Plan.Span / 2)
			at = s.publishLate(l, at)
		}
	}
}

// publishLate publishes an earlier message again, and new messages directly after it. The result is the time of the
// last message that publishLate has published.
func (s *Script) publishLate(l *model.Lane, at time.Duration) time.Duration {
	m := s.Messages[s.Random.Below(len(s.Messages))]
	at = max(at, m.Age)
	l.Log = append(l.Log, &model.Delivery{Message: m, Lane: l, Position: len(l.Log), Produced: at})
	for range s.Random.Below(3) {
		next := s.drawMessage(len(s.Messages))
		next.Age = at
		l.Log = append(l.Log, &model.Delivery{Message: next, Lane: l, Position: len(l.Log), Produced: at})
	}
	return at
}
