package why

import (
	"net/url"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/operate"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

// Facts are the records of one consumer about an identity.
type Facts struct {
	Store string
	// Key has the stored name of the consumer, with its generation.
	Key semel.Key
	// Now is the time of the store's clock.
	Now time.Time
	// Markers are the markers of the identity, the newest derivation last.
	Markers []sqlstore.Known
	// Row is the row of the first content; nil if there is none. Conflicts are the rows of other
	// contents of the identity.
	Row       *store.StoredRow
	Conflicts []store.StoredRow
	// Leased is the leased key of the identity; nil if there is none.
	Leased *sqlstore.KnownKey
	// Details show the rows, by number.
	Details []operate.Detail
	// Ahead is the earlier row that blocks this one; nil if there is none.
	Ahead *store.StoredRow
	// Stream is the stream of the message; nil without a version. Missing are the versions before the
	// first waiting one that have no row.
	Stream  *admin.StoredStream
	Missing []operate.Span
	// Control is the pause and limit of the consumer.
	Control admin.Control
	// Progress is the last time at which the consumer reported progress; zero if it never did. Consumers
	// that keep markers forever do not report progress.
	Progress time.Time
	// Generation is the generation of the consumer; nil if it has none.
	Generation *admin.StoredGeneration
	// Caused are the rows of intents that the message caused. MoreCaused reports that there are more, and
	// UnknownCaused why they could not be read.
	Caused        []store.StoredRow
	MoreCaused    bool
	UnknownCaused string
	// Replays are the replays whose range includes a row of the message.
	Replays []admin.Replay
	// Sends reports that the consumer sends intents; the commands for its rows are semel intents.
	Sends bool
	// Erasures are the erasures of an identity without a row.
	Erasures []store.Act
	// NoMarkers and NoRows report that the role cannot read markers, or rows. Unread lists everything
	// that it cannot read, with the missing privileges.
	NoMarkers, NoRows bool
	Unread            []string
	// Bare: no policy is known, so no command can run the consumer.
	Bare bool
}

// marker returns the marker of the newest derivation; nil if there is none.
func (f *Facts) marker() *sqlstore.Known {
	if len(f.Markers) == 0 {
		return nil
	}
	return &f.Markers[len(f.Markers)-1]
}

// Applied reports whether a message was applied.
type Applied string

// The answers.
const (
	Yes     Applied = "yes"
	No      Applied = "no"
	Unknown Applied = "unknown"
)

// Stage is the state of a message in one word.
type Stage string

// The stages.
const (
	StageApplied      Stage = "applied"
	StageDue          Stage = "due"
	StageLater        Stage = "due_later"
	StageRetry        Stage = "retry"
	StageClaimed      Stage = "claimed"
	StageStale        Stage = "claim_stale"
	StageGap          Stage = "gap"
	StageBehind       Stage = "behind_another"
	StageParked       Stage = "parked"
	StageSuppressed   Stage = "suppressed"
	StageUnknown      Stage = "outcome_unknown"
	StageConflict     Stage = "conflict"
	StageDeadLettered Stage = "dead_lettered"
	StageDiscarded    Stage = "discarded"
	StageStaleVersion Stage = "stale_version"
	StageMarked       Stage = "marked"
	StageBroken       Stage = "broken"
	StageNewer        Stage = "newer_release"
)

// Answer explains a message.
type Answer struct {
	Stage   Stage
	Applied Applied
	// Says is a sentence or two. Do are the next commands.
	Says string
	Do   []Command
}

func moment(t time.Time) string { return t.UTC().Format(time.DateTime + "Z") }

// Writer returns the consumer that wrote an intent; "" if the message is not an intent. The source of an
// intent is the escaped name of that consumer.
func (f *Facts) Writer() string {
	if !f.Sends {
		return ""
	}
	if name, err := url.PathUnescape(f.Key.Source); err == nil {
		return name
	}
	return ""
}
