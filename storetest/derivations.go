package storetest

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

func (h *fixture[Tx]) derivations() admin.Derivations { return h.Store.(admin.Derivations) }

// derivations are the laws of what a store remembers of identities.
func (s suite[Tx]) derivations(t *T) {
	if s.h.Can.OneConsumer {
		s.oneDerivation(t)
		return
	}
	s.formers(t)
	t.Run("A7_derivations_are_kept_by_consumer",
		"One that is recorded comes back as it was; its generation and its text are its consumer's for ever, also when many ask at once.",
		func(t *T) {
			h := s.opened(t)
			d := h.derivations()
			long := strings.Repeat("\xff\x00 'long\"", admin.MaxDerivation/8)
			added := make([]bool, 16)
			together(len(added), func(i int) {
				var err error
				added[i], err = d.AddDerivation(t.context(), admin.Derivation{Consumer: "billing", Text: "first", Former: admin.NoFormer})
				t.must(err)
			})
			if n := len(slices.DeleteFunc(added, func(a bool) bool { return !a })); n != 1 {
				t.Errorf("%d of 16 have recorded it", n)
			}
			for _, c := range []struct {
				d    admin.Derivation
				want bool
			}{
				{admin.Derivation{Consumer: "billing", Generation: 1, Text: long, Former: 0}, true},
				{admin.Derivation{Consumer: "billing", Generation: 1, Text: "another", Former: admin.NoFormer}, false},
				{admin.Derivation{Consumer: "billing", Generation: 2, Text: "first", Former: admin.NoFormer}, false},
				{admin.Derivation{Consumer: "audit", Generation: 0, Text: "first", Former: admin.NoFormer}, true},
			} {
				if added, err := d.AddDerivation(t.context(), c.d); err != nil || added != c.want {
					t.Errorf("%.60v is added: %t, %v", c.d, added, err)
				}
			}
			all, err := d.Derivations(t.context(), "billing")
			t.must(err)
			if len(all) != 2 || all[0].Text != "first" || all[0].Former != admin.NoFormer || all[1].Text != long || all[1].Former != 0 || all[1].Generation != 1 || all[0].Retired || time.Since(all[0].First).Abs() > 24*365*100*time.Hour {
				t.Errorf("there are %.300v", all)
			}
			if every, err := d.Derivations(t.context(), ""); err != nil || len(every) != 3 || every[0].Consumer != "audit" {
				t.Errorf("of all there are %.300v, %v", every, err)
			}
		})
	t.Run("A7_a_derivation_is_retired_with_the_act",
		"Retiring is recorded once, ends what named it as former, and can be taken back.",
		func(t *T) {
			h := s.opened(t)
			d := h.derivations()
			for g, former := range []int64{admin.NoFormer, 0} {
				_, err := d.AddDerivation(t.context(), admin.Derivation{Consumer: "billing", Generation: int64(g), Text: string(rune('a' + g)), Former: former})
				t.must(err)
			}
			act := store.Act{Verb: "retire", Who: "a test", Why: "because"}
			t.must(d.RetireDerivation(t.context(), "billing", 0, true, act))
			for generation, retired := range map[int64]bool{0: true, 1: false, 7: true} {
				if err := d.RetireDerivation(t.context(), "billing", generation, retired, act); !errors.Is(err, semel.ErrChanged) {
					t.Errorf("generation %d to %t: %v", generation, retired, err)
				}
			}
			all, err := d.Derivations(t.context(), "billing")
			t.must(err)
			if len(all) != 2 || !all[0].Retired || all[1].Retired || all[1].Former != admin.NoFormer {
				t.Errorf("there are %+v", all)
			}
			t.must(d.RetireDerivation(t.context(), "billing", 0, false, act))
			if s.h.Can.Inbox {
				acts, err := h.inbox().Acts(t.context(), 0, 10)
				t.must(err)
				if len(acts) != 2 || acts[0].Verb != "retire" || acts[0].Why != "because" {
					t.Errorf("the acts are %+v", acts)
				}
			}
		})
	t.Run("trap_23_a_consumers_name_has_an_owner",
		"An owner is replaced only by who knows it; names of which something is kept are listed.",
		func(t *T) {
			h := s.opened(t)
			d := h.derivations()
			for _, c := range []struct {
				was, owner string
				want       bool
			}{{"", "a", true}, {"", "b", false}, {"b", "c", false}, {"a", "b\xff", true}, {"b\xff", "", true}, {"", "d", true}} {
				if set, err := d.SetOwner(t.context(), "billing", c.was, c.owner); err != nil || set != c.want {
					t.Errorf("%q to %q: %t, %v", c.was, c.owner, set, err)
				}
			}
			for name, want := range map[string]string{"billing": "d", "audit": ""} {
				if owner, err := d.Owner(t.context(), name); err != nil || owner != want {
					t.Errorf("%s is owned by %q, %v", name, owner, err)
				}
			}
			h.scopeOf("audit", "", 0)
			h.scopeOf("audit", "shop", 0)
			if names, err := d.Consumers(t.context()); err != nil || !slices.Equal(names, []string{"audit", "billing"}) {
				t.Errorf("the consumers are %q, %v", names, err)
			}
		})
}

// oneDerivation is the law of a store that keeps markers of one generation.
func (s suite[Tx]) oneDerivation(t *T) {
	t.Run("A7_a_store_of_one_generation_takes_one_derivation",
		"Where markers of another generation cannot be kept, another derivation is refused when it is recorded.",
		func(t *T) {
			d := s.opened(t).derivations()
			added, err := d.AddDerivation(t.context(), admin.Derivation{Consumer: "billing", Text: "first", Former: admin.NoFormer})
			if err != nil || !added {
				t.Errorf("%t, %v", added, err)
			}
			if _, err := d.AddDerivation(t.context(), admin.Derivation{Consumer: "billing", Generation: 1, Text: "second"}); !errors.Is(err, semel.ErrUnsupported) {
				t.Errorf("a second: %v", err)
			}
		})
}
