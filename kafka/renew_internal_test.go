package kafka

import "testing"

func TestAnEpochIsRenewedOnlyForItsOwnMember(t *testing.T) {
	given := owner{member: "m1", generation: 3}
	for name, c := range map[string]struct {
		refused owner
		gone    bool
		now     owner
		want    owner
	}{
		"case_11_of_the_member_that_was_given_the_lane": {given, false, owner{"m1", 4}, owner{"m1", 4}},
		"case_11_not_of_another_member":                 {given, false, owner{"m2", 4}, given},
		"case_11_not_of_a_lane_that_is_gone":            {given, true, owner{"m1", 4}, given},
		"case_11_not_while_the_group_accepts_it":        {owner{}, false, owner{"m1", 4}, given},
	} {
		t.Run(name, func(t *testing.T) {
			l := &lane{owner: given, refused: c.refused, gone: c.gone}
			if l.renewEpoch(c.now); l.owner != c.want {
				t.Errorf("the owner is %+v, want %+v", l.owner, c.want)
			}
		})
	}
}
