package kafka

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Close leaves the group, unless the member is static: what was not settled
// comes again, from this group's next member. It commits what is settled
// before, within ctx; an error says that the group may not know of it, so that
// it comes again. A group that could not be left waits for this member until
// its session ends; that is logged and is no error.
func (s *Source) Close(ctx context.Context) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	side := s.side
	s.mu.Unlock()
	s.shut()
	s.gate.rouse()
	var err error
	if side != nil {
		err = s.leave(ctx)
	}
	s.end()
	s.group.Wait()
	s.closeWriter()
	if side != nil {
		side.Close()
	}
	return err
}

func (s *Source) leave(ctx context.Context) error {
	err := s.lastOffsets(ctx)
	s.mu.Lock()
	lanes, member := slices.Clone(s.order), s.member
	s.mu.Unlock()
	s.lose(lanes, "")
	if member == nil {
		return err
	}
	if left := s.discard(ctx, member); left != nil {
		s.config.Logger.Warn("the group was not left and waits for this member until its session ends", "group", s.config.Group, "error", left)
	}
	return err
}

// againAfter is how soon offsets are tried again that the group refused while it
// is shared out anew.
const againAfter = 50 * time.Millisecond

// lastOffsets commits what is settled. Of a generation that has just ended the
// group takes nothing: the callback of the next one says whose the lanes are,
// and is waited for, but for no longer than a last commit may take.
func (s *Source) lastOffsets(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lastCommit)
	defer cancel()
	for {
		err := s.commits.wait(ctx)
		waits := s.awaitsGeneration()
		if waits == nil {
			return err
		}
		select {
		case <-time.After(againAfter):
		case <-ctx.Done():
			return cmp.Or(err, waits)
		}
	}
}

// awaitsGeneration is an error while the group takes no offsets of a lane,
// because it is shared out anew.
func (s *Source) awaitsGeneration() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.order {
		if !l.gone && l.refused == l.stamp && l.dirty() {
			return fmt.Errorf("kafka: the offset of lane %s is not committed: group %s is shared out anew", l.id.ID, s.config.Group)
		}
	}
	return nil
}

// discard lets a member leave the group, for as long as ctx allows, and ends it.
func (s *Source) discard(ctx context.Context, member *kgo.Client) error {
	err := member.LeaveGroupContext(ctx)
	member.Close()
	return err
}

// replace asks for a new member instead of this one. It is for what should not
// happen: this source and the client disagree on what is owned, or a topic is
// another one. A new member begins at the group's offsets; while there is none,
// the next one does. Called with Source.mu held.
func (s *Source) replace(why string) {
	if s.rejoin == "" && s.member != nil {
		s.rejoin = why
	}
	s.commits.rouse()
}

// orphanAfter is how long the client may think it owns a lane that is lost
// here before the member is replaced: it finds out by itself with a heartbeat.
const orphanAfter = 3 * heartbeat

// findOrphans asks for a new member where lanes are lost here and the client
// goes on reading them, or where a generation has passed a lane by.
func (s *Source) findOrphans() (stale []*lane) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.order {
		switch {
		case l.gone && time.Since(l.goneAt) > orphanAfter:
			s.replace("the client still reads lanes that are lost")
		case !l.gone && l.refused == l.stamp && time.Since(l.refusedAt) > rebalanceTimeout:
			s.replace("the group went on without this member")
			stale = append(stale, l)
		}
	}
	return stale
}

// replaceMember does what replace asked for.
func (s *Source) replaceMember() {
	s.lose(s.findOrphans(), "its generation is over")
	why, member, lanes := s.toReplace()
	if why == "" || member == nil {
		return
	}
	s.config.Logger.Warn("joining the group anew", "group", s.config.Group, "reason", why)
	s.handOver(lanes)
	s.endMember()
	ctx, cancel := context.WithTimeout(s.life, askTimeout)
	defer cancel()
	_ = s.discard(ctx, member) // a member that could not leave is removed when its session ends
	s.mu.Lock()
	s.replacing = false
	s.mu.Unlock()
	s.gate.rouse()
}

func (s *Source) toReplace() (why string, member *kgo.Client, lanes []*lane) {
	s.telling.Lock() // so that the lanes were told of
	defer s.telling.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return "", nil, nil
	}
	return s.rejoin, s.member, slices.Clone(s.order)
}

// endMember ends what a member has, also what it was given while its other
// lanes were handed over. What asked for a new member until now is done with
// it: a reason that stayed would replace the next one, too; and one that went
// before would let the source look idle meanwhile.
func (s *Source) endMember() {
	s.telling.Lock()
	defer s.telling.Unlock()
	s.mu.Lock()
	s.member, s.replacing, s.rejoin = nil, true, "" // its callbacks are ignored from here on
	lanes := slices.Clone(s.order)
	s.mu.Unlock()
	s.lose(lanes, "")
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range lanes {
		s.forget(l.place)
	}
}
