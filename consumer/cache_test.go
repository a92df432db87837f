package consumer_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/memstore"
)

func TestCachesDecideNothing(t *testing.T) {
	for _, op := range []string{"scope", "begin", "commit-before", "commit-after"} {
		t.Run("trap_T15_a_write_that_failed_once_rejects_nothing_for_ever/"+op, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				failures := 0
				store := memstore.New(memstore.Fail(func(asked string) error {
					if asked == op && failures == 0 {
						failures++
						return errors.New("once")
					}
					return nil
				}))
				source := newListSource(message("1", `{}`), message("1", `{}`), message("2", `{}`))
				counts, err := consume(t, store, add, config(source))
				if err != nil || failures != 1 {
					t.Fatalf("%v, %d failures", err, failures)
				}
				if counts.Applied != 2 || counts.Duplicates != 1 || effect(t, store, "1") != "1" || effect(t, store, "2") != "1" {
					t.Errorf("%+v, effects %s and %s", counts, effect(t, store, "1"), effect(t, store, "2"))
				}
			})
		})
	}
}

func TestFollowersOfAParkedMessageGoOn(t *testing.T) {
	t.Run("case_7_with_skip_followers_in_the_lane_go_on_and_keep_their_order", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			store := memstore.New()
			source := newListSource(message("1", `{}`), message("bad", `{}`), message("2", `{}`), message("3", `{}`))
			var order []string
			counts, err := consume(t, store, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
				if m.Identity.ID == "bad" {
					return semel.Park("look at it")
				}
				order = append(order, m.Identity.ID)
				return add(ctx, tx, m)
			}, config(source))
			if err != nil || counts.Applied != 3 || counts.Parked != 1 || len(source.settled) != 4 {
				t.Errorf("%+v, %v, settled %v", counts, err, source.settled)
			}
			// Message 1 runs twice, because the first run is rolled back together with the other message.
			if got, want := order, []string{"1", "1", "2", "3"}; !slices.Equal(got, want) {
				t.Errorf("ran %v, want %v", got, want)
			}
		})
	})
}
