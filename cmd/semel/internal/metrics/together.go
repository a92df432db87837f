package metrics

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// together has scrapes that come while one is answered share the next answer, so that any number of
// them costs a processor as much as two, and what makes answers never takes a second processor.
// Nobody is told what is older than his request: an answer that is being made is for nobody who
// comes now. promhttp's CoalesceGather tells that, and shares only what is gathered, of which the
// encoding costs as much again. Answers are packed here, too: promhttp does it so tightly that it
// takes a third of an answer's time.
type together struct {
	of     http.Handler
	turn   chan struct{} // holds one: an answer is being made
	packer *gzip.Writer  // of whose turn it is
	size   int           // of the last answer, as the packer is

	mutex sync.Mutex
	next  map[wish]*shared // which nobody has begun to make; guarded by mutex
}

func newTogether(of http.Handler) *together {
	packer, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic(err) // of a level that there is not
	}
	return &together{of: of, turn: make(chan struct{}, 1), packer: packer, next: map[wish]*shared{}}
}

// mostWishes is how many answers that differ wait to be made: who has access could ask for ever
// others. Scrapers ask for one or two.
const mostWishes = 16

// wish is what an answer depends on.
type wish struct {
	query, accept string
	packed        bool
}

// shared is an answer to all with one wish, and as a http.ResponseWriter keeps it. It is not
// changed once it is made.
type shared struct {
	made   chan struct{} // is closed when it is
	whole  bool          // nothing panicked
	status int           // 0: none was told, and it is 200
	header http.Header
	body   bytes.Buffer
}

// ServeHTTP implements http.Handler.
func (t *together) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	of := wish{r.URL.RawQuery, strings.Join(r.Header["Accept"], "\n"), unpacks(r)}
	t.mutex.Lock()
	a, there := t.next[of]
	if !there && len(t.next) < mostWishes {
		a = &shared{made: make(chan struct{}), header: http.Header{}}
		t.next[of] = a
	}
	t.mutex.Unlock()
	switch {
	case a == nil:
		w.Header().Set("Retry-After", "1")
		http.Error(w, "too many different requests for metrics wait; ask again", http.StatusServiceUnavailable)
		return
	case !there:
		t.make(of, a, r)
	}
	select {
	case <-a.made:
		a.write(w)
	case <-r.Context().Done(): // who asked has gone
	}
}

// make makes an answer when its turn has come, of what is so then.
func (t *together) make(of wish, a *shared, r *http.Request) {
	defer close(a.made)
	t.turn <- struct{}{}
	defer func() { <-t.turn }()
	t.mutex.Lock()
	delete(t.next, of)
	t.mutex.Unlock()
	a.body.Grow(t.size)
	t.of.ServeHTTP(a, r)
	t.size = a.body.Len()
	if a.header.Add("Vary", "Accept-Encoding"); of.packed {
		a.pack(t.packer)
	}
	a.whole = true
}

// unpacks reports whether who asks takes gzip.
func unpacks(r *http.Request) bool {
	for of := range strings.SplitSeq(strings.Join(r.Header["Accept-Encoding"], ","), ",") {
		name, quality, _ := strings.Cut(strings.ReplaceAll(of, " ", ""), ";")
		if strings.EqualFold(name, "gzip") && (quality == "" || strings.Trim(quality, "q=0.") != "") { // q=0.000 is no
			return true
		}
	}
	return false
}

func (a *shared) pack(packer *gzip.Writer) {
	var packed bytes.Buffer
	packer.Reset(&packed)
	_, _ = packer.Write(a.body.Bytes()) // no buffer refuses
	_ = packer.Close()
	a.body = packed
	a.header.Set("Content-Encoding", "gzip")
}

// write sends it, and no part of one that a panic of who made it left.
func (a *shared) write(w http.ResponseWriter) {
	if !a.whole {
		http.Error(w, "the metrics could not be read: another request for them panicked", http.StatusInternalServerError)
		return
	}
	maps.Copy(w.Header(), a.header)
	w.Header().Set("Content-Length", strconv.Itoa(a.body.Len()))
	w.WriteHeader(cmp.Or(a.status, http.StatusOK))
	_, _ = w.Write(a.body.Bytes())
}

// Header implements http.ResponseWriter.
func (a *shared) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *shared) WriteHeader(status int) { a.status = cmp.Or(a.status, status) }

// Write implements http.ResponseWriter.
func (a *shared) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(p)
}
