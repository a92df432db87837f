//go:build unix

package keyed

import (
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/semel-go/semel/itest/worlds/processes"
)

// The constant idHeader is the header with a message's id, in the file and in the call to the provider. The constant
// memberHeader is the header with the name of the calling member.
const (
	idHeader     = "Message-Id"
	memberHeader = "Member"
)

// The longest delay of the provider's answers. Answers are delayed so that some calls are running when a member is
// killed.
const longestCall = 100 * time.Millisecond

// call is a call that the provider received.
type call struct {
	at time.Time
	// The field member is the name of the calling process. The field key is the idempotency key of the call.
	member, key string
	// noAnswer is true if the caller got no answer.
	noAnswer bool
}

// provider is the HTTP endpoint that the members call. The provider records each call, and leaves a few calls without
// an answer.
type provider struct {
	// The number of calls in a thousand that get no answer.
	mute int

	mutex  sync.Mutex
	random *rand.Rand        // guarded by mutex
	calls  map[string][]call // by message id; guarded by mutex
}

// ServeHTTP records a call.
func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return // the call did not arrive completely
	}
	id := r.Header.Get(idHeader)
	p.mutex.Lock()
	silent, thinks := p.random.IntN(1000) < p.mute, time.Duration(p.random.Int64N(int64(longestCall)))
	n := len(p.calls[id])
	p.calls[id] = append(p.calls[id], call{at: time.Now(), member: r.Header.Get(memberHeader), key: r.Header.Get("Idempotency-Key"), noAnswer: silent})
	p.mutex.Unlock()
	processes.Pause(r.Context(), thinks)
	if silent {
		panic(http.ErrAbortHandler)
	}
	_, err := io.WriteString(w, "charged")
	if err != nil || r.Context().Err() != nil {
		p.mutex.Lock()
		p.calls[id][n].noAnswer = true
		p.mutex.Unlock()
	}
}

// countCalled returns the number of messages for which the provider received at least one call.
func (p *provider) countCalled() int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return len(p.calls)
}
