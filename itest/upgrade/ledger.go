//go:build unix

package upgrade

import (
	"fmt"

	"github.com/semel-go/semel/itest/proof"
)

// Ledger is the result of a Proof.
type Ledger struct {
	// Order contains the names of the releases, starting with the one that began.
	Order [2]string
	// Deliveries are the deliveries in all feeds. Expected messages should take effect, Applied did.
	Deliveries, Expected, Applied int
	// Doubled are effects beyond the first of a message, Lost are messages without an effect.
	Lost, Doubled int
	// Unmarked are effects without a marker applied, Hollow are such markers without an effect.
	Unmarked, Hollow int
	// Rows are the parked rows, each counted once, and ExpectedRows their expected number. Copies are counted on them,
	// LeastCopies were sent.
	Rows, ExpectedRows, Copies, LeastCopies int
	// Retried are parked messages that took effect when both releases retried each other's rows; ExpectedRetried is
	// their expected number.
	Retried, ExpectedRetried int
	// Guards are guard rows, which only an open transaction may have.
	Guards int
	// Astray are files or partitions whose position is not their end.
	Astray int
	// Kills are the kills; Open is how many of them hit an open transaction.
	Kills, Open int
	// Refusals are starts at which a release reported that the tables belong to a newer release.
	Refusals int
	// By are effects by release. Met are messages, by release, that it reported as duplicates and that the other one had
	// applied.
	By, Met map[string]int
	// Again are, by release, the deliveries of all feeds from their beginning that were not duplicates after everything
	// had been read. Uncounted are the copies among them that were not counted on their rows.
	Again     map[string]int
	Uncounted int
	Seconds   proof.Seconds
}

func newLedger(p Proof) *Ledger {
	feeds := p.feeds()
	return &Ledger{Order: [2]string{p.First.Name, p.Second.Name}, Expected: p.Feed.effects(),
		ExpectedRows: p.Feed.rows(feeds), ExpectedRetried: p.Feed.of(unmet), LeastCopies: feeds*p.Feed.aside() - p.Feed.rows(feeds),
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

// Fault implements proof.Ledger. The situation of the proof must have occurred. If the earlier release refused the newer
// tables, it need not have continued to work.
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
