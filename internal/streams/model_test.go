package streams_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/streams"
	"github.com/semel-go/semel/internal/versions"
	"github.com/semel-go/semel/store"
)

// drawn is a randomly generated batch: its markers, the store's answers for them, and the ending of the batch.
type drawn struct {
	marks    []store.Mark
	verdicts []store.Verdict
	ending   store.Ending
}

func draw(r *rand.Rand) (d drawn) {
	for i := range 1 + r.IntN(7) {
		m := store.Mark{ID: []byte{byte(i)}, As: []store.Outcome{store.Applied, store.Applied, store.Discarded, store.Waiting, store.Parked}[r.IntN(5)], Fingerprint: semel.Fingerprint{Version: 1, Sum: [16]byte{byte(r.IntN(2))}}}
		m.Version = versions.Position{Stream: []byte{"ab"[r.IntN(2)]}, Number: int64(1 + r.IntN(6)), Start: 1, Asks: r.IntN(8) > 0}
		v := store.Verdict{Kind: []store.VerdictKind{store.Fresh, store.Fresh, store.Fresh, store.Seen}[r.IntN(4)]}
		switch {
		case r.IntN(3) == 0:
			m.Claim = store.Claim{Number: int64(i + 1), Token: 7}
			state := []store.RowState{store.StateCompleted, store.StateDiscarded, store.StateFailedRetryable, store.StateBlocked, store.StateParked}[r.IntN(5)]
			d.ending.Claims = append(d.ending.Claims, store.ClaimEnding{Claim: m.Claim, Mark: i, State: state, Reason: semel.ReasonGap})
		case r.IntN(4) == 0:
			d.ending.Trim = append(d.ending.Trim, i)
		case m.As == store.Waiting:
			d.ending.Rows = append(d.ending.Rows, store.Row{Mark: i, State: store.StateBlocked, Reason: semel.ReasonGap})
		}
		d.marks, d.verdicts = append(d.marks, m), append(d.verdicts, v)
	}
	return d
}

// place is the position of a stream in the model.
type place struct {
	last  int64
	print semel.Fingerprint
}

// expectedVerdicts returns the answers of the model (new, gap, stale), and which messages have the next version of
// their stream.
func (d *drawn) expectedVerdicts(at map[string]place) (verdicts []store.Verdict, next []bool) {
	verdicts, next = slices.Clone(d.verdicts), make([]bool, len(d.marks))
	for i, m := range d.marks {
		s, n := at[string(m.Version.Stream)], m.Version.Number
		runs := m.Version.Asks && verdicts[i].Kind == store.Fresh
		switch {
		case !runs || m.As != store.Applied && m.As != store.Discarded:
		case n == s.last+1:
			next[i] = true
			at[string(m.Version.Stream)] = place{n, m.Fingerprint}
		case n > s.last:
			verdicts[i] = store.Verdict{Kind: store.Gap, Missing: n - s.last - 1}
		case m.As == store.Applied:
			verdicts[i] = store.Verdict{Kind: store.Stale, Known: n == s.last && m.Fingerprint.Conflicts(s.print)}
		}
	}
	return verdicts, next
}

// ends reports whether the ending of the batch applies or skips message i.
func (d *drawn) ends(i int) bool {
	for _, c := range d.ending.Claims {
		if c.Mark == i {
			return c.State == store.StateCompleted || c.State == store.StateDiscarded
		}
	}
	return d.marks[i].Claim.Token == 0 && !slices.Contains(d.ending.Trim, i)
}

func TestStreamsMatchAModel(t *testing.T) {
	t.Run("B4_B9_trap_T53_of_streams_that_move_as_far_as_their_versions_follow_one_another", func(t *testing.T) {
		for seed := range uint64(20_000) {
			r := rand.New(rand.NewPCG(seed, 1))
			d := draw(r)
			before := map[string]place{"a": {last: int64(r.IntN(4))}, "b": {last: int64(r.IntN(4))}}
			if !d.holds(t, before) {
				t.Fatalf("seed %d: %+v", seed, d)
			}
		}
	})
}

func (d *drawn) holds(t *testing.T, before map[string]place) bool {
	b := streams.Of(d.marks)
	for _, s := range b.All() {
		s.Last, s.Print = before[string(s.Name)].last, before[string(s.Name)].print
	}
	want, next := d.expectedVerdicts(map[string]place{"a": before["a"], "b": before["b"]})
	got := slices.Clone(d.verdicts)
	if b.Judge(got); !slices.Equal(got, want) {
		t.Errorf("judged %v, and should be %v", got, want)
	}
	e, moved := b.End(d.ending)
	after := map[string]place{"a": before["a"], "b": before["b"]}
	for i, m := range d.marks {
		if name := string(m.Version.Stream); next[i] && d.ends(i) && m.Version.Number == after[name].last+1 {
			after[name] = place{m.Version.Number, m.Fingerprint}
		}
	}
	for _, s := range moved {
		if after[string(s.Name)] != (place{s.Last, s.Print}) || s.Last == before[string(s.Name)].last {
			t.Errorf("%s moves to %d, and should to %d", s.Name, s.Last, after[string(s.Name)].last)
		}
		before[string(s.Name)] = after[string(s.Name)]
	}
	if before["a"] != after["a"] || before["b"] != after["b"] {
		t.Errorf("%v move, and they should be at %v", moved, after)
	}
	came := false
	due := func(mark int) bool {
		v := d.marks[mark].Version
		came = came || v.Asks && v.Number <= after[string(v.Stream)].last+1
		return v.Asks && v.Number <= after[string(v.Stream)].last+1
	}
	for i, row := range e.Rows {
		if (row.State == store.StateReceived) != due(d.ending.Rows[i].Mark) {
			t.Errorf("the row of mark %d is %s", row.Mark, row.State)
		}
	}
	for i, c := range e.Claims {
		if was := d.ending.Claims[i].State; was == store.StateBlocked || was == store.StateParked {
			if (c.State == store.StateReceived) != due(c.Mark) {
				t.Errorf("the claim of mark %d is %s", c.Mark, c.State)
			}
		}
	}
	if b.Came() != came {
		t.Errorf("came: %v", b.Came())
	}
	return !t.Failed()
}
