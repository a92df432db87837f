package admin

import (
	"strings"
	"testing"
)

func TestAnOwnerGrowsWithTheTypesOfItsHandlers(t *testing.T) {
	long := []string{"a", strings.Repeat("b", 600)}
	for name, c := range map[string]struct {
		was, owner string
		grown      bool
	}{
		"trap_23_one_more":              {HandlersOf([]string{"b", "a"}), HandlersOf([]string{"a", "b", "c"}), true},
		"trap_23_the_same":              {HandlersOf([]string{"b", "a"}), HandlersOf([]string{"a", "b"}), false},
		"trap_23_one_less":              {HandlersOf([]string{"a", "b"}), HandlersOf([]string{"a"}), false},
		"trap_23_others":                {HandlersOf([]string{"a"}), HandlersOf([]string{"b", "c"}), false},
		"trap_23_a_longer_name":         {HandlersOf([]string{"a"}), HandlersOf([]string{"ab", "c"}), false},
		"trap_23_owner_of_a_Go_program": {"billing", "billing, and more", false},
		"trap_23_nothing_before":        {"", HandlersOf([]string{"a"}), false},
		"trap_23_too_long":              {HandlersOf([]string{"a"}), HandlersOf(long), false},
	} {
		t.Run(name, func(t *testing.T) {
			if Grown(c.was, c.owner) != c.grown {
				t.Errorf("%q after %q: %v", c.owner, c.was, !c.grown)
			}
		})
	}
}
