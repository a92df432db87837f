package kafka

import (
	"context"
)

// Close leaves the group, unless the member is static: what was not settled
// comes again, from this group's next member. It commits what is settled
// before, within ctx; an error says that the group may not know of it, so that
// it comes again. A group that could not be left waits for this member until
// its session ends; that is logged and is no error.
func (s *Source) Close(ctx context.Context) error {
	if !s.member.close() {
		return nil
	}
	joined := s.brokers.shut()
	s.shut()
	s.gate.rouse()
	var err error
	if joined {
		err = s.group.leave(ctx)
	}
	s.end()
	s.background.Wait()
	s.deadLetters.close()
	s.brokers.close()
	return err
}
