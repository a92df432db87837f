package httphandler

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/semel-go/semel"
)

// answersTwice responds to each request with status 503 and a second response in the same packet.
func answersTwice(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	conn, buffer, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	const twice = "HTTP/1.1 503 Away\r\nContent-Length: 0\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
	for {
		if _, err := io.WriteString(conn, twice); err != nil {
			return
		}
		next, err := http.ReadRequest(bufio.NewReader(buffer))
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, next.Body)
	}
}

func TestAnEndpointThatAnswersTwice(t *testing.T) {
	t.Run("law_1_its_second_answer_is_no_other_messages", func(t *testing.T) {
		h := newEndpoint(t, answersTwice).handler(t)
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range 1000 {
					err := h.Handle(t.Context(), message())
					if d, text := decisionOf(t, err); d.Decision != semel.DecideUnknown || !strings.Contains(text, "503") {
						t.Errorf("every first response is 503, but the result is %v: %q", d.Decision, text)
					}
				}
			})
		}
		all.Wait()
	})
}
