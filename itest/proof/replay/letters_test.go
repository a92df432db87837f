//go:build unix

package replay

import (
	"testing"

	"github.com/semel-go/semel/itest/proof"
)

func TestWhatBecameOfALetterIsReadFromTheDatabaseAlone(t *testing.T) {
	l := letter{Number: 7, ID: "a", Foretold: fateApplied, Happened: fateApplied}
	for name, c := range map[string]struct {
		was, is int
		state   string
		want    string
	}{
		"took effect":               {0, 1, "COMPLETED", fateApplied},
		"had its effect":            {1, 1, "COMPLETED", fateSkipped},
		"twice":                     {1, 2, "COMPLETED", fateDoubled},
		"an effect and no row":      {0, 1, "DEAD_LETTERED", fateFailed},
		"a row and no effect":       {0, 0, "COMPLETED", fateFailed},
		"failed":                    {0, 0, "DEAD_LETTERED", fateFailed},
		"the first content stands":  {1, 1, "DEAD_LETTERED", fateConflict},
		"closed, and has no effect": {0, 0, "DISCARDED", fateFailed},
	} {
		before := view{effects: map[string]int{"a": c.was}}
		after := view{effects: map[string]int{"a": c.is}, states: map[int64]string{7: c.state}}
		if got := became(l, before, after); got != c.want {
			t.Errorf("%s: %q, not %q", name, got, c.want)
		}
	}
}

func TestAPredictionThatDoesNotComeTrueIsNoted(t *testing.T) {
	letters := []letter{{ID: "a", Foretold: fateApplied}, {ID: "b", Foretold: fateConflict}, {ID: "c", Foretold: fateApplied}}
	foretold := tally(letters, func(l letter) string { return l.Foretold })
	if foretold != "2 applied, 1 conflict" {
		t.Error(foretold)
	}
	l := Ledger{}
	r := &run{ledger: &l, Fleet: &proof.Fleet{Stage: proof.InTest(t)}}
	r.forecast("right", foretold, foretold)
	r.forecast("wrong", foretold, tally(letters, func(l letter) string { return fateApplied }))
	if l.Forecasts != 2 || len(l.Mistaken) != 1 || l.Mistaken[0] != "wrong: predicted 2 applied, 1 conflict, happened 3 applied" {
		t.Errorf("%+v", l)
	}
}
