package kafka

import "time"

// A commit that is not answered in time is sent again on another connection.
// The first one may still be carried out, behind later ones: the group's offset
// goes back, and nobody hears of it. No client can prevent that, and the markers
// absorb what it brings again. So that it does not stay so on a partition where
// nothing more happens, lanes are committed again for a while.

const (
	// lateness is how long an unanswered commit is expected to be carried out.
	lateness = 2 * time.Minute
	// againEvery is how often lanes are committed again until then.
	againEvery = 5 * time.Second
)

// uncertain reports whether a lane is to be committed again although the group
// has heard how far it is done.
func (l *lane) uncertain(now time.Time) bool {
	return !l.gone && l.done.offset >= 0 && l.done.offset == l.committed.offset && now.Sub(l.committedAt) >= againEvery
}
