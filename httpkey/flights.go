package httpkey

import (
	"context"
	"sync"

	"github.com/semel-go/semel"
)

// flights are the requests of this process whose keys it asks the store for: one of each
// key, whose copies wait in memory and take up no connection.
type flights struct {
	mutex sync.Mutex
	byID  map[string]*flight // guarded by mutex
	none  chan struct{}      // closed when there are none; nil if nobody waits for that; guarded by mutex
}

// flight is a request under way.
type flight struct {
	fingerprint semel.Fingerprint
	done        chan struct{} // closed when outcome is set
	outcome     outcome       // set before done is closed
	late        chan struct{} // closed when its handler goes on after its time-out
	once        sync.Once     // of that: a handler whose claim was lost may run again
}

// tooLate has the client answered without the handler.
func (f *flight) tooLate() { f.once.Do(func() { close(f.late) }) }

// join returns the flight of a key, and whether it is a new one, which must land.
func (f *flights) join(id string, print semel.Fingerprint) (_ *flight, first bool) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if is := f.byID[id]; is != nil {
		return is, false
	}
	if f.byID == nil {
		f.byID = map[string]*flight{}
	}
	is := &flight{fingerprint: print, done: make(chan struct{}), late: make(chan struct{})}
	f.byID[id] = is
	return is, true
}

// land ends a flight: who comes next asks the store.
func (f *flights) land(id string, is *flight) {
	f.mutex.Lock()
	delete(f.byID, id)
	if len(f.byID) == 0 && f.none != nil {
		close(f.none)
		f.none = nil
	}
	f.mutex.Unlock()
	close(is.done)
}

// count is how many there are.
func (f *flights) count() int {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return len(f.byID)
}

// ended waits until there are none, and reports whether that came about before ctx ended.
func (f *flights) ended(ctx context.Context) bool {
	f.mutex.Lock()
	if len(f.byID) == 0 {
		f.mutex.Unlock()
		return true
	}
	if f.none == nil {
		f.none = make(chan struct{})
	}
	none := f.none
	f.mutex.Unlock()
	select {
	case <-none:
		return true
	case <-ctx.Done():
		return false
	}
}
