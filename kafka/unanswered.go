package kafka

import (
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

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

// unanswered notes when a commit was last given up. It is a hook of the client
// that commits.
type unanswered struct{ lastTime }

// OnBrokerE2E implements kgo.HookBrokerE2E.
func (u *unanswered) OnBrokerE2E(_ kgo.BrokerMetadata, key int16, e kgo.BrokerE2E) {
	if kmsg.Key(key) == kmsg.OffsetCommit && e.Err() != nil {
		u.note()
	}
}

// lately reports whether an unanswered commit may still be carried out.
func (u *unanswered) lately(now time.Time) bool { return u.within(lateness, now) }

// uncertain reports whether a lane is to be committed again although the group
// has heard how far it is done.
func (l *lane) uncertain(now time.Time) bool {
	return !l.gone && l.done.offset >= 0 && l.done.offset == l.committed.offset && now.Sub(l.committedAt) >= againEvery
}
