//go:build unix

package upgrade

import (
	"fmt"

	"github.com/semel-go/semel/itest/proof"
)

// Ledger is the result of a Proof.
type Ledger struct {
	// Order has the names of the releases. The first release creates the tables.
	Order [2]string
	// Deliveries is the number of deliveries in all feeds. Expected is the number of messages that must take effect.
	// Applied is the number of messages that took effect.
	Deliveries, Expected, Applied int
	// Doubled is the number of effects beyond the first effect of a message. Lost is the number of messages
	// without an effect.
	Lost, Doubled int
	// Unmarked is the number of effects without a marker "applied". Hollow is the number of markers
	// "applied" without an effect.
	Unmarked, Hollow int
	// Rows is the number of parked rows, and ExpectedRows is the expected number of parked rows. Copies is the number
	// of duplicates that the rows count. LeastCopies is the minimum number of duplicates that were delivered.
	Rows, ExpectedRows, Copies, LeastCopies int
	// Retried is the number of parked messages that took effect when each release retried rows of both releases.
	// ExpectedRetried is the expected number.
	Retried, ExpectedRetried int
	// Guards is the number of guard rows. Guard rows may exist only inside an open transaction.
	Guards int
	// Astray is the number of files or partitions whose saved position is not at the end.
	Astray int
	// Kills is the number of kills. Open is the number of kills during an open transaction.
	Kills, Open int
	// Refusals is the number of times that a release refused to start because the tables belong to a newer release.
	Refusals int
	// By is the number of effects of each release. Met is, for each release, the number of messages that this release
	// reported as duplicates and the other release had applied.
	By, Met map[string]int
	// At the end of the test, each release reads all feeds again from the beginning. Again is, for each release, the
	// number of repeated deliveries that were not recognised as duplicates. Uncounted is the number of repeated
	// deliveries that the parked rows do not count.
	Again     map[string]int
	Uncounted int
	Seconds   proof.Seconds
}

func newLedger(p Proof) *Ledger {
	feeds := p.countFeeds()
	return &Ledger{Order: [2]string{p.First.Name, p.Second.Name}, Expected: p.Feed.countEffects(),
		ExpectedRows: p.Feed.countParkedRows(feeds), ExpectedRetried: p.Feed.countKind(unmet), LeastCopies: feeds*p.Feed.countParkedDeliveries() - p.Feed.countParkedRows(feeds),
		By: map[string]int{}, Met: map[string]int{}, Again: map[string]int{}}
}

// Wrong implements proof.Ledger.
func (l Ledger) Wrong() error {
	switch {
	case l.Lost != 0 || l.Doubled != 0 || l.Applied != l.Expected:
		return fmt.Errorf("lost %d, doubled %d", l.Lost, l.Doubled)
	case l.Unmarked != 0 || l.Hollow != 0:
		return fmt.Errorf("%d effects without a marker, %d markers without an effect", l.Unmarked, l.Hollow)
	case l.Rows != l.ExpectedRows:
		return fmt.Errorf("%d rows are parked, not %d", l.Rows, l.ExpectedRows)
	case l.Retried != l.ExpectedRetried:
		return fmt.Errorf("%d rows were retried, not %d", l.Retried, l.ExpectedRetried)
	case l.Copies < l.LeastCopies || l.Uncounted != 0:
		return fmt.Errorf("%d copies are counted on rows, of at least %d; later %d were not counted", l.Copies, l.LeastCopies, l.Uncounted)
	case l.Guards != 0 || l.Astray != 0:
		return fmt.Errorf("%d guards are left of transactions that are over, %d positions are astray", l.Guards, l.Astray)
	}
	for _, name := range l.Order {
		if l.Again[name] != 0 {
			return fmt.Errorf("%s took %d copies for new messages", name, l.Again[name])
		}
	}
	return nil
}

// Fault implements proof.Ledger. Fault returns an error if the situations that the test must produce did not occur. If
// the earlier release refused the newer tables, this release need not have continued to work.
func (l Ledger) Fault() error {
	if err := l.Wrong(); err != nil {
		return err
	}
	if 3*l.Open < l.Kills || l.Kills == 0 {
		return fmt.Errorf("only %d of %d kills met an open transaction: no proof", l.Open, l.Kills)
	}
	for _, name := range l.Order {
		if l.Refusals == 0 && (l.By[name] == 0 || l.Met[name] == 0) {
			return fmt.Errorf("%s applied %d messages and met %d of the other's markers: no proof", name, l.By[name], l.Met[name])
		}
	}
	return nil
}
