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

// Facts are what one consumer's part of a store knows of an identity.
type Facts struct {
	Store string
	// Key has the name under which the consumer's records stand, with its generation.
	Key semel.Key
	// Now is by the store's clock.
	Now time.Time
	// Markers are those of the identity, the newest derivation last.
	Markers []sqlstore.Known
	// Row is the one of the content that came first; nil if there is none. Conflicts are
	// rows of other contents under the identity.
	Row       *store.StoredRow
	Conflicts []store.StoredRow
	// Leased is the leased key of the identity; nil if there is none.
	Leased *sqlstore.KnownKey
	// Details show the rows, by number.
	Details []operate.Detail
	// Ahead is the row that this one waits for in its line, if it waits for one.
	Ahead *store.StoredRow
	// Stream is where the message has its version; nil if it has none. Missing are versions
	// before the first that waits of which there is no row.
	Stream  *admin.StoredStream
	Missing []operate.Span
	// Control is what operators want of the consumer.
	Control admin.Control
	// Progress is when the consumer told last that it works; zero if it never did, and where
	// it keeps its markers for ever, since then it does not.
	Progress time.Time
	// Generation is the consumer's, where it works in generations.
	Generation *admin.StoredGeneration
	// Caused are rows of what the message caused; MoreCaused says that there are more, and
	// UnknownCaused why they are not known.
	Caused        []store.StoredRow
	MoreCaused    bool
	UnknownCaused string
	// Replays have, or had, the place of a row in their range.
	Replays []admin.Replay
	// Sends says that the consumer carries out intents; its rows are those of semel intents.
	Sends bool
	// Erasures are acts that erased the identity where it has no row.
	Erasures []store.Act
	// NoMarkers and NoRows say that the role may read no markers, or no rows; Unread is all
	// that it may not read, each with the right that is missing.
	NoMarkers, NoRows bool
	Unread            []string
	// Where are the flags that have a command meet the same store.
	Where []string
}

// marker is the one that counts; nil if there is none.
func (f *Facts) marker() *sqlstore.Known {
	if len(f.Markers) == 0 {
		return nil
	}
	return &f.Markers[len(f.Markers)-1]
}

// Applied says whether the effect of a message is there.
type Applied string

// The answers.
const (
	Yes     Applied = "yes"
	No      Applied = "no"
	Unknown Applied = "unknown"
)

// Stage is what became of a message, in one word.
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

// Answer is what is said of a message first.
type Answer struct {
	Stage   Stage
	Applied Applied
	// Says is a sentence or two; Do are commands that change it, or tell more.
	Says string
	Do   []Command
}

func moment(t time.Time) string { return t.UTC().Format(time.DateTime + "Z") }

// Writer is the consumer that wrote an intent down; empty for what is none. The source of an
// intent is the escaped name of who wrote it.
func (f *Facts) Writer() string {
	if !f.Sends {
		return ""
	}
	if name, err := url.PathUnescape(f.Key.Source); err == nil {
		return name
	}
	return ""
}
