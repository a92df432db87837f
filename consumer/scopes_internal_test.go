package consumer

import (
	"fmt"
	"testing"

	"github.com/semel-go/semel/memstore"
)

func TestScopesAreRememberedUpToANumber(t *testing.T) {
	t.Run("law_11_sources_that_a_producer_chooses_are_remembered_up_to_a_number", func(t *testing.T) {
		s := &scopes[*memstore.Tx]{consumer: "billing", store: memstore.New()}
		for i := range 30 {
			var all []scopeOf
			for j := range 1000 {
				all = append(all, scopeOf{source: fmt.Sprint(i, j)}, scopeOf{source: "in each batch"}, scopeOf{"former", true})
			}
			if err := s.know(t.Context(), all); err != nil {
				t.Fatal(err)
			}
			for _, of := range all {
				if _, _, known := s.find(of); !known {
					t.Fatalf("batch %d: %v is not known after the batch asked for it", i, of)
				}
			}
			if len(s.known) > maxScopes {
				t.Fatalf("%d scopes are remembered", len(s.known))
			}
		}
	})
}
