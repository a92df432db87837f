package sourcetest

import (
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/source"
)

func ageCases() []Case {
	return []Case{
		{"ages_are_of_what_is_not_settled", "If a source implements Ages, a lane has the broker's time of its oldest unsettled or undelivered message, and counts as settled exactly when all its messages are settled.", testAgesOfUnsettled},
	}
}

// lanesAges is the type of source.Info.Ages.
type lanesAges func() (lanes []source.LaneAge, all bool)

func testAgesOfUnsettled(s *session) error {
	began := time.Now().Truncate(time.Millisecond) // rounded, because brokers store times in milliseconds
	n := 3 * s.Can.Lanes
	s.publish(n)
	s.openSource()
	dated := s.source.Info().Ages
	switch {
	case (dated != nil) != s.Can.Dated:
		return fmt.Errorf("source.Info has Ages: %t, but Can.Dated of the harness says otherwise", dated != nil)
	case dated == nil:
		return s.collect(n)
	}
	if lanes, _ := dated(); settledOf(lanes) > 0 {
		return fmt.Errorf("before the first delivery Ages returned %v", lanes)
	}
	if err := s.collect(n); err != nil {
		return err
	}
	ended := time.Now()
	lanes, err := s.settledLanes(dated, func(int) bool { return true })
	if err != nil {
		return err
	}
	behind := 0
	for _, l := range lanes {
		if !l.Oldest.IsZero() && (l.Oldest.Before(began) || l.Oldest.After(ended)) {
			return fmt.Errorf("lane %q has the time %v; its messages were published from %v to %v", l.Lane, l.Oldest, began, ended)
		}
		if !l.Oldest.IsZero() {
			behind++
		}
	}
	if behind != s.Can.Lanes {
		return fmt.Errorf("with unsettled messages in %d lanes Ages returned %v", s.Can.Lanes, lanes)
	}
	return s.agesOfSettled(dated, len(lanes))
}

// agesOfSettled acks all messages except one, and then the last message, and checks Ages after each step.
func (s *session) agesOfSettled(dated lanesAges, lanes int) error {
	last := s.firstDelivery(0)
	if err := s.settle(semel.Ack, 0, s.deliveriesExcept(0)...); err != nil {
		return err
	}
	told, err := s.settledLanes(dated, func(settled int) bool { return settled == lanes-1 })
	if err != nil {
		return fmt.Errorf("with one unsettled message: %w", err)
	}
	for _, l := range told {
		if (l.Lane == last.Lane.ID) != !l.Oldest.IsZero() {
			return fmt.Errorf("with one unsettled message, in lane %q, Ages returned %v", last.Lane.ID, told)
		}
	}
	if err := s.settle(semel.Ack, 0, last); err != nil {
		return err
	}
	if _, err := s.settledLanes(dated, func(settled int) bool { return settled == lanes }); err != nil {
		return fmt.Errorf("with everything settled: %w", err)
	}
	return nil
}

// settledLanes calls Ages until the list of lanes is complete and the function enough returns true. The function enough
// gets the number of lanes in which all messages are acked.
func (s *session) settledLanes(dated lanesAges, enough func(settled int) bool) ([]source.LaneAge, error) {
	for deadline := time.Now().Add(s.Patience); ; {
		lanes, all := dated()
		switch {
		case all && len(lanes) == 0:
			return nil, errors.New("the result of Ages has no lane")
		case all && enough(settledOf(lanes)):
			return lanes, nil
		case time.Now().After(deadline):
			return nil, fmt.Errorf("the result of Ages is %v, all %t", lanes, all)
		}
		if _, err := s.fetch(s.Quiet/10, largeBound); err != nil {
			return nil, err
		}
	}
}

// settledOf returns the number of lanes in which all messages are acked.
func settledOf(lanes []source.LaneAge) (n int) {
	for _, l := range lanes {
		if l.Oldest.IsZero() {
			n++
		}
	}
	return n
}
