package runner

import (
	"sync"

	"github.com/semel-go/semel/store"
)

// mostAnswers is the maximum number of kept answers. Each worker has at most one answer that will be applied
// again. Other kept answers belong to lost claims. When the limit is reached, all kept answers are dropped.
const mostAnswers = 1024

// unapplied keeps answers that could not be applied because of contention, or because the store was down. An
// answer is kept for a claim, so after another claim the call is made again. If there is no claim, an answer
// is kept for an identity and a fingerprint.
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

// opened holds the open transaction of a batch. Any goroutine may call its methods, because any goroutine may
// call Kill.
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
