package consumer

import (
	"time"

	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/enum"
)

// VersionPolicy applies the versions of a stream in order, even if the messages arrive in another order:
//   - The next version is applied. The stream's last version is stored in the transaction of the effect.
//   - A version that is not higher than the stream's last version is discarded with the reason "stale version".
//   - A version with a missing predecessor waits in the store's inbox until the predecessor is applied.
//
// If two messages have the same version and the same content, the second message is discarded. If their
// contents differ, the second message is a conflict and ends as Config.OnConflict says.
type VersionPolicy struct {
	// By finds a message's stream and version: identity.Stream("body:/order").At("body:/version"). Required.
	By identity.Versioner
	// Start is the first version of a stream, at least 1; default 1.
	Start int64
	// FirstSeen means that a stream begins with the first version that arrives, and not with Start. A smaller
	// version that arrives later is discarded.
	FirstSeen bool
	// Gap is how long a version waits for its predecessor, 1 s to 365 days; default 10 minutes. After the time Gap, the
	// version is parked with semel.ReasonGap. If the predecessor is applied later, the parked version is processed.
	Gap time.Duration
	// GapCap is the maximum distance of a waiting version from the stream's next version; 0 means no limit. A
	// version beyond GapCap is parked at once with semel.ReasonGap. If its predecessor is applied later, the
	// parked version is processed.
	GapCap int64
	// Missing is the action for a message without a version, and for a message whose version is not a whole
	// number from 1: ActionPark, ActionDeadLetter or ActionHalt.
	Missing Action
}

// OnParked says what happens to later messages while an earlier message waits in the inbox, for a retry or
// for a person.
type OnParked uint8

const (
	// onParkedDefault means OnParkedBlock if Lanes is LanesKey, the store implements admin.Lines, markers are written
	// and Version is not set. In all other cases, onParkedDefault means OnParkedSkip.
	onParkedDefault OnParked = iota
	// OnParkedSkip processes later messages at once, so a message that waits for a retry is processed out of order.
	OnParkedSkip
	// OnParkedBlock stores later messages of the same key (LanesKey) or partition (LanesPartition) in the inbox, where
	// they wait behind the earlier message. The deliveries of waiting messages are acked. The commit that ends a
	// message unblocks the next message. A person can also unblock waiting messages (semel messages skip).
	// OnParkedBlock needs a store with admin.Lines. With Process, messages can still be processed out of order.
	OnParkedBlock
)

// String returns the name in a policy file.
func (o OnParked) String() string {
	return enum.Name([]string{onParkedDefault: "default", OnParkedSkip: "skip", OnParkedBlock: "block"}, o, "OnParked")
}
