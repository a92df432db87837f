package httpkey

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
)

// ErrAnswerTooLarge is the error of Write if an answer has more bytes than Config.MaxAnswer. The client gets
// 500. With New, the effect is rolled back.
var ErrAnswerTooLarge = errors.New("semel: the answer is larger than what is kept; answer with a link to it")

// ErrHeldBack is the error of Flush. An answer is kept before it is sent, so a handler cannot flush its answer.
var ErrHeldBack = errors.New("semel: an answer under an idempotency key is held back until it is kept, so nothing of it can be flushed")

// recorder records a handler's answer. A goroutine that the handler has started may write to the recorder
// after the handler has returned.
type recorder struct {
	header http.Header
	most   int

	mutex  sync.Mutex
	answer answer // guarded by mutex until ended
	large  bool   // guarded by mutex until ended
	ended  bool   // guarded by mutex; the handler has returned, and the answer no longer changes
}

func newRecorder(most int) *recorder { return &recorder{header: http.Header{}, most: most} }

// Header implements http.ResponseWriter.
func (r *recorder) Header() http.Header { return r.header }

// WriteHeader implements http.ResponseWriter. Statuses below 200 are not sent, because a repeated request could not get
// them.
func (r *recorder) WriteHeader(status int) {
	if status < 100 || status > 999 {
		panic(fmt.Sprintf("httpkey: invalid status %d", status)) // as net/http does
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.begin(status)
}

// begin sets the status, if no status was set before. The caller holds the mutex.
func (r *recorder) begin(status int) {
	if r.ended || r.answer.status != 0 || status < 200 {
		return
	}
	r.answer.status, r.answer.header = status, r.header.Clone()
}

// Write implements http.ResponseWriter.
func (r *recorder) Write(b []byte) (int, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.begin(http.StatusOK); r.ended {
		return 0, errWrittenLate
	}
	switch {
	case !allowsBody(r.answer.status):
		return 0, http.ErrBodyNotAllowed
	case r.large || len(r.answer.body)+len(b) > r.most:
		r.large, r.answer.body = true, nil
		return 0, ErrAnswerTooLarge
	}
	if r.answer.header["Content-Type"] == nil && len(r.answer.body) == 0 && r.answer.header["Content-Encoding"] == nil {
		r.answer.header.Set("Content-Type", http.DetectContentType(b))
	}
	r.answer.body = append(r.answer.body, b...)
	return len(b), nil
}

// FlushError is called by http.ResponseController.
func (r *recorder) FlushError() error { return ErrHeldBack }

// errWrittenLate is returned by Write after the handler has returned.
var errWrittenLate = errors.New("httpkey: the handler has returned, and its answer may be kept already")

// closeWrites makes later writes fail. Without closeWrites, the sent answer could contain bytes that the kept answer
// does not contain. The result is true if the handler has written anything.
func (r *recorder) closeWrites() (begun bool) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	begun = r.answer.status != 0
	r.begin(http.StatusOK)
	r.ended = true
	return begun
}
