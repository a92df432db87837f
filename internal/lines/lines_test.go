package lines_test

import (
	"slices"
	"testing"

	"github.com/semel-go/semel/internal/lines"
	"github.com/semel-go/semel/store"
)

// newMarks returns a marker with the outcome Applied for each of the given names of lines.
func newMarks(names ...string) (marks []store.Mark) {
	for _, name := range names {
		marks = append(marks, store.Mark{As: store.Applied, Line: []byte(name)})
	}
	return marks
}

func TestWhichMarksAskForTheirLine(t *testing.T) {
	marks := newMarks("a", "", "b", "c", "d")
	marks[2].As = store.Waiting
	marks[3].Claim.Token = 1
	t.Run("C8_those_of_a_line_that_run_and_hold_no_claim", func(t *testing.T) {
		if got := lines.Asked(marks); !slices.Equal(got, []int{0, 4}) {
			t.Errorf("%v ask", got)
		}
	})
}

func TestVerdictsBehindAnotherMessage(t *testing.T) {
	const fresh, behind, seen = store.Fresh, store.Behind, store.Seen
	waits := newMarks("a", "a", "b")
	waits[0].As = store.Waiting
	parked := newMarks("a", "a")
	parked[0].As = store.Parked
	unlined := newMarks("", "")
	unlined[0].As = store.Waiting
	claimed := newMarks("a", "a")
	claimed[0].As, claimed[0].Claim.Token = store.Waiting, 1
	for name, c := range map[string]struct {
		marks []store.Mark
		busy  []int
		kinds []store.VerdictKind
		want  []store.VerdictKind
	}{
		"C8_what_the_store_has_something_before":                {newMarks("a", "b"), []int{1}, []store.VerdictKind{fresh, fresh}, []store.VerdictKind{fresh, behind}},
		"C8_but_no_duplicate":                                   {newMarks("a"), []int{0}, []store.VerdictKind{seen}, []store.VerdictKind{seen}},
		"C8_law_8_what_follows_one_that_waits_in_its_batch":     {waits, nil, []store.VerdictKind{fresh, fresh, fresh}, []store.VerdictKind{fresh, behind, fresh}},
		"C8_law_8_what_follows_one_that_is_parked_in_its_batch": {parked, nil, []store.VerdictKind{fresh, fresh}, []store.VerdictKind{fresh, behind}},
		"C8_not_what_follows_a_duplicate":                       {waits, nil, []store.VerdictKind{seen, fresh, fresh}, []store.VerdictKind{seen, fresh, fresh}},
		"C8_not_what_has_no_line":                               {unlined, nil, []store.VerdictKind{fresh, fresh}, []store.VerdictKind{fresh, fresh}},
		"C8_not_what_follows_a_claim":                           {claimed, nil, []store.VerdictKind{fresh, fresh}, []store.VerdictKind{fresh, fresh}},
	} {
		t.Run(name, func(t *testing.T) {
			verdicts := make([]store.Verdict, len(c.kinds))
			for i, k := range c.kinds {
				verdicts[i].Kind = k
			}
			lines.Judge(c.marks, c.busy, verdicts)
			for i, v := range verdicts {
				if v.Kind != c.want[i] {
					t.Errorf("mark %d is %v, want %v", i, v.Kind, c.want[i])
				}
			}
		})
	}
}

func TestRowsThatEnterTheirLines(t *testing.T) {
	t.Run("D8_those_that_wait_or_are_parked_in_the_order_of_lines_and_marks", func(t *testing.T) {
		marks := newMarks("b", "a", "b", "b", "a", "", "c", "c", "c", "c")
		rows := []store.Row{
			{Mark: 3, State: store.StateParked}, {Mark: 0, State: store.StateReceived}, {Mark: 1, State: store.StateBlocked},
			{Mark: 2, State: store.StateReceived}, {Mark: 4, State: store.StateDiscarded}, {Mark: 5, State: store.StateReceived},
			{Mark: 6, State: store.StateReceived, Repeat: true}, {Mark: 7, State: store.StateReceived, Conflict: true},
			{Mark: 8, State: store.StateReceived, Surrogate: true}, {Mark: 9, State: store.StateDeadLettered},
		}
		all := lines.Entering(marks, &store.Ending{Rows: rows})
		want := []lines.Entry{{Line: "a", Mark: 1}, {Line: "b", Mark: 0, Behind: 2}, {Line: "b", Mark: 2, Behind: 1}, {Line: "b", Mark: 3}}
		if !slices.Equal(all, want) {
			t.Errorf("%+v, want %+v", all, want)
		}
		if counts := lines.Counted(all); !slices.Equal(counts, []lines.Count{{Line: "a", Rows: 1}, {Line: "b", Rows: 3}}) {
			t.Errorf("%+v enter", counts)
		}
	})
	t.Run("D2_of_receipts_those_that_are_new", func(t *testing.T) {
		all := lines.Received(newMarks("a", "a"), []store.Verdict{{Kind: store.Seen}, {Kind: store.Fresh}})
		if !slices.Equal(all, []lines.Entry{{Line: "a", Mark: 1}}) {
			t.Errorf("%+v", all)
		}
	})
}

func TestRowsThatLeaveTheirLines(t *testing.T) {
	t.Run("D8_with_an_end_after_which_nothing_of_theirs_runs", func(t *testing.T) {
		var claims []store.ClaimEnding
		for i, state := range []store.RowState{store.StateDeadLettered, store.StateParked, store.StateDiscarded, store.StateFailedRetryable, store.StateCompleted} {
			claims = append(claims, store.ClaimEnding{Claim: store.Claim{Number: int64(9 - i)}, State: state, Lined: true})
		}
		claims = append(claims, store.ClaimEnding{Claim: store.Claim{Number: 1}, State: store.StateCompleted})
		if got := lines.Leaving(claims); !slices.Equal(got, []int64{5, 7, 9}) {
			t.Errorf("%v leave", got)
		}
	})
}
