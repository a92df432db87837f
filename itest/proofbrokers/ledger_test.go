package proofbrokers

import (
	"strings"
	"testing"
)

func TestALedgerIsNoProofIfAnythingIsWrong(t *testing.T) {
	good := Ledger{Events: 10, Records: 11, Applied: 10, Killed: 1, Frozen: 1, Samples: 20}
	if err := good.Fault(); err != nil {
		t.Errorf("a good ledger: %v", err)
	}
	for says, change := range map[string]func(*Ledger){
		"lost 1":             func(l *Ledger) { l.Lost = 1 },
		"doubled 2":          func(l *Ledger) { l.Doubled = 2 },
		"stuck -1":           func(l *Ledger) { l.Stuck = -1 },
		"strange 3":          func(l *Ledger) { l.Strange = 3 },
		"went back":          func(l *Ledger) { l.Backwards = []string{"partition 1 from 5 to 3"} },
		"0 brokers":          func(l *Ledger) { l.Killed = 0 },
		"0 frozen":           func(l *Ledger) { l.Frozen = 0 },
		"offsets seen 3 tim": func(l *Ledger) { l.Samples = 3 },
	} {
		l := good
		change(&l)
		if err := l.Fault(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
}

func TestAnOffsetThatGoesBackIsSeen(t *testing.T) {
	w := &watch{highest: map[int32]int64{}}
	w.note(map[int32]int64{0: 5, 1: 7})
	w.note(map[int32]int64{0: 6, 1: 7})
	if len(w.backwards) != 0 || w.samples != 2 {
		t.Errorf("%+v", w)
	}
	w.note(map[int32]int64{0: 5})
	if len(w.backwards) != 2 {
		t.Errorf("one offset went back, one is gone: %v", w.backwards)
	}
}
