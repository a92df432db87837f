package consumer

import (
	"context"
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer/internal/delivery"
	"github.com/semel-go/semel/consumer/internal/scopes"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

// PreviousIdentity is how the identities of a consumer's messages were found before.
//
// Messages are marked under it as well as under Config.Identity, in the same statement,
// and a message is fresh only where both are. So processes of both versions may run side
// by side over one store, and what the one has applied the other does not apply again. A
// message whose own identity is new, and whose former one is marked, is a duplicate if its
// content is equal, and otherwise a conflict (semel.ReasonFormerConflict): where a former
// identity was coarser, so that several messages had one, none of them is lost. The row of
// such a conflict can be retried; it runs under its own identity alone. A message in which
// no former identity is found has none.
//
// The store remembers how identities are found, and refuses a start with another
// derivation that does not name the recorded one here (semel.ErrIdentityChanged). Name it
// until no message can come again that was processed before the change, and then retire it
// (semel identity retire, admin.Derivations).
type PreviousIdentity struct {
	// Identity is what Config.Identity was. Required; it tells its derivation
	// (identity.Derived), as those made of selectors do.
	Identity identity.Identity
	// TrustUnfingerprinted makes a duplicate of a message whose former identity is marked
	// without a fingerprint, or with one of another rule, which cannot be compared with the
	// message's. Otherwise it is a conflict.
	TrustUnfingerprinted bool
}

// checkFormer reports what a former identity cannot stand beside.
func (c *Config) checkFormer(fault faultFunc) {
	if c.PreviousIdentity == nil {
		return
	}
	own, former := derivationOf(c.Identity), ""
	if c.PreviousIdentity.Identity != nil {
		former = derivationOf(c.PreviousIdentity.Identity)
	}
	unprinted := c.Fingerprint == identity.FingerprintNone()
	switch {
	case c.PreviousIdentity.Identity == nil:
		fault("PreviousIdentity.Identity", "is missing; say what Identity was before, or leave PreviousIdentity out")
		return
	case !c.Strategy.marks():
		fault("PreviousIdentity", "is set and Strategy is %v, which writes no markers that another identity could be marked beside; remove it", c.Strategy)
	case c.Version != nil:
		fault("PreviousIdentity", "is set beside Version: the streams of another identity begin anew, and their versions would be judged twice; start a consumer of another name where this one has ended")
	case unprinted:
		fault("PreviousIdentity", "is set and Fingerprint is FingerprintNone: without one, several messages that had one former identity cannot be told from copies, and all but one would be lost; use FingerprintBody")
	case own == "" || former == "":
		fault("PreviousIdentity", "needs identities that tell their derivation; give their types a method Derivation() string, or make them of selectors with identity.By")
	case own == former:
		fault("PreviousIdentity.Identity", "is what Identity is now, %s; name what it was before, or leave PreviousIdentity out", own)
	}
	if err := c.PreviousIdentity.Identity.Validate(); err != nil {
		fault("PreviousIdentity.Identity", "%v", err)
	}
}

// derivationOf is what an identity tells of itself, empty if nothing.
func derivationOf(by identity.Identity) string {
	if d, tells := by.(identity.Derived); tells {
		return d.Derivation()
	}
	return ""
}

// fitsFormer reports whether the store can mark under a former identity.
func (c *settings) fitsFormer(store any) error {
	switch {
	case c.PreviousIdentity == nil:
		return nil
	case derivationsOf(store) == nil:
		return fmt.Errorf("the store marks under no former identity, and PreviousIdentity is set: %w", semel.ErrUnsupported)
	case c.Retention.DailyPartitions:
		return fmt.Errorf("PreviousIdentity is set beside Retention.DailyPartitions: a table of days has the ids of one identity; remove one of them: %w", semel.ErrUnsupported)
	}
	return nil
}

// derivationsOf are those of a store, nil if it keeps none.
func derivationsOf(store any) admin.Derivations {
	derivations, _ := store.(admin.Derivations)
	return derivations
}

// markIn is the mark of a message in a transaction of the user's.
func (c *Consumer[Tx]) markIn(ctx context.Context, tx Tx, p *delivery.Delivery, as store.Outcome) (store.Mark, error) {
	it := &p.Item
	m := store.Mark{Consumer: c.config.Name, Source: it.Source, ID: []byte(it.Identity), Fingerprint: it.Print, As: as, Age: c.config.retention.AgeOf(p)}
	var err error
	if it.Former != nil {
		m.Previous = &store.PreviousMark{ID: []byte(it.Former.Identity), Strict: !c.config.PreviousIdentity.TrustUnfingerprinted}
		if m.Previous.Scope, err = c.scopes.NumberIn(ctx, tx, scopes.Of{Source: it.Former.Source, Previous: true}); err != nil {
			return m, err
		}
	}
	m.Scope, err = c.scopes.NumberIn(ctx, tx, scopes.Of{Source: it.Source})
	return m, err
}
