package consumer

import (
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/enum"
)

// OnParked says what becomes of the messages behind one that waits in the inbox, for a
// retry or for a person.
type OnParked uint8

const (
	// OnParkedDefault is OnParkedBlock with LanesKey where the store can
	// (admin.Lines), a marker is written and no Version is set, and OnParkedSkip
	// otherwise.
	OnParkedDefault OnParked = iota
	// OnParkedSkip: they go on, and a later retry is out of order.
	OnParkedSkip
	// OnParkedBlock: they wait behind it in the inbox, and their source is settled. The
	// commit that ends it frees the next one, and so on; a person lets them pass
	// (semel inbox skip). With LanesKey these are the messages of its key, with
	// LanesPartition those of its partition. The consumer's processes need the store's
	// inbox for it (admin.Lines), and Process keeps no such order.
	OnParkedBlock
)

// String is the word in a policy file.
func (o OnParked) String() string {
	return enum.Name([]string{OnParkedDefault: "default", OnParkedSkip: "skip", OnParkedBlock: "block"}, o, "OnParked")
}

func (c *Config) checkOnParked(fault faultFunc) {
	switch {
	case c.OnParked > OnParkedBlock:
		fault("OnParked", "%v is no such choice; use OnParkedSkip or OnParkedBlock", c.OnParked)
	case c.OnParked != OnParkedBlock:
	case c.Lanes == LanesNone:
		fault("OnParked", "is block beside Lanes none, which keeps no order; use LanesKey or LanesPartition, or OnParkedSkip")
	case !c.Strategy.marks():
		fault("OnParked", "is block, and the strategy is %v, which writes no markers: a message that waits needs one; use StrategyMarker or StrategyInbox", c.Strategy)
	case c.Version != nil:
		fault("OnParked", "is block beside Version, which keeps back the later versions of a stream by itself; leave OnParked out")
	}
}

// fitsLines reports that the store keeps no lines, which OnParkedBlock needs.
func (c *settings) fitsLines(store any) error {
	if c.OnParked == OnParkedBlock && linesOf(store) == nil {
		return fmt.Errorf("OnParked is block, which needs a store that keeps lines in its inbox, and this one does not: %w", semel.ErrUnsupported)
	}
	return nil
}

// onParked is what OnParkedDefault means on a store.
func (c *settings) onParked(store any) OnParked {
	if c.rows && linesOf(store) != nil && c.Lanes == LanesKey && c.Strategy.marks() && c.Version == nil {
		return OnParkedBlock
	}
	return OnParkedSkip
}

// linesOf are those of a store, nil if it keeps none.
func linesOf(st any) admin.Lines {
	lines, _ := st.(admin.Lines)
	return lines
}
