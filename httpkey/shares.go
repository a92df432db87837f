package httpkey

import (
	"container/list"
	"context"
	"sync"
	"time"
)

// shares divides a limited number of units (running handlers, or bytes of bodies) among callers. One caller gets at
// most as many units as the field each says, and all callers together at most as many as the field most says. If no
// unit is free, a request waits. Waiting callers are served in turn, so that a caller with many waiting requests does
// not delay other callers.
type shares struct {
	most, each int64

	mutex   sync.Mutex
	taken   int64              // guarded by mutex
	callers map[string]*sharer // callers that have units or wait for units; guarded by mutex
	inTurn  list.List          // of *sharer: callers with waiting requests; guarded by mutex
}

// waiter is a request that waits for units.
type waiter struct {
	units    int64
	granted  chan struct{} // closed when the request gets its units
	hasUnits bool          // guarded by the mutex of its shares
}

// sharer is a caller.
type sharer struct {
	name  string
	taken int64
	queue list.List     // of *waiter
	turn  *list.Element // in shares.inTurn; nil if none of its requests waits
}

// shortage is the reason why a request did not get the units that it needs.
type shortage uint8

const (
	enough     shortage = iota
	lackAll             // all units are taken
	lackCaller          // the caller has as many units as one caller may have
)

// The time for which a request waits for units.
const placeTime = time.Second

// take gives a caller n units (running handlers or bytes), where n is the parameter units. If too few units are free,
// take waits at most placeTime, or until ctx ends.
func (s *shares) take(ctx context.Context, caller string, units int64) shortage {
	s.mutex.Lock()
	of := s.lookupCaller(caller)
	if s.inTurn.Len() == 0 && of.taken+units <= s.each && s.taken+units <= s.most {
		s.taken, of.taken = s.taken+units, of.taken+units
		s.mutex.Unlock()
		return enough
	}
	w := &waiter{units: units, granted: make(chan struct{})}
	at := of.queue.PushBack(w)
	if of.turn == nil {
		of.turn = s.inTurn.PushBack(of)
	}
	s.serve()
	had := w.hasUnits
	s.mutex.Unlock()
	if had {
		return enough
	}
	timer := time.NewTimer(placeTime)
	defer timer.Stop()
	select {
	case <-w.granted:
		return enough
	case <-timer.C:
	case <-ctx.Done():
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if w.hasUnits { // the units were given at the same moment
		return enough
	}
	why := lackCaller
	if s.taken+units > s.most {
		why = lackAll
	}
	of.queue.Remove(at)
	s.leave(of)
	s.serve() // a smaller request may have waited behind this request
	return why
}

// The method free releases units of a caller.
func (s *shares) free(caller string, units int64) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	of := s.lookupCaller(caller)
	s.taken, of.taken = s.taken-units, of.taken-units
	s.leave(of)
	s.serve()
}

// lookupCaller returns the caller with a given name. The mutex is held.
func (s *shares) lookupCaller(name string) *sharer {
	of := s.callers[name]
	if of == nil {
		if s.callers == nil {
			s.callers = map[string]*sharer{}
		}
		of = &sharer{name: name}
		s.callers[name] = of
	}
	return of
}

// leave removes a caller from inTurn if none of the caller's requests waits. If the caller also has no units, leave
// removes the caller from callers. The mutex is held.
func (s *shares) leave(of *sharer) {
	if of.queue.Len() > 0 {
		return
	}
	if of.turn != nil {
		s.inTurn.Remove(of.turn)
		of.turn = nil
	}
	if of.taken == 0 {
		delete(s.callers, of.name)
	}
}

// serve gives units to waiting requests, one request of each caller in turn. If too few units are free for a request,
// serve gives no units to later requests. If serve went on, smaller requests could overtake a large request forever.
// The mutex is held.
func (s *shares) serve() {
	for at := s.inTurn.Front(); at != nil; {
		of, next := at.Value.(*sharer), at.Next()
		first := of.queue.Front()
		w := first.Value.(*waiter)
		switch {
		case of.taken+w.units > s.each:
		case s.taken+w.units > s.most:
			return
		default:
			s.taken, of.taken, w.hasUnits = s.taken+w.units, of.taken+w.units, true
			close(w.granted)
			of.queue.Remove(first)
			if s.leave(of); of.turn != nil {
				s.inTurn.MoveToBack(at)
				if next == nil {
					next = at
				}
			}
		}
		at = next
	}
}

// unitsInUse returns the number of units in use.
func (s *shares) unitsInUse() int64 {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.taken
}
