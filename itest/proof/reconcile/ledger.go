//go:build unix

package reconcile

import (
	"cmp"
	"fmt"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/proof/ledger"
)

// Ledger has the findings of `semel reconcile`, and the numbers of lost and doubled messages that it must find.
type Ledger struct {
	Sent     int `json:"sent"`
	Lost     int `json:"losses_planted"`
	Missing  int `json:"of_them_found_missing"`
	Twice    int `json:"doubles_planted"`
	Doubled  int `json:"of_them_found_doubled"`
	Else     int `json:"findings_beside"`
	OnTheWay int `json:"sent_and_not_there_yet"`
	// Live is the number of messages that were applied while the command ran.
	Live     int           `json:"applied_meanwhile"`
	ExitCode int           `json:"exit_code"`
	Seconds  proof.Seconds `json:"seconds"`
	// Peak is the maximum memory of the command, in MiB.
	Peak int64 `json:"peak_mib"`
}

// Wrong implements proof.Ledger.
func (l Ledger) Wrong() error {
	if l.Missing != l.Lost || l.Doubled != l.Twice || l.Else != 0 || l.ExitCode != 4 {
		return fmt.Errorf("%d messages are lost and %d were found; %d are doubled and %d were found; %d other findings; exit code %d", l.Lost, l.Missing, l.Twice, l.Doubled, l.Else, l.ExitCode)
	}
	return nil
}

// Fault implements proof.Ledger.
func (l Ledger) Fault() error {
	return cmp.Or(l.Wrong(), ledger.AtLeast(100, l.Live, "messages were applied while it compared"), ledger.AtLeast(1, l.OnTheWay, "messages were on their way"))
}
