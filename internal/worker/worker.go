// Package worker is the only package that starts goroutines. Every goroutine has an owner. The owner waits
// for its Group before the owner returns.
package worker

import (
	"sync"
	"time"
)

// Group owns goroutines. The zero value is ready for use.
type Group struct{ running sync.WaitGroup }

// Go runs f in a goroutine of the group.
func (g *Group) Go(f func()) { g.running.Go(f) }

// Keep runs f in a goroutine of the group. If a called function ends the goroutine (runtime.Goexit), f runs
// again in a new goroutine.
func (g *Group) Keep(f func()) {
	g.running.Go(func() {
		returned := false
		defer func() {
			if !returned {
				g.Keep(f)
			}
		}()
		f()
		returned = true
	})
}

// Wait returns when every goroutine has ended.
func (g *Group) Wait() { g.running.Wait() }

// WaitFor waits at most d and reports whether every goroutine has ended. If goroutines still run, WaitFor
// leaves a helper goroutine, which ends after them.
func (g *Group) WaitFor(d time.Duration) bool {
	ended := make(chan struct{})
	go func() {
		g.running.Wait()
		close(ended)
	}()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ended:
		return true
	case <-timer.C:
		return false
	}
}
