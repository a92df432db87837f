package httpkey

import (
	"context"
	"sync"

	"github.com/semel-go/semel"
)

// flights are the requests for which this process asks the store: one for each key. Copies of a flight wait in
// memory and use no connection.
type flights struct {
	mutex sync.Mutex
	byID  map[string]*flight // guarded by mutex
	none  chan struct{}      // closed when there is no flight; nil if no goroutine waits for that; guarded by mutex
}

// flight is a request in progress.
type flight struct {
	fingerprint semel.Fingerprint
	done        chan struct{} // closed when outcome is set
	outcome     outcome       // set before done is closed
	late        chan struct{} // closed when its handler is still running after its timeout
	once        sync.Once     // closes late once: a handler whose claim was lost may run again
}

// tooLate answers the client without the handler.
func (f *flight) tooLate() { f.once.Do(func() { close(f.late) }) }

// join returns the flight of a key, and whether the flight is new. The caller must land a new flight.
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

// land ends a flight. The next request with its key asks the store.
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

// count returns the number of flights.
func (f *flights) count() int {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return len(f.byID)
}

// ended waits until there is no flight. ended returns false if ctx ends first.
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
