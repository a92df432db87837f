package sqlform

import (
	"fmt"
	"slices"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// Ended reports whether a marker with the given outcome belongs to a message that has ended.
func Ended(o store.Outcome) bool {
	return o == store.Applied || o == store.Discarded || o == store.DeadLettered
}

// NothingKept returns the error for a consumer without a stored retention.
func NothingKept(consumer string) error {
	return fmt.Errorf("consumer %q has no stored retention, so everything is kept; set a retention in its policy and start it once: %w", consumer, semel.ErrState)
}

// NoLane returns the error for a lane without stored records.
func NoLane(consumer, lane string) error {
	return fmt.Errorf("there are no records of lane %q of consumer %q: %w", lane, consumer, semel.ErrState)
}

// MayReap returns an error if no marker, row or body of a consumer may be removed. If only bodies may be removed,
// MayReap returns an error unless the parameter bodies is set.
func MayReap(r store.Retention, bodies bool) error {
	switch {
	case r.Off:
		return fmt.Errorf("the reaper is switched off by the policy of consumer %q: %w", r.Consumer, semel.ErrState)
	case r.Keep == 0 && bodies && r.Bodies > 0:
		return nil
	case r.Keep == 0:
		return fmt.Errorf("consumer %q keeps its markers forever: %w", r.Consumer, semel.ErrState)
	case r.Horizon > r.Keep:
		return fmt.Errorf("a copy can come %v late (%s), and consumer %q keeps markers for %v only; nothing is removed until its retention is longer: %w",
			r.Horizon.Round(time.Second), r.Why, r.Consumer, r.Keep, semel.ErrState)
	}
	return nil
}

// Aged returns the numbers of those sources whose messages must be compared with the low-water mark (the time before
// which markers may have been removed). Each number occurs once.
func Aged(marks []store.Mark) (scopes []int64) {
	for i := range marks {
		if n := marks[i].Scope; needsAge(&marks[i]) && !slices.Contains(scopes, n) {
			scopes = append(scopes, n)
		}
	}
	return scopes
}

func needsAge(m *store.Mark) bool { return !m.Age.IsZero() && m.Claim.Token == 0 }

// Low contains the low-water mark of a source (markers from before that time may have been removed), and the current
// time by the store's clock.
type Low struct{ Before, Now time.Time }

// JudgeAges changes the store's answer for new messages to Old if they are older than the low-water mark of their
// source (the time before which markers may have been removed), or dated in the future. Messages from the future are
// rejected because their markers would be removed too early.
func JudgeAges(marks []store.Mark, lows map[int64]Low, verdicts []store.Verdict) {
	for i := range marks {
		m := &marks[i]
		low, kept := lows[m.Scope]
		if !kept || verdicts[i].Kind != store.Fresh || !needsAge(m) {
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
