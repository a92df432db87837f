package sqlsuite

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/audit"
	"github.com/semel-go/semel/itest/must"
	"github.com/semel-go/semel/store"
)

// AuditStore is a store with an audit chain: a hash chain over the recorded changes.
type AuditStore interface {
	admin.Auditor
	admin.Recorder
}

// AuditKey is the key of the audit chain in tests. This key is not secret.
var AuditKey = []byte("0123456789abcdef0123456789abcdef")

// Acted records one change for each number between the parameters from and to, including both.
func Acted(t testing.TB, s AuditStore, from, to int) {
	t.Helper()
	for i := from; i <= to; i++ {
		must.OK(t, s.Record(t.Context(), store.Act{Verb: "discard", Who: "ana", Why: fmt.Sprint("reason ", i)}))
	}
}

// SealedAll adds all recorded changes to the audit chain, and returns the number of added lines.
func SealedAll(t testing.TB, s AuditStore, key []byte) int {
	t.Helper()
	done, err := s.Seal(t.Context(), admin.Sealing{Key: key, Whole: true, Most: math.MaxInt32})
	if err != nil || done.Elsewhere {
		t.Fatalf("%+v: %v", done, err)
	}
	return done.Lines
}

// AuditFindings verifies the audit chain of a store against the recorded changes, and against ends of the chain that
// were stored elsewhere.
func AuditFindings(t testing.TB, s AuditStore, key []byte, kept ...audit.Point) (found []string, r audit.Report) {
	t.Helper()
	v := audit.NewVerifier(key)
	for _, p := range kept {
		v.Expect(p, "the head that was kept")
	}
	lines := must.Get(s.Seals(t.Context(), math.MinInt64, math.MaxInt32))(t)
	for _, l := range lines {
		v.Add(audit.Line{Seal: l.Seal, Compared: true, Now: l.Now})
	}
	end := must.Get(s.SealHead(t.Context()))(t)
	v.ExpectEnd(end, "the end that the store has")
	r = v.End()
	for _, f := range r.Findings {
		found = append(found, f.String())
	}
	return found, r
}

// forgery is a manipulation of the tables with the findings that verification must report.
type forgery struct {
	name string
	does []string
	want []string
	// needsStoredEnd is true if only an end of the chain that was stored elsewhere reveals the forgery.
	needsStoredEnd bool
}

// forgeries contains manipulations of an audit chain of ten lines. The table in.semel_acts contains the recorded
// changes.
var forgeries = []forgery{
	{name: "G6_an_act_that_was_changed", does: []string{"update in.semel_acts set why = 'forged' where number = 3"},
		want: []string{`line 3, change 3: changed: in the table of changes: why was sealed as "reason 3" and is "forged"`}},
	{name: "G6_a_line_that_was_changed", does: []string{"update in.semel_seals set who = 'bo' where sequence = 4"},
		want: []string{`line 4, change 4: changed: the line: who was sealed as "ana" and is "bo"; the table of changes still has what was sealed`}},
	{name: "G6_both_changed", does: []string{"update in.semel_seals set who = 'bo' where sequence = 4", "update in.semel_acts set who = 'bo' where number = 4"},
		want: []string{"line 4, change 4: changed: its content or its hash was changed"}},
	{name: "G6_an_act_that_was_removed", does: []string{"delete from in.semel_acts where number = 5"},
		want: []string{`line 5, change 5: removed: the table of changes no longer has it; it was "discard" by "ana"`}},
	{name: "G6_a_line_that_was_removed", does: []string{"delete from in.semel_seals where sequence = 5", "delete from in.semel_acts where number = 5"},
		want: []string{"line 5: removed"}},
	{name: "G6_lines_that_were_reordered", does: []string{"update in.semel_seals set sequence = -sequence where sequence in (2, 3)", "update in.semel_seals set sequence = 5 + sequence where sequence < 0"},
		want: []string{"line 2, change 2: reordered: it comes after line 3", "line 2: reordered: it was sealed as line 3"}},
	{name: "G6_a_line_that_was_inserted", does: []string{
		"update in.semel_seals set sequence = -sequence where sequence > 5", "update in.semel_seals set sequence = 1 - sequence where sequence < 0",
		`insert into in.semel_seals (sequence, act, "row", verb, who, why, result, at, sealed_at, keyed, previous, hash)
		select 6, 999, "row", verb, who, why, result, at, sealed_at, keyed, previous, hash from in.semel_seals where sequence = 5`,
	}, want: []string{"line 6, change 999: inserted", "lines 7 to 11: reordered: they were sealed as lines 6 to 10"}},
	{name: "G6_lines_that_were_cut_off", does: []string{"delete from in.semel_seals where sequence > 7", "delete from in.semel_acts where number > 7"},
		want: []string{"lines 8 to 10: cut off: the lines end before the end that the store has"}},
	{name: "G6_lines_that_were_cut_off_with_the_end", needsStoredEnd: true, does: []string{"delete from in.semel_seals where sequence > 7", "delete from in.semel_acts where number > 7",
		"update in.semel_seal_end set sequence = 7, hash = (select hash from in.semel_seals where sequence = 7)"},
		want: []string{"lines 8 to 10: cut off: the lines end before the head that was kept"}},
}

// Forged is a store for one forgery. The function exec runs the forger's statements with triggers disabled.
type Forged struct {
	Store AuditStore
	Exec  func(t testing.TB, statement string)
}

// Forgeries makes each forgery on a new store, and checks that verification reports the forgery.
func Forgeries(t *testing.T, fresh func(t testing.TB) Forged) {
	for _, f := range forgeries {
		for _, key := range [][]byte{nil, AuditKey} {
			t.Run(fmt.Sprintf("%s_under_a_key_%v", f.name, key != nil), func(t *testing.T) { forge(t, fresh(t), f, key) })
		}
	}
	t.Run("G6_a_key_finds_an_end_that_a_forger_wrote", func(t *testing.T) {
		w := fresh(t)
		Acted(t, w.Store, 1, 10)
		SealedAll(t, w.Store, AuditKey)
		for _, statement := range forgeries[len(forgeries)-1].does {
			w.Exec(t, statement)
		}
		if found, _ := AuditFindings(t, w.Store, AuditKey); len(found) != 1 || !strings.Contains(found[0], "was not written with the key") {
			t.Errorf("found %q", found)
		}
	})
	t.Run("G6_what_goes_on_behind_a_forgery_does_not_hide_it", func(t *testing.T) {
		w := fresh(t)
		Acted(t, w.Store, 1, 10)
		SealedAll(t, w.Store, nil)
		w.Exec(t, "delete from in.semel_seals where sequence > 7")
		Acted(t, w.Store, 11, 12)
		if n := SealedAll(t, w.Store, nil); n != 5 {
			t.Errorf("%d lines were sealed", n)
		}
		if found, _ := AuditFindings(t, w.Store, nil); len(found) != 1 || !strings.HasPrefix(found[0], "lines 8 to 10: removed") {
			t.Errorf("found %q", found)
		}
	})
}

func forge(t *testing.T, w Forged, f forgery, key []byte) {
	Acted(t, w.Store, 1, 10)
	if n := SealedAll(t, w.Store, key); n != 10 {
		t.Fatalf("%d lines", n)
	}
	found, r := AuditFindings(t, w.Store, key)
	if len(found) > 0 || r.Lines != 10 {
		t.Fatalf("before: %q of %d lines", found, r.Lines)
	}
	for _, statement := range f.does {
		w.Exec(t, statement)
	}
	var kept []audit.Point
	if f.needsStoredEnd {
		kept = append(kept, r.End)
	}
	found, _ = AuditFindings(t, w.Store, key, kept...)
	for _, want := range f.want {
		if !slices.ContainsFunc(found, func(got string) bool { return strings.HasPrefix(got, want) }) {
			t.Errorf("%q is not found, but %q", want, found)
		}
	}
}

// LateActs extends the audit chain while a change with a smaller number is not committed yet. Verification must not
// report the missing number as a loss, and after its commit, the late change must be added to the chain. The function
// late writes an uncommitted change and returns the function that commits the change.
func LateActs(t *testing.T, s AuditStore, late func(t testing.TB) (commit func())) {
	t.Helper()
	Acted(t, s, 1, 2)
	commit := late(t)
	Acted(t, s, 3, 4)
	if n := SealedAll(t, s, nil); n != 4 {
		t.Errorf("%d lines", n)
	}
	commit()
	done, err := s.Seal(t.Context(), admin.Sealing{})
	if err != nil || done.Lines != 1 {
		t.Errorf("the late one: %+v, %v", done, err)
	}
	if found, r := AuditFindings(t, s, nil); len(found) > 0 || r.Lines != 5 {
		t.Errorf("%q in %d lines", found, r.Lines)
	}
}
