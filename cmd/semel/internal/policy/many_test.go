package policy

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// newFaultyPolicy returns a policy in which each of the given number of consumers has faults.
func newFaultyPolicy(consumers int) []byte {
	var b strings.Builder
	b.WriteString("version: 1\nstores: {shop: {sqlite: {path: shop.db}}}\nsources: {in: {file: {path: in.jsonl, format: envelope}}}\nconsumers:\n")
	for i := range consumers {
		fmt.Fprintf(&b, "  c%d: {from: none, store: nowhere, identity: {id: uuid}, strategy: marker, workers: 0, effect: {kind: ledger, says: x}, handler: {sql: {statements: [commit]}}}\n", i)
	}
	return []byte(b.String())
}

func TestManyFaultsAreFoundInTheTimeOfFew(t *testing.T) {
	t.Run("K1_ten_times_as_many_faulty_consumers_take_about_ten_times_as_long", func(t *testing.T) {
		took := func(consumers int) time.Duration {
			text, began := newFaultyPolicy(consumers), time.Now()
			if p, faults := Parse("semel.yaml", text, func(string) (string, bool) { return "", false }); p != nil || len(faults) < consumers {
				t.Fatalf("%d faults of %d consumers", len(faults), consumers)
			}
			return time.Since(began)
		}
		var few, many time.Duration
		for range 5 { // a busy machine can make a single measurement too slow
			if few, many = took(300), took(3000); many <= 30*few {
				return
			}
		}
		t.Errorf("300 consumers take %v, and 3,000 take %v", few, many)
	})
}
