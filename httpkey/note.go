package httpkey

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/semel-go/semel/keystore"
)

// The number of the format of a stored request. The format is: the format number, method, host, URI, and headers and
// body in the format of a kept answer.
const noteForm = 1

// encodeNote encodes the request, so that a Completer can run it again.
func (q *request) encodeNote(headers []string) *problem {
	r := q.http
	uri := r.RequestURI
	if uri == "" { // the request did not come through a server
		uri = r.URL.RequestURI()
	}
	b := []byte{noteForm}
	for _, part := range []string{r.Method, r.Host, uri} {
		b = appendText(b, part)
	}
	q.note = append(appendHeaders(b, r.Header, headers), q.body...)
	if len(q.note) > keystore.MaxResult {
		return newProblem(http.StatusRequestEntityTooLarge, codeTooLarge, fmt.Sprintf("the request would have to be stored, but has more than %d bytes; nothing was done", keystore.MaxResult), 0)
	}
	return nil
}

// appendHeaders appends the headers with these names, in this order.
func appendHeaders(b []byte, header http.Header, names []string) []byte {
	count := 0
	for _, name := range names {
		count += len(header[name])
	}
	b = binary.AppendUvarint(b, uint64(count))
	for _, name := range names {
		for _, value := range header[name] {
			b = appendText(appendText(b, name), value)
		}
	}
	return b
}

// readHeaders reads the headers that appendHeaders wrote.
func (r *decoder) readHeaders() http.Header {
	header := http.Header{}
	for n := r.readNumber(len(r.rest)); n > 0 && r.err == nil; n-- {
		name, value := r.readText(), r.readText()
		header[name] = append(header[name], value)
	}
	return header
}

// decodeRequest decodes a stored request.
func decodeRequest(b []byte) (*http.Request, error) {
	if len(b) == 0 || b[0] != noteForm {
		return nil, fmt.Errorf("the stored request has a format that this release cannot read, or was erased")
	}
	r := decoder{b[1:], nil}
	method, host, uri := r.readText(), r.readText(), r.readText()
	header := r.readHeaders()
	if r.err != nil {
		return nil, fmt.Errorf("the stored request is damaged")
	}
	target, err := url.ParseRequestURI(uri) // parsed as in a server: //a/b is a path, not a host
	if err != nil {
		return nil, errors.New("the stored request is damaged: its URI cannot be parsed") // the URI may contain a secret
	}
	q, err := http.NewRequest(method, "/", bytes.NewReader(r.rest))
	if err != nil {
		return nil, fmt.Errorf("the stored request is damaged: %w", err)
	}
	q.URL = target
	q.Host, q.RequestURI, q.Header = host, uri, header
	return q, nil
}
