//go:build unix

package reconcile

import (
	"testing"

	"github.com/semel-go/semel/itest/proof"
)

func TestG7LossesAndDoublesAreFoundBesideAConsumerThatRuns(t *testing.T) {
	for _, blind := range []bool{false, true} {
		l := proof.Prove(proof.InTest(t), Proof{Messages: 10_000, Blind: blind}.Run)
		switch {
		case blind && l.Wrong() == nil:
			t.Errorf("the command did not compare the effects, and the proof did not detect it: %+v", l)
		case !blind && l.Fault() != nil:
			t.Errorf("%v: %+v", l.Fault(), l)
		}
	}
}
