package httpkey

import (
	"sync"

	"github.com/semel-go/semel"
)

// flights are the requests of this process whose keys it asks the store for: one of each
// key, whose copies wait in memory and take up no connection.
type flights struct {
	mutex sync.Mutex
	byID  map[string]*flight // guarded by mutex
}

// flight is a request under way.
type flight struct {
	fingerprint semel.Fingerprint
	done        chan struct{} // closed when outcome is set
	outcome     outcome       // set before done is closed
	late        chan struct{} // closed when its handler goes on after its time-out
}

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
	f.mutex.Unlock()
	close(is.done)
}
