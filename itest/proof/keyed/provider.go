//go:build unix

package keyed

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/semel-go/semel/itest/worlds/processes"
)

// idHeader is the header with a message's id, in the file and in the call to the provider. memberHeader is
// the header with the name of the calling member.
const (
	idHeader     = "Message-Id"
	memberHeader = "Member"
)

// longestCall is the longest delay of the provider's answers. Answers are delayed so that some calls are
// running when a member is killed.
const longestCall = 100 * time.Millisecond

// call is a call that the provider received.
type call struct {
	at time.Time
	// member is the name of the calling process. key is the idempotency key of the call.
	member, key string
	// unanswered is set if the caller got no answer.
	unanswered bool
}

// provider is the HTTP endpoint that the members call. It records each call, and leaves a few calls without
// an answer.
type provider struct {
	url    string
	server *http.Server
	// mute is how many of a thousand calls get no answer.
	mute int

	mutex  sync.Mutex
	random *rand.Rand        // guarded by mutex
	calls  map[string][]call // by message id; guarded by mutex
}

// listen starts a provider.
func listen(mute int, seed uint64) (*provider, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &provider{url: fmt.Sprintf("http://%s/charge", l.Addr()), mute: mute, random: rand.New(rand.NewPCG(seed, 3)), calls: map[string][]call{}}
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: time.Minute}
	go func() { _ = p.server.Serve(l) }()
	return p, nil
}

func (p *provider) close() { _ = p.server.Close() }

// ServeHTTP records a call.
func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return // the call did not arrive completely
	}
	id := r.Header.Get(idHeader)
	p.mutex.Lock()
	silent, thinks := p.random.IntN(1000) < p.mute, time.Duration(p.random.Int64N(int64(longestCall)))
	n := len(p.calls[id])
	p.calls[id] = append(p.calls[id], call{at: time.Now(), member: r.Header.Get(memberHeader), key: r.Header.Get("Idempotency-Key"), unanswered: silent})
	p.mutex.Unlock()
	processes.Pause(r.Context(), thinks)
	if silent {
		panic(http.ErrAbortHandler)
	}
	_, err := io.WriteString(w, "charged")
	if err != nil || r.Context().Err() != nil {
		p.mutex.Lock()
		p.calls[id][n].unanswered = true
		p.mutex.Unlock()
	}
}

// called returns the number of messages for which the provider received a call.
func (p *provider) called() int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return len(p.calls)
}
