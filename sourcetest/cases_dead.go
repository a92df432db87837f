package sourcetest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/semel-go/semel"
)

func testDeadLetter(s *session) error {
	s.publish(5)
	s.openSource()
	if err := s.collect(5); err != nil {
		return err
	}
	prepare := s.source.Info().DeadLetters
	keeps := prepare != nil && prepare("consumer") == nil
	switch {
	case s.Can.DeadLetters && !keeps:
		return errors.New("the harness declares Can.DeadLetters, but source.Info.DeadLetters is nil or returns an error")
	case keeps && !s.Can.DeadLetters:
		return nil // the source has dead letters, but the harness cannot read them
	}
	left, err := s.trySettle(semel.DeadLetter, 0, s.firstDelivery(2))
	switch {
	case keeps && (err != nil || len(left) > 0):
		return fmt.Errorf("Settle kept no dead letter: left %v, %v", left, err)
	case !keeps && (len(left) != 1 || !errors.Is(err, semel.ErrUnsupported)):
		return fmt.Errorf("the source keeps no dead letters, but Settle left %v, %v; want the message left, and semel.ErrUnsupported", left, err)
	}
	if keeps {
		if err := s.hasDeadLetter(s.firstDelivery(2).Message); err != nil {
			return err
		}
	}
	if !s.Can.Reopens {
		return nil
	}
	if err := s.reopen(); err != nil {
		return err
	}
	return s.collect(5)
}

// hasDeadLetter checks that the dead letters contain a copy of m.
func (s *session) hasDeadLetter(m *semel.Message) error {
	all, err := s.broker.(DeadLetterBroker).Dead()
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(c *semel.Message) bool { return bytes.Equal(c.Body, m.Body) })
	if i < 0 {
		return fmt.Errorf("message %d is not among the %d dead letters", number(m), len(all))
	}
	if !bytes.Equal(all[i].Key, m.Key) {
		return fmt.Errorf("the dead letter of message %d has the key %q instead of %q", number(m), all[i].Key, m.Key)
	}
	for _, h := range m.Headers {
		if v, _ := all[i].Headers.Get(h.Name); !bytes.Equal(v, h.Value) {
			return fmt.Errorf("the dead letter of message %d has the header %s as %q instead of %q", number(m), h.Name, v, h.Value)
		}
	}
	return nil
}
