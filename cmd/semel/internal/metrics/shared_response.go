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

// responseSharing lets requests that arrive during a scrape share the next response. With responseSharing,
// any number of concurrent scrapes costs no more than two scrapes, and uses one processor. A response that is
// already being made is not shared, so a client never gets values that are older than its request.
//
// The option CoalesceGather of promhttp shares only the gathered values, although encoding costs as much as
// gathering, and does not have the guarantee about old values. responseSharing also compresses responses,
// because the compression level of promhttp takes a third of the time of a response.
type responseSharing struct {
	handler http.Handler
	turn    chan struct{} // has one element while a response is being made
	packer  *gzip.Writer  // used only by the goroutine that holds turn
	size    int           // length of the last response; used only by the goroutine that holds turn

	mutex sync.Mutex
	next  map[variant]*sharedResponse // waiting responses, not yet being made; guarded by mutex
}

func newResponseSharing(of http.Handler) *responseSharing {
	packer, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic(err) // cannot happen, because the compression level is valid
	}
	return &responseSharing{handler: of, turn: make(chan struct{}, 1), packer: packer, next: map[variant]*sharedResponse{}}
}

// maxVariants is the maximum number of waiting responses. Scrapers request one or two variants. Without a maximum, a
// client that may read the metrics could request more and more variants of the response, and each variant takes memory.
const maxVariants = 16

// variant has the parts of a request on which the response depends.
type variant struct {
	query, accept string
	compressed    bool
}

// sharedResponse is the response to all waiting requests of the same variant. The type implements
// http.ResponseWriter.
type sharedResponse struct {
	complete  chan struct{} // closed when the response is complete; no field changes after the close
	succeeded bool          // false if the handler panicked
	status    int           // 0 means 200
	header    http.Header
	body      bytes.Buffer
}

// ServeHTTP implements http.Handler.
func (t *responseSharing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	of := variant{r.URL.RawQuery, strings.Join(r.Header["Accept"], "\n"), acceptsGzip(r)}
	t.mutex.Lock()
	a, there := t.next[of]
	if !there && len(t.next) < maxVariants {
		a = &sharedResponse{complete: make(chan struct{}), header: http.Header{}}
		t.next[of] = a
	}
	t.mutex.Unlock()
	switch {
	case a == nil:
		w.Header().Set("Retry-After", "1")
		http.Error(w, "too many different requests for metrics wait; ask again", http.StatusServiceUnavailable)
		return
	case !there:
		t.build(of, a, r)
	}
	select {
	case <-a.complete:
		a.write(w)
	case <-r.Context().Done(): // the client has closed the connection
	}
}

// build waits until no other response is being made, and then makes the response from the current
// values.
func (t *responseSharing) build(of variant, a *sharedResponse, r *http.Request) {
	defer close(a.complete)
	t.turn <- struct{}{}
	defer func() { <-t.turn }()
	t.mutex.Lock()
	delete(t.next, of)
	t.mutex.Unlock()
	a.body.Grow(t.size)
	t.handler.ServeHTTP(a, r)
	t.size = a.body.Len()
	if a.header.Add("Vary", "Accept-Encoding"); of.compressed {
		a.pack(t.packer)
	}
	a.succeeded = true
}

// acceptsGzip reports whether the client accepts a response in gzip.
func acceptsGzip(r *http.Request) bool {
	for of := range strings.SplitSeq(strings.Join(r.Header["Accept-Encoding"], ","), ",") {
		name, quality, _ := strings.Cut(strings.ReplaceAll(of, " ", ""), ";")
		if strings.EqualFold(name, "gzip") && (quality == "" || strings.Trim(quality, "q=0.") != "") { // q=0.000 means that the client rejects gzip
			return true
		}
	}
	return false
}

func (a *sharedResponse) pack(packer *gzip.Writer) {
	var packed bytes.Buffer
	packer.Reset(&packed)
	_, _ = packer.Write(a.body.Bytes()) // writing to a bytes.Buffer cannot fail
	_ = packer.Close()
	a.body = packed
	a.header.Set("Content-Encoding", "gzip")
}

// write sends the response. If the handler panicked, write sends an error.
func (a *sharedResponse) write(w http.ResponseWriter) {
	if !a.succeeded {
		http.Error(w, "the metrics could not be read: another request for them panicked", http.StatusInternalServerError)
		return
	}
	maps.Copy(w.Header(), a.header)
	w.Header().Set("Content-Length", strconv.Itoa(a.body.Len()))
	w.WriteHeader(cmp.Or(a.status, http.StatusOK))
	_, _ = w.Write(a.body.Bytes())
}

// Header implements http.ResponseWriter.
func (a *sharedResponse) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *sharedResponse) WriteHeader(status int) { a.status = cmp.Or(a.status, status) }

// Write implements http.ResponseWriter.
func (a *sharedResponse) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(p)
}
