package store

import "testing"

func TestTheSumOfAPass(t *testing.T) {
	const most = 10
	later := ReapMark{Scope: 1, At: 5, ID: "a"}
	over := ReapMark{Done: true}
	for name, c := range map[string]struct {
		dry    bool
		call   Reaped
		over   bool
		bodies int64
	}{
		"H3_a_call_in_the_middle_goes_on":          {call: Reaped{Next: later}, bodies: 7},
		"H3_the_last_call_ends_it":                 {call: Reaped{Next: over, Bodies: most - 1}, over: true, bodies: 7 + most - 1},
		"D7_as_many_bodies_as_may_go_are_not_all":  {call: Reaped{Next: over, Bodies: most}, bodies: 7 + most},
		"H3_another_process_ends_it":               {call: Reaped{Elsewhere: true}, over: true, bodies: 7},
		"D7_who_only_counts_meets_the_same_bodies": {dry: true, call: Reaped{Next: later, Bodies: most}, bodies: 7},
		"D7_who_only_counts_ends_with_the_markers": {dry: true, call: Reaped{Next: over, Bodies: most}, over: true, bodies: 7},
	} {
		t.Run(name, func(t *testing.T) {
			c.call.Markers, c.call.Rows, c.call.Kept, c.call.Days = 2, 3, 4, 5
			sum := Reaped{Markers: 1, Rows: 1, Kept: 1, Days: 1, Bodies: 7, Next: ReapMark{Scope: 1}}
			got := sum.Add(Reaping{Most: most, DryRun: c.dry, After: sum.Next}, c.call)
			if want := (Reaped{Markers: 3, Rows: 4, Kept: 5, Days: 6, Bodies: c.bodies, Next: c.call.Next, Elsewhere: c.call.Elsewhere}); got != c.over || sum != want {
				t.Errorf("over: %v, %+v, not %v, %+v", got, sum, c.over, want)
			}
		})
	}
}
