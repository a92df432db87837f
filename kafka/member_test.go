package kafka

import (
	"errors"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Who closes the source and who replaces its member may do so at once, and the
// client may be closed by one of them only.
func TestAMemberIsLetGoByOneAlone(t *testing.T) {
	m := &member{replacementDemanded: func() {}, client: new(kgo.Client)}
	if m.retire() == nil {
		t.Error("nobody lets it go")
	}
	if m.retire() != nil {
		t.Error("two let it go")
	}
}

func TestASourceThatIsClosedWhileItJoinsAsksNobody(t *testing.T) {
	s := unjoined(t, nil)
	s.brokers.shut() // as Close does first, while join has not asked yet
	if err := s.join(t.Context()); err != nil || s.brokers.client() != nil {
		t.Errorf("it asks: %v", err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := s.Fetch(t.Context(), wide); !errors.Is(err, semel.ErrClosed) {
		t.Errorf("Fetch says: %v", err)
	}
}

func TestTheLaterMembersThatOneReasonReplaces(t *testing.T) {
	hangs, other := []reason{{"deleted", allOf("hangs")}}, []reason{{"lost", topicPartition{"orders", 1}}}
	over := func(b backoff, now time.Time, reasons []reason) bool {
		_, found := b.over(now, reasons)
		return found
	}
	t.Run("I6_are_replaced_after_pauses_that_double", func(t *testing.T) {
		b, now := backoff{}, time.Now()
		if !over(b, now, hangs) || over(b, now.Add(shortestPause/2), hangs) {
			t.Error("the first member is not replaced at once, or the second one is")
		}
		for pause := shortestPause; pause < longestPause; pause *= 2 {
			if now = now.Add(pause); !over(b, now, hangs) {
				t.Fatalf("after %v it is not replaced", pause)
			}
			if 2*pause < longestPause && over(b, now.Add(2*pause-1), hangs) {
				t.Fatalf("before %v it is replaced", 2*pause)
			}
		}
		now = now.Add(longestPause + lasting + 1)
		if !over(b, now, hangs) || !over(b, now.Add(shortestPause), hangs) {
			t.Error("after a member that has lasted the pauses do not begin anew")
		}
	})
	t.Run("I6_are_replaced_at_once_for_another_reason", func(t *testing.T) {
		b, now := backoff{}, time.Now()
		over(b, now, hangs)
		if first, found := b.over(now, append(hangs, other...)); !found || first != other[0] {
			t.Errorf("%t, for %v", found, first)
		}
		if over(b, now.Add(shortestPause-1), append(hangs, other...)) {
			t.Error("neither reason waits")
		}
	})
	t.Run("I6_are_replaced_for_all_reasons_at_once", func(t *testing.T) {
		b, now := backoff{}, time.Now()
		over(b, now, hangs)
		now = now.Add(shortestPause / 2)
		over(b, now, append(hangs, other...))
		if over(b, now.Add(shortestPause-1), hangs) {
			t.Error("the reason that waited did not have a try with the other one")
		}
	})
}

func TestLanesOfAGenerationThatIsOverAreReadUntilTheMemberIsReplaced(t *testing.T) {
	s := unjoined(t, nil)
	s.member.client = new(kgo.Client)
	now := time.Now()
	l := newLane(topicPartition{theTopic, 0}, 1)
	l.owner, l.refused, l.refusedAt = owner{"m", 1}, owner{"m", 1}, now.Add(-2*rebalanceTimeout)
	s.lanes.byPartition[l.topicPartition], s.lanes.order = l, []*lane{l}
	s.lanes.findOrphans()
	s.group.backoff.over(now, s.member.toReplace()) // as it was for the member before
	s.group.replaceMember(now.Add(shortestPause / 2))
	if l.gone || s.member.current() == nil {
		t.Errorf("the lane is lost: %t, the member: %v", l.gone, s.member.current())
	}
}
