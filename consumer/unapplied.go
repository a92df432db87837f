package consumer

import (
	"sync"

	"github.com/semel-go/semel/contract"
)

// mostAnswers is how many answers are kept at most: one a worker waits to be applied
// again, and what a claim left behind that was lost meanwhile goes when there are more.
const mostAnswers = 1024

// unapplied are answers that were not applied yet because of contention, or of a store that
// was down. They belong to a claim: with another token the call is made again.
type unapplied[Answer any] struct {
	mutex sync.Mutex
	kept  map[contract.Claim]Answer // guarded by mutex
}

func (a *unapplied[Answer]) keep(c contract.Claim, answer Answer) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if len(a.kept) >= mostAnswers || a.kept == nil {
		a.kept = map[contract.Claim]Answer{}
	}
	a.kept[c] = answer
}

// take returns the answer of a claim, once.
func (a *unapplied[Answer]) take(c contract.Claim) (answer Answer, kept bool) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	answer, kept = a.kept[c]
	delete(a.kept, c)
	return answer, kept
}

// has reports whether there is an answer of a claim.
func (a *unapplied[Answer]) has(c contract.Claim) bool {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	_, kept := a.kept[c]
	return kept
}

// opened is the transaction of a flight, which Kill cuts from any goroutine.
type opened[Tx any] struct {
	mutex sync.Mutex
	batch contract.Batch[Tx] // guarded by mutex
}

func (o *opened[Tx]) set(b contract.Batch[Tx]) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.batch = b
}

func (o *opened[Tx]) get() contract.Batch[Tx] {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.batch
}
