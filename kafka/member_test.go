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

func TestThePauseBetweenMembersDoubles(t *testing.T) {
	var b backoff
	now := time.Now()
	if !b.over(now) || b.over(now.Add(shortestPause/2)) {
		t.Error("the first member is not replaced at once, or the second one is")
	}
	for pause := shortestPause; pause < longestPause; pause *= 2 {
		if now = now.Add(pause); !b.over(now) {
			t.Fatalf("after %v it is not replaced", pause)
		}
		if 2*pause < longestPause && b.over(now.Add(2*pause-1)) {
			t.Fatalf("before %v it is replaced", 2*pause)
		}
	}
	now = now.Add(longestPause + lasting + 1)
	if !b.over(now) || !b.over(now.Add(shortestPause)) {
		t.Error("after a member that has lasted the pauses do not begin anew")
	}
}
