package httpkey

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/keystore"
)

// answer is the response that a client gets.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// The number of the format of a kept answer. The format is: the format number, the status, the headers sorted by name,
// the body. When the format changes, one release only reads the new format, and the next release also writes the new
// format.
const form = 1

// errNewer means that a newer release kept the answer in a format that this release does not know.
var errNewer = errors.New("httpkey: the answer is kept in a form of a newer release")

// errCut means that the kept bytes are not an answer.
var errCut = errors.New("httpkey: what is kept is no answer")

// encode encodes the answer with the allowed headers only. If the result is too large, encode returns
// ErrAnswerTooLarge.
func (a *answer) encode(allowed []string) ([]byte, error) {
	b := binary.AppendUvarint([]byte{form}, uint64(a.status))
	if b = append(appendHeaders(b, a.header, allowed), a.body...); len(b) > min(admin.MaxResult, keystore.MaxResult) {
		return nil, ErrAnswerTooLarge
	}
	return b, nil
}

func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// decodeAnswer decodes an answer that the method encode has encoded.
func decodeAnswer(b []byte) (*answer, error) {
	switch {
	case len(b) == 0:
		return nil, errCut
	case b[0] != form:
		return nil, fmt.Errorf("%w: %d", errNewer, b[0])
	}
	r := decoder{b[1:], nil}
	a := &answer{status: int(r.readNumber(999))}
	a.header = r.readHeaders()
	if a.body = r.rest; r.err != nil || a.status < 200 {
		return nil, errCut
	}
	return a, nil
}

// decoder is the part of a kept answer that is not decoded yet.
type decoder struct {
	rest []byte
	err  error
}

func (r *decoder) readNumber(most int) int {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 || n > uint64(most) {
		r.rest, r.err = nil, errCut
		return 0
	}
	r.rest = r.rest[size:]
	return int(n)
}

func (r *decoder) readText() string {
	n := r.readNumber(len(r.rest))
	if n > len(r.rest) { // after the number's own bytes
		r.rest, r.err = nil, errCut
		return ""
	}
	text := string(r.rest[:n])
	r.rest = r.rest[n:]
	return text
}

// ReplayedHeader is a header of repeated answers: an earlier request with the same key got the answer first. The value
// of the header is true.
const ReplayedHeader = "Idempotent-Replayed"

// send writes the answer. The client may have disconnected.
func (a *answer) send(w http.ResponseWriter, replayed bool) {
	header := w.Header()
	for name, values := range a.header {
		header[name] = slices.Clone(values)
	}
	if replayed {
		header.Set(ReplayedHeader, "true")
	}
	header.Del("Transfer-Encoding") // the server decides about this header, not the handler
	if allowsBody(a.status) {
		header.Set("Content-Length", strconv.Itoa(len(a.body)))
	}
	w.WriteHeader(a.status)
	if len(a.body) > 0 {
		_, _ = w.Write(a.body) // a client that does not get the answer repeats the request
	}
}

// allowsBody reports whether an answer of this status may have a body (RFC 9110, section 6.4.1).
func allowsBody(status int) bool {
	return status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified
}

// filterHeaders returns the answer with only the headers that the method encode would keep.
func (a *answer) filterHeaders(allowed []string) *answer {
	header := http.Header{}
	for _, name := range allowed {
		if values := a.header[name]; len(values) > 0 {
			header[name] = values
		}
	}
	return &answer{a.status, header, a.body}
}
