package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

var errDown = errors.New("the store is away")

// markers has the markers of a store. Only the second lookup finds the markers in foundLate.
type markers struct {
	found, foundLate map[string]store.Outcome
}

func (m markers) marker(_ context.Context, key semel.Key) (admin.StoredMarker, bool, error) {
	if key.ID == "down" {
		return admin.StoredMarker{}, false, errDown
	}
	o, there := m.found[key.Source+key.ID]
	return admin.StoredMarker{Outcome: o}, there, nil
}

func runComparison(t *testing.T, m markers, c *Comparison, tell func(c *Comparison)) (map[string]Kind, Counts) {
	t.Helper()
	c.Marker, c.Consumer = m.marker, "billing"
	tell(c)
	maps.Copy(m.found, m.foundLate)
	found := map[string]Kind{}
	counts, err := c.Compare(t.Context(), func(f Finding) error { found[f.Source+f.ID] = f.Kind; return nil })
	if err != nil {
		t.Fatal(err)
	}
	folder := c.spill.folder
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder of the comparison was not removed: %v", err)
	}
	return found, counts
}

func addSent(t *testing.T, c *Comparison, source string, at time.Time, ids ...string) {
	t.Helper()
	var keys []semel.Key
	var times []time.Time
	for _, id := range ids {
		keys, times = append(keys, semel.Key{Consumer: "billing", Source: source, ID: id}), append(times, at)
	}
	if err := c.Sent(t.Context(), keys, times); err != nil {
		t.Fatal(err)
	}
}

func addEffects(t *testing.T, c *Comparison, source string, ids ...string) {
	t.Helper()
	c.WithEffects()
	for _, id := range ids {
		if err := c.Effect(id, source); err != nil {
			t.Fatal(err)
		}
	}
}

func same(t *testing.T, found, want map[string]Kind) {
	t.Helper()
	if !maps.Equal(found, want) {
		t.Errorf("found %v, want %v", found, want)
	}
}

func TestFindings(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	t.Run("G7_missing_doubled_without_effect_and_unmarked", func(t *testing.T) {
		m := markers{found: map[string]store.Outcome{"ok": store.Applied, "twice": store.Applied, "gone": store.Applied, "wait": store.Waiting, "park": store.Parked, "undone": store.Waiting}}
		found, counts := runComparison(t, m, &Comparison{}, func(c *Comparison) {
			addSent(t, c, "", time.Time{}, "ok", "twice", "gone", "wait", "park", "undone", "lost", "made", "ok") // "ok" was sent twice
			addEffects(t, c, "", "ok", "twice", "twice", "undone", "made", "somebody's", "somebody's")
		})
		same(t, found, map[string]Kind{"twice": Doubled, "gone": WithoutEffect, "undone": Unmarked, "made": Unmarked, "lost": Missing})
		want := Counts{Sent: 8, Applied: 1, Waiting: 1, Aside: 1, Missing: 1, Doubled: 1, WithoutEffect: 1, Unmarked: 2, Others: 1}
		if counts != want || counts.Found() != 5 {
			t.Errorf("%+v", counts)
		}
	})
	t.Run("G7_live_traffic_is_not_missing", func(t *testing.T) {
		m := markers{found: map[string]store.Outcome{}, foundLate: map[string]store.Outcome{"under way": store.Applied, "too": store.Applied, "after the query": store.Applied}}
		found, counts := runComparison(t, m, &Comparison{Until: now}, func(c *Comparison) {
			addSent(t, c, "", now.Add(-time.Hour), "under way", "too", "after the query")
			addSent(t, c, "", now.Add(time.Second), "just sent")
			addSent(t, c, "", now, "lost")
			addEffects(t, c, "", "under way", "too")
		})
		same(t, found, map[string]Kind{"lost": Missing})
		if counts.Late != 1 || counts.Applied != 3 {
			t.Errorf("%+v", counts)
		}
	})
	t.Run("G7_H3_what_is_older_than_the_markers_that_are_kept_is_unknown", func(t *testing.T) {
		found, _ := runComparison(t, markers{found: map[string]store.Outcome{"kept": store.Applied}}, &Comparison{Kept: now}, func(c *Comparison) {
			addSent(t, c, "", now.Add(-time.Second), "kept", "old")
			addSent(t, c, "", now.Add(time.Second), "young")
		})
		same(t, found, map[string]Kind{"old": Unknown, "young": Missing})
	})
	t.Run("G7_A7_what_is_marked_under_a_former_identity_is_not_missing", func(t *testing.T) {
		m := markers{found: map[string]store.Outcome{"/old 1": store.Applied}, foundLate: map[string]store.Outcome{"/old 2": store.Applied}}
		found, counts := runComparison(t, m, &Comparison{}, func(c *Comparison) {
			var keys, formers []semel.Key
			for _, id := range []string{"1", "2", "3", "4"} {
				keys, formers = append(keys, semel.Key{Source: "/new ", ID: id}), append(formers, semel.Key{Source: "/old ", ID: id})
			}
			formers[3] = semel.Key{}
			if err := c.SentAs(t.Context(), keys, formers, make([]time.Time, 4)); err != nil {
				t.Fatal(err)
			}
		})
		same(t, found, map[string]Kind{"/new 3": Missing, "/new 4": Missing})
		if counts.Applied != 2 || counts.Sent != 4 {
			t.Errorf("%+v", counts)
		}
	})
	t.Run("G7_what_a_query_says_was_sent_is_looked_up_when_it_has_ended", func(t *testing.T) {
		m, ended := markers{found: map[string]store.Outcome{"a": store.Applied}}, false
		c := &Comparison{}
		found, counts := runComparison(t, m, c, func(c *Comparison) {
			inner := c.Marker
			c.Marker = func(ctx context.Context, k semel.Key) (admin.StoredMarker, bool, error) {
				if !ended {
					t.Error("the query still holds its connection")
				}
				return inner(ctx, k)
			}
			if err := c.SentBy(t.Context(), func(add func(id, source string) error) error {
				defer func() { ended = true }()
				return errors.Join(add("a", ""), add("b", ""), add("a", ""))
			}); err != nil {
				t.Fatal(err)
			}
		})
		same(t, found, map[string]Kind{"b": Missing})
		if counts.Sent != 2 || counts.Applied != 1 {
			t.Errorf("%+v", counts)
		}
	})
	t.Run("A2_ids_of_two_sources_are_two", func(t *testing.T) {
		m := markers{found: map[string]store.Outcome{"a/1": store.Applied, "b/1": store.Applied}}
		found, counts := runComparison(t, m, &Comparison{}, func(c *Comparison) {
			addSent(t, c, "a/", time.Time{}, "1")
			addSent(t, c, "b/", time.Time{}, "1")
			addEffects(t, c, "a/", "1", "1")
		})
		same(t, found, map[string]Kind{"a/1": Doubled, "b/1": WithoutEffect})
		if counts.Sent != 2 {
			t.Errorf("%+v", counts)
		}
	})
	t.Run("G7_a_store_that_does_not_answer_is_an_error_and_no_finding", func(t *testing.T) {
		m := markers{}
		c := &Comparison{Marker: m.marker}
		if err := c.Sent(t.Context(), []semel.Key{{ID: "1"}, {ID: "down"}}, make([]time.Time, 2)); !errors.Is(err, errDown) {
			t.Errorf("%v", err)
		}
	})
	t.Run("G7_ids_of_any_bytes_and_lengths", func(t *testing.T) {
		m := markers{found: map[string]store.Outcome{}}
		odd := []string{"\x00", "a\nb", "\xff\xfe", strings.Repeat("é", 500), " "}
		found, _ := runComparison(t, m, &Comparison{}, func(c *Comparison) { addSent(t, c, "\x01\x00", time.Time{}, odd...) })
		if len(found) != len(odd) {
			t.Errorf("%q", found)
		}
	})
}

func TestManyMessagesAreCompared(t *testing.T) {
	m := markers{found: map[string]store.Outcome{}}
	var ids []string
	for i := range 40_000 {
		ids = append(ids, fmt.Sprint("order-", i))
		if i%4000 != 7 {
			m.found[ids[i]] = store.Applied
		}
	}
	found, counts := runComparison(t, m, &Comparison{}, func(c *Comparison) {
		addSent(t, c, "", time.Time{}, ids...)
		c.WithEffects()
		for i, id := range ids {
			if i%4000 != 7 {
				addEffects(t, c, "", id)
			}
			if i%4000 == 9 {
				addEffects(t, c, "", id)
			}
		}
	})
	if counts.Missing != 10 || counts.Doubled != 10 || len(found) != 20 || counts.Applied != 39_980 {
		t.Errorf("%+v", counts)
	}
}

func TestAComparisonThatIsKilledLeavesNoFiles(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	s, err := newSpill()
	if err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(os.TempDir())
	if err != nil || len(left) > 0 && runtime.GOOS != "windows" {
		t.Errorf("the killed comparison would leave %v: %v", left, err)
	}
	if err := s.close(); err != nil {
		t.Error(err)
	}
}
