package groupcommit

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestPace(t *testing.T) {
	learned := func(rounds int, takes func(n int) time.Duration) *pace {
		p := &pace{}
		for i := range rounds {
			n := 1
			if i%2 == 0 {
				n = p.maxCallers()
			}
			p.recordCall(n, takes(n))
		}
		return p
	}
	t.Run("many_share_what_costs_little_each", func(t *testing.T) {
		p := learned(200, func(n int) time.Duration { return time.Millisecond + time.Duration(n)*50*time.Microsecond })
		if n := p.maxCallers(); n < 100 || n > 250 { // maxSharedDelay is enough for 200 callers
			t.Errorf("%d share a call", n)
		}
	})
	t.Run("what_takes_long_by_itself_goes_by_itself_and_two_are_let_try_again", func(t *testing.T) {
		p := learned(40, func(n int) time.Duration { return time.Millisecond + time.Duration(n)*20*time.Millisecond })
		if n := p.maxCallers(); n != 1 {
			t.Fatalf("%d share a call", n)
		}
		for range retryAfterCalls {
			p.recordCall(1, 21*time.Millisecond)
			if p.maxCallers() == 2 {
				return
			}
		}
		t.Error("a shared call is never tried again")
	})
	t.Run("one_that_took_very_long_says_no_more_than_another", func(t *testing.T) {
		p := learned(200, func(n int) time.Duration { return time.Millisecond + time.Duration(n)*50*time.Microsecond })
		before := p.maxCallers()
		if p.recordCall(2, time.Hour); p.maxCallers() < before*9/10 {
			t.Errorf("%d share a call after one that waited, %d before", p.maxCallers(), before)
		}
	})
	t.Run("what_was_learned_on_new_connections_is_soon_forgotten", func(t *testing.T) {
		p := &pace{}
		for range 8 {
			p.recordCall(1, 80*time.Millisecond)
			p.recordCall(p.maxCallers(), 200*time.Millisecond)
		}
		if n := p.maxCallers(); n != 1 {
			t.Fatalf("%d share a call that takes so much longer", n)
		}
		calls := 0
		for ; p.maxCallers() < 8 && calls < 1000; calls++ {
			n := p.maxCallers()
			p.recordCall(n, 8*time.Millisecond+time.Duration(n)*time.Millisecond)
		}
		if calls > 15*retryAfterCalls {
			t.Errorf("it took %d calls to learn that 8 may share one", calls)
		}
	})
	t.Run("where_the_first_met_a_lock_nobody_waits_long_for_what_is_under_way", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := &pace{}
			p.recordCall(1, 20*time.Second)
			began := time.Now()
			over, stop := p.patience()
			defer stop()
			if <-over; time.Since(began) > mostWait {
				t.Errorf("one waits for %v", time.Since(began))
			}
			if p.recordCall(2, 22*time.Millisecond); p.maxCallers() > 4 {
				t.Errorf("%d share a call before the duration of a call is known", p.maxCallers())
			}
		})
	})
}
