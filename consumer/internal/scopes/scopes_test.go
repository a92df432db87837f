package scopes

import (
	"fmt"
	"testing"

	"github.com/semel-go/semel/memstore"
)

func TestScopesAreRememberedUpToANumber(t *testing.T) {
	t.Run("law_11_sources_that_a_producer_chooses_are_remembered_up_to_a_number", func(t *testing.T) {
		s := New[*memstore.Tx]("billing", memstore.New(), false)
		for i := range 30 {
			var all []Of
			for j := range 1000 {
				all = append(all, Of{Source: fmt.Sprint(i, j)}, Of{Source: "in each batch"}, Of{"former", true})
			}
			if err := s.Know(t.Context(), all); err != nil {
				t.Fatal(err)
			}
			for _, of := range all {
				if _, _, known := s.find(of); !known {
					t.Fatalf("batch %d: %v is not known after the batch asked for it", i, of)
				}
			}
			if len(s.known) > Most {
				t.Fatalf("%d scopes are remembered", len(s.known))
			}
		}
	})
}
