package brokers

import (
	"strings"
	"testing"

	"github.com/semel-go/semel/itest/ledger"
	"github.com/semel-go/semel/itest/proof"
)

func TestALedgerIsNoProofIfAnythingIsWrong(t *testing.T) {
	good := Ledger{Records: 11, Balance: ledger.Balance{Expected: 10, Applied: 10}, Killed: 1, Frozen: 1, Offsets: proof.Offsets{Samples: 20}}
	if err := good.Fault(); err != nil {
		t.Errorf("a good ledger: %v", err)
	}
	for says, change := range map[string]func(*Ledger){
		"lost 1":           func(l *Ledger) { l.Lost = 1 },
		"doubled 2":        func(l *Ledger) { l.Doubled = 2 },
		"stuck -1":         func(l *Ledger) { l.Stuck = -1 },
		"foreign 3":        func(l *Ledger) { l.Foreign = 3 },
		"went back":        func(l *Ledger) { l.Backwards = 1 },
		"2 away from":      func(l *Ledger) { l.Behind = 2 },
		"0 brokers were k": func(l *Ledger) { l.Killed = 0 },
		"0 brokers were f": func(l *Ledger) { l.Frozen = 0 },
		"only 3 samples":   func(l *Ledger) { l.Samples = 3 },
	} {
		l := good
		change(&l)
		if err := l.Fault(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
}
