package httpkey

import (
	"testing"
	"time"

	"github.com/semel-go/semel/leasedkey"
	"github.com/semel-go/semel/memstore"
)

func TestEveryProblemIsInAContractAndHasATitle(t *testing.T) {
	c := Config{Name: "orders", OneTenant: true, Keep: 72 * time.Hour}
	first, err := New(memstore.New(), c)
	if err != nil {
		t.Fatal(err)
	}
	second, err := NewLeased(memstore.NewKeys(), c, LeaseConfig{Window: leasedkey.Always, AllowVolatile: "a test"})
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]bool{}
	for _, g := range []*Guard{first, second} {
		contract := g.Contract()
		for _, r := range contract.rows() {
			if told[r.code] = true; titles[r.code] == "" {
				t.Errorf("%s has no title", r.code)
			}
		}
	}
	for code := range titles {
		if !told[code] && code != codeCaller && code != codeBusyCaller { // these codes are only for guards with callers
			t.Errorf("%s is missing in the contracts", code)
		}
	}
}
