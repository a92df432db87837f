package consumer_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/source"
)

// finite is a listSource that waits after its last message. The function atEnd reports whether the source waits after
// its last message.
type finite struct {
	*listSource
	atEnd func() bool
}

func (s *finite) Info() source.Info { return source.Info{AtEnd: s.atEnd} }

func TestUnfinishedWithMessagesOfANewerRelease(t *testing.T) {
	leaves := func(t *testing.T, unread ...semel.Unfinished) ([]semel.Unfinished, error) {
		t.Helper()
		store := memstore.New()
		ofNewer(t, store, "2", 9)
		source := newListSource(inLane("a", "1"), inLane("a", "2"), inLane("a", "3"), inLane("b", "2"))
		source.endless = true
		c := config(&idler{listSource: source, answers: []func() (bool, []semel.Unfinished, error){
			func() (bool, []semel.Unfinished, error) { return true, unread, nil },
		}})
		c.IdleExit = 2 * time.Second
		running := mustNew(t, store, add, c)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := running.Run(ctx)
		return running.Unfinished(), err
	}
	counts := func(all []semel.Unfinished) (n []int64) {
		for _, l := range all {
			n = append(n, l.Messages)
		}
		return n
	}
	bubble(t, "law_11_what_the_source_has_of_the_same_lane_is_added_and_nobody_knows_more_than_it", func(t *testing.T) {
		for _, c := range []struct {
			unread []int64
			want   int64
		}{{[]int64{5}, 7}, {[]int64{-1}, -1}, {[]int64{5, -1}, -1}, {[]int64{-1, 5}, -1}} {
			var unread []semel.Unfinished
			for _, n := range c.unread {
				unread = append(unread, semel.Unfinished{Lane: "a", Messages: n})
			}
			if left, _ := leaves(t, append(unread, semel.Unfinished{Lane: "c", Messages: 3})...); !slices.Equal(counts(left), []int64{c.want, 1, 3}) {
				t.Errorf("unread %v: %+v", c.unread, left)
			}
		}
	})
	bubble(t, "law_11_a_lane_with_a_copy_of_such_a_message_stands_still_too", func(t *testing.T) {
		left, err := leaves(t)
		if len(left) != 2 || left[1].Lane != "b" || !left[1].Fault || !errors.Is(err, semel.ErrUnfinished) || !strings.Contains(err.Error(), "b: copies of messages in other lanes") {
			t.Errorf("%+v, %v", left, err)
		}
	})
	bubble(t, "law_11_a_source_that_panics_when_it_is_asked_for_its_end_is_asked_again", func(t *testing.T) {
		store := memstore.New()
		ofNewer(t, store, "1", 9)
		source := newListSource(inLane("a", "1"))
		source.endless = true
		asked := 0
		running := mustNew(t, store, add, config(&finite{source, func() bool {
			if asked++; asked == 1 {
				panic("in a test")
			}
			return true
		}}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := running.Run(ctx); !errors.Is(err, semel.ErrUnfinished) || asked < 2 {
			t.Errorf("asked %d times: %v", asked, err)
		}
	})
}
