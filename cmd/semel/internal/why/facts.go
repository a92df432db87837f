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

// Facts are the records that one consumer has about an identity.
type Facts struct {
	Store string
	// Key is the identity. The consumer in Key is the stored name, which can contain a generation.
	Key semel.Key
	// Now is the time of the database clock.
	Now time.Time
	// Markers are the markers of the identity. If the selectors for ids have changed, the markers of the
	// newest selectors are last.
	Markers []sqlstore.Known
	// Row is the row with the first content; nil if there is none. Conflicts are the rows with different
	// contents of the identity.
	Row       *store.StoredRow
	Conflicts []store.StoredRow
	// Leased is the leased key of the identity; nil if there is none.
	Leased *sqlstore.KnownKey
	// Details are the details of the rows, ordered by row number.
	Details []operate.Detail
	// Ahead is the earlier row that blocks the message; nil if no row blocks the message.
	Ahead *store.StoredRow
	// Stream is the stream of the message; nil if the message has no version. Missing are the versions
	// without a row that come before the first waiting version.
	Stream  *admin.StoredStream
	Missing []operate.Span
	// Control has the pause and the rate limit of the consumer.
	Control admin.Control
	// Progress is the time at which the consumer last recorded progress; zero if the consumer records none.
	// Consumers that keep markers forever record no progress.
	Progress time.Time
	// Generation is the generation of the consumer; nil if the consumer has no generations.
	Generation *admin.StoredGeneration
	// Caused are the rows of intents that the message caused. MoreCaused means that the message caused more
	// intents than Caused lists. UnknownCaused is why the intents could not be read; empty if they were read.
	Caused        []store.StoredRow
	MoreCaused    bool
	UnknownCaused string
	// Replays are the replays whose range contains a row of the message.
	Replays []admin.Replay
	// Sends means that the consumer sends intents. If Sends is set, commands for the rows start with `semel
	// intents`.
	Sends bool
	// Erasures are the recorded erasures of an identity that has no row.
	Erasures []store.Act
	// NoMarkers and NoRows mean that the database role cannot read markers or rows. Unread lists everything
	// that the role cannot read, and the missing privileges.
	NoMarkers, NoRows bool
	Unread            []string
	// Bare means that no policy is known, so no command can run the consumer.
	Bare bool
}

// marker returns the last marker of the identity, or nil if there is no marker.
func (f *Facts) marker() *sqlstore.Known {
	if len(f.Markers) == 0 {
		return nil
	}
	return &f.Markers[len(f.Markers)-1]
}

// Applied says whether a message was applied.
type Applied string

// The values of Applied.
const (
	Yes     Applied = "yes"
	No      Applied = "no"
	Unknown Applied = "unknown"
)

// Stage is the state of a message as one word.
type Stage string

// The stages of a message.
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

// Answer explains the state of a message.
type Answer struct {
	Stage   Stage
	Applied Applied
	// Says is the explanation in one or two sentences. Do has the commands to run next.
	Says string
	Do   []Command
}

func moment(t time.Time) string { return t.UTC().Format(time.DateTime + "Z") }

// Writer returns the consumer that wrote an intent, or "" if the message is no intent. The source of an
// intent is the escaped name of the consumer that wrote the intent.
func (f *Facts) Writer() string {
	if !f.Sends {
		return ""
	}
	if name, err := url.PathUnescape(f.Key.Source); err == nil {
		return name
	}
	return ""
}
