package inspect

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel/store"
)

// The SQL files of package sqlstore.
var statements = os.DirFS("../..")

// slowCount simulates a database that stops after 50 ms. The parameter aRow is the time that the database needs for
// each row.
func slowCount(ctx context.Context, aRow time.Duration, asked *[]int) func(int) error {
	return func(most int) error {
		*asked = append(*asked, most)
		takes := time.NewTimer(time.Duration(most) * aRow)
		defer takes.Stop()
		select {
		case <-takes.C:
			return nil
		case <-time.After(sampleRuns):
			return errors.New("canceling statement due to statement timeout")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func TestSamplesCountAsManyRowsAsTimeAllows(t *testing.T) {
	for _, c := range []struct {
		name  string
		aRow  time.Duration
		asked [3][]int // limits that the three samples requested
		fails bool
	}{
		{"trap_T81_K4_all_where_it_is_fast", time.Microsecond, [3][]int{{10_000}, {10_000}, {10_000}}, false},
		{"trap_T81_K4_fewer_where_it_is_slow_and_then_at_once", 10 * time.Microsecond, [3][]int{{10_000, 2_000}, {2_000}, {2_000}}, false},
		{"trap_T81_K4_few_where_it_is_very_slow", 100 * time.Microsecond, [3][]int{{10_000, 2_000, 400}, {400}, {400}}, false},
		{"trap_T81_K4_and_no_more_often_where_nothing_is_read_in_time", time.Millisecond, [3][]int{{10_000, 2_000, 400}, {400}, {400}}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &Store{}
				for n, want := range c.asked {
					var asked []int
					err := s.countWithLimit(t.Context(), store.StateReceived, slowCount(t.Context(), c.aRow, &asked))
					if !slices.Equal(asked, want) || (err != nil) != c.fails {
						t.Errorf("sample %d asked for %v, not %v: %v", n, asked, want, err)
					}
				}
			})
		})
	}
	t.Run("trap_T81_K4_it_counts_further_again_when_it_can", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s, asked := &Store{}, []int(nil)
			ask := func(aRow time.Duration) {
				if err := s.countWithLimit(t.Context(), store.StateParked, slowCount(t.Context(), aRow, &asked)); err != nil {
					t.Error(err)
				}
			}
			ask(100 * time.Microsecond)
			for range 3 * quickSamples {
				ask(time.Microsecond)
			}
			times := map[int]int{}
			for _, most := range asked {
				times[most]++
			}
			if times[400] != 2+quickSamples || times[2_000] != 2+quickSamples || times[10_000] != 1+quickSamples-2 {
				t.Errorf("the requested limits were %v", times)
			}
		})
	})
	t.Run("trap_T81_K4_and_not_when_one_of_those_before_took_long", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s, asked := &Store{}, []int(nil)
			ask := func(times int, aRow time.Duration) {
				for range times {
					if err := s.countWithLimit(t.Context(), store.StateParked, slowCount(t.Context(), aRow, &asked)); err != nil {
						t.Error(err)
					}
				}
			}
			ask(1, 100*time.Microsecond)
			ask(quickSamples, time.Microsecond)
			ask(1, 50*time.Microsecond) // counting is fast enough for this limit, but not for five times as many rows
			asked = nil
			ask(quickSamples+1, time.Microsecond)
			if slices.Max(asked) != 400 {
				t.Errorf("it asked for %v", asked)
			}
			if ask(1, time.Microsecond); asked[len(asked)-1] != 2_000 {
				t.Errorf("then it asked for %v", asked)
			}
		})
	})
	t.Run("trap_T81_K4_each_state_by_itself", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s, asked := &Store{}, []int(nil)
			for _, state := range []store.RowState{store.StateReceived, store.StateParked, store.StateReceived} {
				aRow := time.Microsecond
				if state == store.StateReceived {
					aRow = 100 * time.Microsecond
				}
				if err := s.countWithLimit(t.Context(), state, slowCount(t.Context(), aRow, &asked)); err != nil {
					t.Error(err)
				}
			}
			if want := []int{10_000, 2_000, 400, 10_000, 400}; !slices.Equal(asked, want) {
				t.Errorf("it asked for %v, not %v", asked, want)
			}
		})
	})
	t.Run("trap_T81_K4_the_number_stands_in_the_statements", func(t *testing.T) {
		for _, file := range []string{"postgres/sample.sql", "sqlite/sample.sql"} {
			if text, err := fs.ReadFile(statements, file); err != nil || strings.Count(string(text), fmt.Sprint("limit ", MostSampled+1)) != 1 {
				t.Errorf("%s: %v", file, err)
			}
		}
	})
	t.Run("trap_T81_K4_an_error_that_comes_at_once_is_not_asked_again", func(t *testing.T) {
		var asked []int
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := (&Store{}).countWithLimit(ctx, store.StateParked, slowCount(ctx, time.Second, &asked)); err == nil || len(asked) != 1 {
			t.Errorf("it asked for %v: %v", asked, err)
		}
	})
}
