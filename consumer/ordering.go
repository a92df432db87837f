package consumer

import (
	"time"

	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/enum"
)

// VersionPolicy applies the versions of a stream in order, whatever the order of their arrival:
//   - The next version is applied. The stream's last version is stored in the transaction of the effect.
//   - A version that the stream has passed is discarded with the reason "stale version".
//   - A version with a missing predecessor waits in the store's inbox until the predecessor is applied.
//
// If two messages have the same version, the second is discarded if its content is the same. Otherwise it is a
// conflict and ends as Config.OnConflict says.
type VersionPolicy struct {
	// By finds a message's stream and version: identity.Stream("body:/order").At("body:/version"). Required.
	By identity.Versioner
	// Start is the first version of a stream, at least 1; default 1.
	Start int64
	// FirstSeen begins a stream with the first version that arrives, instead of Start. A smaller version that
	// arrives later is discarded.
	FirstSeen bool
	// Gap is how long a version waits for its predecessor, 1 s to 365 days; default 10 minutes. Then it is parked
	// with semel.ReasonGap. The parked version is still processed when the predecessor is applied later.
	Gap time.Duration
	// GapCap is the maximum distance of a waiting version from the stream's next version; 0 means no limit. A
	// version further ahead is parked at once with semel.ReasonGap. It is still processed when its predecessor is
	// applied later.
	GapCap int64
	// Missing is the action for a message without a version, or with a version that is not a whole number from 1:
	// ActionPark, ActionDeadLetter or ActionHalt.
	Missing Action
}

// OnParked says what happens to the messages behind one that waits in the inbox, for a retry or for a person.
type OnParked uint8

const (
	// onParkedDefault means OnParkedBlock with LanesKey, if the store implements admin.Lines, markers are written
	// and Version is not set. Otherwise it means OnParkedSkip.
	onParkedDefault OnParked = iota
	// OnParkedSkip: later messages are processed, so a retry is out of order.
	OnParkedSkip
	// OnParkedBlock: later messages of the same key (LanesKey) or partition (LanesPartition) wait behind it in the
	// inbox, and their deliveries are acked. The commit that ends a message unblocks the next one. A person can
	// also unblock them (semel messages skip). OnParkedBlock needs a store with admin.Lines. Process does not keep
	// this order.
	OnParkedBlock
)

// String returns the name in a policy file.
func (o OnParked) String() string {
	return enum.Name([]string{onParkedDefault: "default", OnParkedSkip: "skip", OnParkedBlock: "block"}, o, "OnParked")
}
