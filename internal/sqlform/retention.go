package sqlform

import (
	"fmt"
	"slices"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// Ended reports whether a marker says that its message has ended, and not only stands
// aside.
func Ended(o store.Outcome) bool {
	return o == store.Applied || o == store.Discarded || o == store.DeadLettered
}

// NothingKept is the error of a consumer of which the store knows no retention.
func NothingKept(consumer string) error {
	return fmt.Errorf("consumer %q has recorded no retention, so that everything is kept; set one in its policy and start it once: %w", consumer, semel.ErrState)
}

// NoLane is the error of a lane of which nothing is recorded.
func NoLane(consumer, lane string) error {
	return fmt.Errorf("nothing is recorded of lane %q of consumer %q: %w", lane, consumer, semel.ErrState)
}

// MayReap says why nothing of a consumer may be removed; nil if it may. bodies counts it
// as something, if only bodies may.
func MayReap(r store.Retention, bodies bool) error {
	switch {
	case r.Off:
		return fmt.Errorf("the reaper is switched off by the policy of consumer %q: %w", r.Consumer, semel.ErrState)
	case r.Keep == 0 && bodies && r.Bodies > 0:
		return nil
	case r.Keep == 0:
		return fmt.Errorf("consumer %q keeps its markers for ever: %w", r.Consumer, semel.ErrState)
	case r.Horizon > r.Keep:
		return fmt.Errorf("a copy can come %v late (%s), and consumer %q keeps markers for %v only; nothing is removed until its retention is longer: %w",
			r.Horizon.Round(time.Second), r.Why, r.Consumer, r.Keep, semel.ErrState)
	}
	return nil
}

// Aged are the scopes of those marks that ask whether what is kept goes back as far as
// their messages, each once.
func Aged(marks []store.Mark) (scopes []int64) {
	for i := range marks {
		if n := marks[i].Scope; asksAge(&marks[i]) && !slices.Contains(scopes, n) {
			scopes = append(scopes, n)
		}
	}
	return scopes
}

func asksAge(m *store.Mark) bool { return !m.Age.IsZero() && m.Claim.Token == 0 }

// Low is the low-water mark of a scope, and the store's time.
type Low struct{ Before, Now time.Time }

// JudgeAges turns the verdicts of fresh marks into Old whose messages are older than the
// low-water marks of their scopes, or by their own time have not been sent yet: what was
// removed of one that is dated ahead would make its copy fresh for as long.
func JudgeAges(marks []store.Mark, lows map[int64]Low, verdicts []store.Verdict) {
	for i := range marks {
		m := &marks[i]
		low, kept := lows[m.Scope]
		if !kept || verdicts[i].Kind != store.Fresh || !asksAge(m) {
			continue
		}
		switch {
		case m.Age.Before(low.Before):
			verdicts[i].Kind = store.Old
		case m.Age.After(low.Now.Add(store.MaxClockSkew)):
			verdicts[i].Kind, verdicts[i].Ahead = store.Old, true
		}
	}
}
