package runner

import (
	"sync"

	"github.com/semel-go/semel/store"
)

// mostAnswers is how many answers are kept at most. Each worker has at most one that is to be applied
// again; the others belong to claims that were lost, and are dropped with the rest when the limit is
// reached.
const mostAnswers = 1024

// unapplied keeps answers that could not be applied because of contention, or because the store was
// down. An answer belongs to a claim, so that with another token the call is made again. If there is
// no claim, it belongs to an identity and its fingerprint.
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

// take returns the answer that is kept for c and removes it.
func (a *unapplied[Of, Answer]) take(c Of) (answer Answer, kept bool) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	answer, kept = a.kept[c]
	delete(a.kept, c)
	return answer, kept
}

// has reports whether an answer is kept for c.
func (a *unapplied[Of, Answer]) has(c Of) bool {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	_, kept := a.kept[c]
	return kept
}

// opened holds the open transaction of a flight. Any goroutine may call its methods, since Kill does.
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
