package runner

import (
	"sync"

	"github.com/semel-go/semel/store"
)

// mostAnswers is the maximum number of saved answers. Each worker has at most one answer that will be applied again.
// All further saved answers belong to lost claims. When the limit is reached, all saved answers are dropped.
const mostAnswers = 1024

// unapplied saves answers that could not be applied because of contention, or because the store was down. An answer
// belongs to one claim: under another claim, the call is made again. If there is no claim, an answer belongs to an
// identity and a fingerprint.
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

// take returns the answer that was saved for c and removes the answer.
func (a *unapplied[Of, Answer]) take(c Of) (answer Answer, kept bool) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	answer, kept = a.kept[c]
	delete(a.kept, c)
	return answer, kept
}

// has reports whether an answer was saved for c.
func (a *unapplied[Of, Answer]) has(c Of) bool {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	_, kept := a.kept[c]
	return kept
}

// opened contains the open transaction of a batch. Any goroutine may call the methods of opened, because any goroutine
// may call Kill.
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
