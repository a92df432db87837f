package groupcommit

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// heard records the calls of a Group.
type heard struct {
	mutex sync.Mutex
	all   [][]int
}

func (h *heard) call(ctx context.Context, all []int) ([]int, error) {
	h.mutex.Lock()
	h.all = append(h.all, slices.Clone(all))
	h.mutex.Unlock()
	select {
	case <-time.After(time.Second):
		return all, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func cancelled(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

func TestGroup(t *testing.T) {
	in := func(name string, f func(t *testing.T, h *heard, one *Group[int, int])) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &heard{}
				f(t, h, &Group[int, int]{call: h.call, shouldSplit: func(error) bool { return false }})
			})
		})
	}
	in("what_comes_while_one_is_under_way_is_carried_next_and_all_at_once", func(t *testing.T, h *heard, one *Group[int, int]) {
		var group sync.WaitGroup
		for i := range 600 {
			group.Go(func() {
				if out, err := one.Do(t.Context(), i); out != i || err != nil {
					t.Errorf("%d: %d, %v", i, out, err)
				}
			})
			synctest.Wait()
		}
		group.Wait()
		var lengths []int
		for _, all := range h.all {
			lengths = append(lengths, len(all))
		}
		if !slices.Equal(lengths, []int{1, 256, 256, 87}) || one.leading > 0 || len(one.waiting) > 0 {
			t.Errorf("%v", lengths)
		}
	})
	in("one_that_waits_no_longer_is_not_carried_and_whoever_is_behind_it_is", func(t *testing.T, h *heard, one *Group[int, int]) {
		var group sync.WaitGroup
		for i := range 3 {
			ctx := t.Context()
			if i == 1 { // this caller would lead the second call
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, time.Second/2)
				defer cancel()
			}
			group.Go(func() {
				if _, err := one.Do(ctx, i); (err != nil) != (i == 1) || err != nil && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%d: %v", i, err)
				}
			})
			synctest.Wait()
		}
		group.Wait()
		if len(h.all) != 2 || !slices.Equal(h.all[1], []int{2}) {
			t.Errorf("%v", h.all)
		}
	})
	in("one_whose_context_ends_as_it_is_to_lead_hands_over", func(t *testing.T, h *heard, one *Group[int, int]) {
		var group sync.WaitGroup
		for i := range 3 {
			ctx := t.Context()
			if i == 1 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, time.Second)
				defer cancel()
			}
			group.Go(func() { _, _ = one.Do(ctx, i) })
			synctest.Wait()
		}
		group.Wait()
		if one.leading > 0 || len(one.waiting) > 0 || len(h.all) < 2 || !slices.Contains(h.all[len(h.all)-1], 2) {
			t.Errorf("%v", h.all)
		}
	})
	in("with_a_pace_nobody_waits_long_for_what_is_under_way", func(t *testing.T, h *heard, one *Group[int, int]) {
		one.pace = &pace{}
		var group sync.WaitGroup
		began := time.Now()
		for i := range 2 {
			group.Go(func() {
				if out, err := one.Do(t.Context(), i); out != i || err != nil {
					t.Errorf("%d: %d, %v", i, out, err)
				}
			})
			synctest.Wait()
		}
		group.Wait()
		if took := time.Since(began); took != time.Second+leastWait || len(h.all) != 2 {
			t.Errorf("%v, %v", took, h.all)
		}
	})
	in("with_a_pace_as_many_as_fit_wait_for_nobody", func(t *testing.T, h *heard, one *Group[int, int]) {
		one.pace = limitedTo(2)
		var group sync.WaitGroup
		began := time.Now()
		for i := range 3 {
			group.Go(func() { _, _ = one.Do(t.Context(), i) })
			synctest.Wait()
		}
		group.Wait()
		if took := time.Since(began); took != time.Second || len(h.all) != 2 || len(h.all[1]) != 2 {
			t.Errorf("%v, %v", took, h.all)
		}
	})
	in("law_11_one_that_found_no_room_waits_no_longer_for_those_that_went_than_others_do", func(t *testing.T, h *heard, one *Group[int, int]) {
		one.pace = limitedTo(2)
		for i := range 2 { // the first caller was told to lead and has not left yet
			one.waiting = append(one.waiting, &caller[int, int]{in: i, lead: make(chan struct{}), done: make(chan struct{})})
		}
		one.notify()
		began := time.Now()
		var group sync.WaitGroup
		group.Go(func() {
			if _, err := one.Do(t.Context(), 2); err != nil || time.Since(began) >= 2*time.Second {
				t.Errorf("it took %v, %v", time.Since(began), err)
			}
		})
		<-time.After(leastWait + leastWait/2) // longer than a caller waits for the running call
		one.callAsLeader(t.Context())
		group.Wait()
		if len(h.all) != 2 || len(h.all[0]) != 2 {
			t.Errorf("%v", h.all)
		}
	})
	in("one_whose_context_has_ended_carries_nobody_with_it", func(t *testing.T, h *heard, one *Group[int, int]) {
		for range 64 { // a caller may first notice that it leads, or that its context has ended
			if _, err := one.Do(cancelled(t), 1); !errors.Is(err, context.Canceled) || one.notified || len(one.waiting) > 0 {
				t.Fatalf("%v, %+v", err, one)
			}
		}
		if len(h.all) > 0 {
			t.Errorf("%v", h.all)
		}
	})
	in("law_11_whoever_leaves_when_it_was_told_to_lead_has_the_next_lead", func(t *testing.T, h *heard, one *Group[int, int]) {
		first := &caller[int, int]{lead: make(chan struct{}), done: make(chan struct{})}
		one.waiting = append(one.waiting, first)
		one.notify()
		var group sync.WaitGroup
		group.Go(func() { _, _ = one.Do(t.Context(), 1) })
		synctest.Wait()
		one.leave(first)
		group.Wait()
		if len(h.all) != 1 {
			t.Errorf("%v", h.all)
		}
	})
	t.Run("law_7_one_that_the_store_refuses_keeps_no_other_from_being_done", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			refused := errors.New("a trigger refuses it")
			one := &Group[int, int]{shouldSplit: func(err error) bool { return err == refused }, call: func(_ context.Context, all []int) ([]int, error) {
				<-time.After(time.Second)
				if slices.Contains(all, 7) {
					return nil, refused
				}
				return all, nil
			}}
			var group sync.WaitGroup
			for i := range 20 {
				group.Go(func() {
					if out, err := one.Do(t.Context(), i); (err != nil) != (i == 7) || err == nil && out != i {
						t.Errorf("%d: %d, %v", i, out, err)
					}
				})
				synctest.Wait()
			}
			group.Wait()
		})
	})
}

// limitedTo returns a pace that lets n callers share the first calls.
func limitedTo(n int32) *pace {
	p := &pace{}
	p.limit.Store(n)
	return p
}
