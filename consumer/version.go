package consumer

import (
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/admin"
)

// VersionPolicy lets versions of one stream take effect in their order, whatever order
// they come in: the next is applied, one that was passed is discarded
// (semel.ReasonStale), and one whose predecessor is missing waits in the store's inbox
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

// DefaultGap is how long a version waits for the one before it.
const DefaultGap = 10 * time.Minute

func (v *VersionPolicy) defaults() *VersionPolicy {
	own := *v
	setDefault(&own.Gap, DefaultGap)
	if !own.FirstSeen {
		setDefault(&own.Start, 1)
	}
	return &own
}

func (c *Config) checkVersion(fault faultFunc) {
	v := c.Version
	if v == nil {
		return
	}
	if v.By == nil {
		fault("Version.By", "is missing; say where stream and version are: identity.Stream(\"body:/order\").At(\"body:/version\")")
	} else if err := v.By.Validate(); err != nil {
		fault("Version.By", "%v", err)
	}
	switch {
	case v.FirstSeen && v.Start != 0:
		fault("Version.Start", "is %d beside FirstSeen, which begins a stream with what comes first; remove one", v.Start)
	case !v.FirstSeen && (v.Start < 1 || v.Start > identity.MaxVersion):
		fault("Version.Start", "is %d; versions are from 1 to %d", v.Start, int64(identity.MaxVersion))
	}
	if v.Gap < time.Second || v.Gap > 365*24*time.Hour {
		fault("Version.Gap", "is %v; it must be 1s to 8760h", v.Gap)
	}
	if v.GapCap < 0 {
		fault("Version.GapCap", "is %d; it must be 1 or more, or 0 for any number", v.GapCap)
	}
	if v.Missing != ActionPark && v.Missing != ActionDeadLetter && v.Missing != ActionHalt {
		fault("Version.Missing", "%v is not an ending that is possible here", v.Missing)
	}
	if !c.Strategy.marks() {
		fault("Version", "is set, and the strategy is %v, which writes no markers: a version that waits needs one; use StrategyMarker or StrategyInbox", c.Strategy)
	}
}

// fitsVersions reports what of a store is in the way of versions.
func (c *settings) fitsVersions(store any) error {
	if c.Version == nil {
		return nil
	}
	if c.way != byTransaction {
		return fmt.Errorf("field Version needs a transaction, in which a stream moves with the effect, and handlers that call out have none: %w", semel.ErrUnsupported)
	}
	if _, keeps := store.(admin.Streams); !keeps {
		return fmt.Errorf("field Version needs a store that keeps streams, and this one does not: %w", semel.ErrUnsupported)
	}
	return nil
}
