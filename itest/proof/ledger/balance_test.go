package ledger

import (
	"slices"
	"testing"
)

func TestABalanceSeesWhatIsLostDoubledStuckAndForeign(t *testing.T) {
	sent := []string{"a", "b", "c", "d"}
	for name, c := range map[string]struct {
		effects map[string]int
		stuck   int
		want    Balance
	}{
		"well":    {map[string]int{"a": 1, "b": 1, "c": 1, "d": 1}, 0, Balance{Applied: 4}},
		"lost":    {map[string]int{"a": 1, "b": 1, "c": 1}, 0, Balance{Applied: 3, Lost: 1}},
		"doubled": {map[string]int{"a": 1, "b": 3, "c": 1, "d": 1}, 0, Balance{Applied: 4, Doubled: 2}},
		"stuck":   {map[string]int{"a": 1, "b": 1}, 1, Balance{Applied: 2, Stuck: 1, Lost: 1}},
		"foreign": {map[string]int{"a": 1, "b": 1, "c": 1, "x": 1}, 0, Balance{Applied: 3, Lost: 1, Foreign: 1}},
	} {
		c.want.Expected = len(sent)
		got := Weigh(c.effects, slices.Values(sent), c.stuck)
		if got != c.want || (got.Wrong() == nil) != (name == "well") {
			t.Errorf("%s: %+v, wrong: %v", name, got, got.Wrong())
		}
	}
}
