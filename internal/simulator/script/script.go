// Package script draws the messages of a simulated run: their copies, other contents and versions, the behaviour of
// their handlers, and their positions in the lanes.
package script

import (
	"slices"
	"strconv"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/simulator/chance"
	"github.com/semel-go/semel/internal/simulator/model"
	"github.com/semel-go/semel/internal/simulator/plan"
	"github.com/semel-go/semel/internal/simulator/trace"
)

// Script has the messages of a run, and the source with the positions of the messages in the lanes.
type Script struct {
	Plan     plan.Plan
	Messages []*model.Message
	Source   *model.Source
	Random   *chance.Choices
	Counts   trace.Coverage
}

// DrawMessages draws the messages and publishes them.
func (s *Script) DrawMessages() {
	c, p := s.Random, &s.Plan
	for i := range p.Messages {
		m := s.drawMessage(i)
		s.publish(m)
		for copies := 0; p.Has[plan.TroubleCopies] && copies < 3 && c.Chance(3); copies++ {
			s.publish(m)
		}
		if p.Has[plan.TroubleCopies] && c.Chance(60) {
			for range c.Between(8, 40) {
				s.publish(m)
			}
		}
		if p.Has[plan.TroubleContent] && m.Refused == "" && c.Chance(6) {
			s.publish(s.otherContent(m))
		}
		s.drawTwins(m)
	}
	s.drawVersions()
	s.shuffleLanes()
	s.drawAges()
}

func (s *Script) drawMessage(i int) *model.Message {
	c, p := s.Random, &s.Plan
	m := &model.Message{Number: len(s.Messages), Route: uint64(c.Below(64)), Size: c.Between(1, 400)}
	// The sources "s" and "t" use the same ids for different messages.
	m.Source, m.Identity = []string{"s", "t"}[i%2], "id"+strconv.Itoa(i/2)
	if p.Prints {
		m.Print = semel.Fingerprint{Version: 1, Sum: [16]byte{byte(m.Number), byte(m.Number >> 8), 1}}
	}
	if p.Has[plan.TroubleHandler] && c.Chance(3) {
		m.Conduct = model.Conduct(c.Below(len(model.ConductNames)))
		m.Times = m.Conduct.DrawTimes(c)
	}
	if m.Times == model.Always && m.LooksInnocent() && p.Config.OneAttempt && !p.Queue {
		m.Times = c.Between(1, 8) // attempts of this message are not counted, so it must succeed some time
	}
	if !p.Has[plan.TroubleStuck] && m.Conduct == model.Sticks {
		m.Conduct = model.FailsRetryable
	}
	if p.Calls {
		m.CallsOut()
	}
	switch {
	case c.Chance(25):
		m.Refused, m.Source, m.Identity = "malformed", "surrogate", strconv.Itoa(i)
	case p.Shared && c.Chance(5):
		s.makeForeign(m, i)
	}
	m.ID = m.Source + "/" + m.Identity
	s.drawFormer(m, i)
	s.drawStep(m)
	m.Harmless = m.Conduct == model.Succeeds || m.Conduct == model.MeetsContention || m.Conduct == model.MeetsDown
	s.Messages = append(s.Messages, m)
	return m
}

// drawStep draws the step at which a message begins to misbehave.
func (s *Script) drawStep(m *model.Message) {
	if s.Plan.Steps > 0 && m.Conduct != model.Succeeds {
		m.From = s.Random.Below(s.Plan.Steps - 1)
	}
}

// drawFormer gives a message a previous identity. Up to three messages get the same previous identity, as if the
// previous rule for identities had distinguished fewer messages.
func (s *Script) drawFormer(m *model.Message, i int) {
	if s.Plan.Formers && m.Refused == "" && s.Random.Often(4) {
		m.Former = "former/" + strconv.Itoa(i/3)
	}
}

// makeForeign turns a message into a message for another consumer. If messages for other consumers are skipped, the
// message may have the identity of a message for the simulated consumer.
func (s *Script) makeForeign(m *model.Message, i int) {
	m.Refused, m.Foreign, m.Conduct, m.Times, m.Print = "foreign", true, model.Succeeds, 0, semel.Fingerprint{}
	switch {
	case s.Plan.Config.OnFiltered != machine.EndSkip:
		m.Source, m.Identity = "surrogate", strconv.Itoa(i)
	case len(s.Messages) > 0 && s.Random.Flip():
		other := s.Messages[s.Random.Below(len(s.Messages))]
		m.Source, m.Identity = other.Source, other.Identity
	}
}

// otherContent returns a message with the same identity and other content.
func (s *Script) otherContent(m *model.Message) *model.Message {
	o := *m
	o.Number = len(s.Messages)
	if o.Print.Version != 0 {
		o.Print.Sum[2] = byte(2 + s.Random.Below(2))
	}
	// The previous identity may differ, too, except with Block: there the first message of an identity could be a
	// conflict, and the next message would be applied in its place.
	if o.Former != "" && !s.Plan.Config.Block && s.Random.Flip() {
		o.Former = "former/" + strconv.Itoa(s.Random.Below(1+len(s.Messages)/3))
	}
	s.Messages = append(s.Messages, &o)
	return &o
}

// drawTwins publishes other contents for the identity of a message. The first content often fails and is
// parked.
func (s *Script) drawTwins(m *model.Message) {
	c := s.Random
	if !s.Plan.Twins || m.Refused != "" || !c.Chance(3) {
		return
	}
	if m.Conduct == model.Succeeds && !s.Plan.Calls && c.Often(3) {
		if s.Plan.Steps > 0 {
			m.From = c.Below(s.Plan.Steps - 1)
		}
		m.Conduct, m.Times, m.Harmless = []model.Conduct{model.AsksPark, model.FailsForGood, model.AsksDiscard, model.FailsRetryable}[c.Below(4)], model.Always, false
	}
	for range c.Between(1, 3) {
		o := s.otherContent(m)
		if s.publish(o); c.Flip() {
			s.publish(o)
		}
	}
}

// publish appends a message to the log of a lane.
func (s *Script) publish(m *model.Message) {
	l := s.Source.Lanes[s.Random.Below(len(s.Source.Lanes))]
	l.Log = append(l.Log, &model.Delivery{Message: m, Lane: l})
}

// DrawKeys gives several messages the same key, so that several rows of one key are parked.
func (s *Script) DrawKeys() {
	for _, m := range s.Messages {
		if s.Plan.Operators > 0 {
			m.Route %= 4
		}
	}
}

// HasOtherContent reports whether another message has the same identity, or the same previous identity, and
// other content.
func (s *Script) HasOtherContent(m *model.Message) bool {
	for _, o := range s.Messages {
		if (o.ID == m.ID || m.Former != "" && o.Former == m.Former) && !o.Foreign && o.Print != m.Print {
			return true
		}
	}
	return false
}

// SaidDuplicate reports whether the handler of a message with the given identity reports a duplicate.
func (s *Script) SaidDuplicate(id string) bool {
	return slices.ContainsFunc(s.Messages, func(m *model.Message) bool { return m.ID == id && m.Conduct == model.SaysDuplicate })
}

// Named reports whether a message for the simulated consumer has the identity.
func (s *Script) Named(id string) bool {
	for _, m := range s.Messages {
		if m.ID == id && !m.Foreign {
			return true
		}
	}
	return false
}

// TwoFormers reports whether another content of the same identity has another previous identity. For the previous
// release, two contents with different previous identities are two messages, each of which may take effect.
func (s *Script) TwoFormers(m *model.Message) bool {
	return slices.ContainsFunc(s.Messages, func(o *model.Message) bool { return o.ID == m.ID && o.Former != m.Former })
}
