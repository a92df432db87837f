//go:build unix

package upgrade

import (
	"encoding/json"
	"fmt"
	"io"
)

// Ledger is what came out of a Proof.
type Ledger struct {
	// Order are the names of the releases, the first that began in front.
	Order [2]string
	// Deliveries are in all feeds. Expected messages take effect, Applied have.
	Deliveries, Expected, Applied int
	// Doubled are effects beyond the first of a message, Lost are messages
	// without one.
	Lost, Doubled int
	// Unmarked are effects without a marker that says applied, Hollow such
	// markers without an effect.
	Unmarked, Hollow int
	// Rows are parked, each once, where ExpectedRows are to be; Copies are
	// counted on them, LeastCopies were sent.
	Rows, ExpectedRows, Copies, LeastCopies int
	// Retried are parked messages that took effect when both releases retried
	// each other's rows, of ExpectedRetried.
	Retried, ExpectedRetried int
	// Guards are rows that only a transaction under way may have.
	Guards int
	// Astray are files or partitions whose position is not their end.
	Astray int
	// Kills of which Open met an open transaction.
	Kills, Open int
	// Refusals are starts at which a release said by name that the tables are a
	// newer one's.
	Refusals int
	// By are effects by release; Met are messages of which a release heard as
	// duplicates and which the other one had applied.
	By, Met map[string]int
	// Again are, by release, the deliveries of all feeds from their beginning
	// that were not duplicates when everything had been read; Uncounted the
	// copies among them that were not counted on their rows.
	Again     map[string]int
	Uncounted int
	Seconds   float64
}

func newLedger(p Proof) *Ledger {
	feeds := p.feeds()
	return &Ledger{Order: [2]string{p.First.Name, p.Second.Name}, Expected: p.Feed.effects(),
		ExpectedRows: p.Feed.rows(feeds), ExpectedRetried: p.Feed.of(unmet), LeastCopies: feeds*p.Feed.aside() - p.Feed.rows(feeds),
		By: map[string]int{}, Met: map[string]int{}, Again: map[string]int{}}
}

// Fault says why the ledger is no proof; nil if it is one.
func (l *Ledger) Fault() error {
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
	return l.tame()
}

// tame says that what the proof is about did not occur. Where the earlier
// release refused the newer one's tables, it need not have worked on.
func (l *Ledger) tame() error {
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

// Write prints the ledger.
func (l *Ledger) Write(w io.Writer) error {
	text, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s\n", text)
	return err
}
