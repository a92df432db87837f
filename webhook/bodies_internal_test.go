package webhook

import (
	"fmt"
	"testing"

	"github.com/semel-go/semel"
)

func TestOnlyTheLastBodiesAreRemembered(t *testing.T) {
	t.Run("law_11_the_memory_is_bounded_and_the_oldest_is_forgotten_first", func(t *testing.T) {
		var b bodies
		as := func(value string) semel.Headers { return semel.Headers{{Name: "x-id", Value: []byte(value)}} }
		body := func(i int) []byte { return fmt.Append(nil, i) }
		for i := range 2*mostBodies + 10 {
			if b.seenWithOtherHeaders(body(i), as("1")) {
				t.Fatalf("body %d is new and counts as repeated", i)
			}
		}
		if len(b.hashes) != mostBodies || len(b.order) != mostBodies {
			t.Errorf("%d bodies are kept in an order of %d, want %d", len(b.hashes), len(b.order), mostBodies)
		}
		for _, i := range []int{2*mostBodies + 9, mostBodies + 10, mostBodies + 9} { // an older body is now forgotten
			if got, want := b.seenWithOtherHeaders(body(i), as("2")), i != mostBodies+9; got != want {
				t.Errorf("body %d with other headers repeats: %t, want %t", i, got, want)
			}
		}
	})
}
