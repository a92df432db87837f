package runner

import (
	"sync"

	"github.com/semel-go/semel/store"
)

// mostAnswers is how many answers are kept at most: one a worker waits to be applied
// again, and what a claim left behind that was lost meanwhile goes when there are more.
const mostAnswers = 1024

// unapplied are answers that were not applied yet because of contention, or of a store that
// was down. They belong to a claim: with another token the call is made again; or, without
// one, to an identity and its content.
type unapplied[Of comparable, Answer any] struct {
	mutex sync.Mutex
	kept  map[Of]Answer // guarded by mutex
}

func (a *unapplied[Of, Answer]) keep(c Of, answer Answer) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if len(a.kept) >= mostAnswers || a.kept == nil {
		a.kept = map[Of]Answer{}
	}
	a.kept[c] = answer
}

// take returns the answer of one, once.
func (a *unapplied[Of, Answer]) take(c Of) (answer Answer, kept bool) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	answer, kept = a.kept[c]
	delete(a.kept, c)
	return answer, kept
}

// has reports whether there is an answer of one.
func (a *unapplied[Of, Answer]) has(c Of) bool {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	_, kept := a.kept[c]
	return kept
}

// opened is the transaction of a flight, which Kill cuts from any goroutine.
type opened[Tx any] struct {
	mutex sync.Mutex
	batch store.Batch[Tx] // guarded by mutex
}

func (o *opened[Tx]) set(b store.Batch[Tx]) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.batch = b
}

func (o *opened[Tx]) get() store.Batch[Tx] {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.batch
}
