package consumer

import (
	"time"

	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/enum"
)

// VersionPolicy lets versions of one stream take effect in their order, whatever order
// they come in: the next is applied, one that was passed is discarded
// (reason "stale version"), and one whose predecessor is missing waits in the store's inbox
// until the commit that brings it. The stream's last version commits with the effect.
// Two messages that share a version are told apart by their content: the second is
// discarded, or is a conflict if it differs, which ends as Config.OnConflict says.
type VersionPolicy struct {
	// By finds a message's stream and version: identity.Stream("body:/order").At("body:/version").
	// Required.
	By identity.Versioner
	// Start is the version that a stream begins with, at least 1; default 1.
	Start int64
	// FirstSeen begins a stream with the first version that is met of it, in place of
	// Start. A smaller one that comes later is discarded.
	FirstSeen bool
	// Gap is how long a version waits for the one before it, 1 s to 365 days; default 10
	// minutes. Then it is parked (semel.ReasonGap), and still freed when that comes.
	Gap time.Duration
	// GapCap is how many versions ahead of its stream's next one may wait; 0: any. A
	// version further ahead of its stream is parked (semel.ReasonGap) without a wait, and
	// still freed when its turn comes.
	GapCap int64
	// Missing ends a message without a version, or with one that is no whole number
	// from 1: ActionPark, ActionDeadLetter or ActionHalt.
	Missing Action
}

// OnParked says what becomes of the messages behind one that waits in the inbox, for a
// retry or for a person.
type OnParked uint8

const (
	// onParkedDefault is OnParkedBlock with LanesKey where the store can
	// (admin.Lines), a marker is written and no Version is set, and OnParkedSkip
	// otherwise.
	onParkedDefault OnParked = iota
	// OnParkedSkip: they go on, and a later retry is out of order.
	OnParkedSkip
	// OnParkedBlock: they wait behind it in the inbox, and their source is settled. The
	// commit that ends it frees the next one, and so on; a person lets them pass
	// (semel messages skip). With LanesKey these are the messages of its key, with
	// LanesPartition those of its partition. The consumer's processes need the store's
	// inbox for it (admin.Lines), and Process keeps no such order.
	OnParkedBlock
)

// String is the word in a policy file.
func (o OnParked) String() string {
	return enum.Name([]string{onParkedDefault: "default", OnParkedSkip: "skip", OnParkedBlock: "block"}, o, "OnParked")
}
