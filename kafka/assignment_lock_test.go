package kafka

import (
	"context"
	"testing"
	"testing/synctest"
)

func TestAnAssignmentWaitsForThePollUnderWayAndKeepsTheNextOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gate
		ctx, cancel := g.enter(t.Context())
		if ctx == nil {
			t.Fatal("no poll though nobody holds the gate")
		}
		defer cancel()
		held, entered := false, false
		go func() { g.hold(); held = true }()
		synctest.Wait()
		if ctx.Err() == nil || held {
			t.Errorf("the poll goes on: %v; the gate is held: %v", ctx.Err() == nil, held)
		}
		g.leave()
		synctest.Wait()
		if !held {
			t.Fatal("the gate is not held though the poll has ended")
		}
		go func() {
			ctx, cancel := g.enter(t.Context())
			entered = ctx != nil
			cancel()
			g.leave()
		}()
		synctest.Wait()
		if entered {
			t.Fatal("a poll began while the gate was held")
		}
		g.release()
		synctest.Wait()
		if !entered {
			t.Fatal("no poll after the gate was released")
		}
	})
}

func TestAPollThatWaitsForTheGateEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gate
		g.hold()
		ctx, cancel := context.WithCancel(t.Context())
		ended := false
		go func() {
			inner, _ := g.enter(ctx)
			ended = inner == nil
		}()
		synctest.Wait()
		cancel()
		synctest.Wait()
		if !ended {
			t.Error("it waits on")
		}
		g.release()
	})
}

func TestWhoIsRousedLooksOnce(t *testing.T) {
	var g gate
	g.rouse()
	if ctx, _ := g.enter(t.Context()); ctx != nil {
		t.Error("a poll began though there was work")
	}
	ctx, cancel := g.enter(t.Context())
	defer cancel()
	if ctx == nil {
		t.Fatal("roused twice by one call")
	}
	g.rouse()
	if ctx.Err() == nil {
		t.Error("a poll under way was not ended")
	}
	g.leave()
}
