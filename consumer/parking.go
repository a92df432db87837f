package consumer

import (
	"fmt"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// keepsRows reports whether a store has an inbox. A store without one must never be given rows: a
// parked message would be acked and exist nowhere.
func keepsRows(st any) bool {
	_, keeps := st.(store.Inbox)
	return keeps
}

// claimsRows reports whether a store has an inbox whose rows can be claimed.
func claimsRows(st any) bool {
	_, claims := st.(store.Leases)
	return claims && keepsRows(st)
}

// fitsParking reports the fields of the policy that need an inbox if the store has none.
func (c *settings) fitsParking(any) error {
	changes := c.withoutParking()
	if c.rows || len(changes) == 0 {
		return nil
	}
	where := "the store has no inbox (store.Inbox)"
	if c.way == byKey {
		where = "with NewKeyed there is no inbox"
	}
	return fmt.Errorf("%s, so no message can be parked, which is the default: %s; dead letters need a source that keeps them: %w", where, strings.Join(changes, "; "), semel.ErrUnsupported)
}

// withoutParking returns what must change in the policy if the store has no inbox.
func (c *settings) withoutParking() (changes []string) {
	for _, f := range []struct {
		parks  bool
		change string
	}{
		{c.Retry.OnExhausted == ActionPark, "set Retry.OnExhausted to ActionHalt or ActionDeadLetter"},
		{c.OnConflict == ActionPark, "set OnConflict to ActionHalt, ActionDeadLetter or ActionKeepFirst"},
		{c.OnBadIdentity == ActionPark, "set OnBadIdentity to ActionHalt or ActionDeadLetter"},
		// With NewKeyed an unmet condition ends as Retry.OnExhausted says: few of its handlers have one.
		{c.OnPrecondition == ActionPark && c.way != byKey, "set OnPrecondition to ActionRetry, ActionDiscard or ActionDeadLetter"},
		{c.OnFiltered == OnFilteredPark, "set OnFiltered to OnFilteredSkip or OnFilteredDeadLetter"},
		{c.Retention.OnExpired == ActionPark && c.Retention.Keep > 0, "set Retention.OnExpired to ActionHalt, ActionDeadLetter or ActionDiscard"},
		{c.OnParked == OnParkedBlock, "set OnParked to OnParkedSkip"},
		{c.Version != nil, "remove Version: a version waits in the inbox for the one before it"},
	} {
		if f.parks {
			changes = append(changes, f.change)
		}
	}
	return changes
}
