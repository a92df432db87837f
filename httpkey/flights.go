package httpkey

import (
	"context"
	"sync"

	"github.com/semel-go/semel"
)

// flights contains the requests for which this process uses the store, at most one request for each key. Further
// requests with the same key wait in memory and use no connection.
type flights struct {
	mutex sync.Mutex
	byID  map[string]*flight // guarded by mutex
	none  chan struct{}      // closed when no request is in progress; nil if no goroutine waits for that; guarded by mutex
}

// flight is a request that this process is answering.
type flight struct {
	fingerprint semel.Fingerprint
	done        chan struct{} // closed when outcome is set
	outcome     outcome       // set before done is closed
	late        chan struct{} // closed when the handler still runs after its timeout
	once        sync.Once     // closes late once, because a handler whose claim was lost may run again
}

// tooLate makes the client get an answer before the handler has returned.
func (f *flight) tooLate() { f.once.Do(func() { close(f.late) }) }

// join returns the request in progress with this key, and whether that request is new. After a new request has ended,
// the caller must call complete.
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

// complete ends a request. After complete, the next request with the same key uses the store again.
func (f *flights) complete(id string, is *flight) {
	f.mutex.Lock()
	delete(f.byID, id)
	if len(f.byID) == 0 && f.none != nil {
		close(f.none)
		f.none = nil
	}
	f.mutex.Unlock()
	close(is.done)
}

// count returns the number of requests in progress.
func (f *flights) count() int {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return len(f.byID)
}

// waitIdle waits until no request is in progress. If ctx ends first, waitIdle returns false.
func (f *flights) waitIdle(ctx context.Context) bool {
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
