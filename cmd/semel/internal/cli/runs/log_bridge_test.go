package runs

import (
	"bytes"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestNothingOfAnAnswerIsInTheLog(t *testing.T) {
	t.Run("law_15_a_body_where_none_may_be", func(t *testing.T) {
		said := make(chan string, 10)
		redirectLog(slog.New(slog.NewJSONHandler(lineWriter(said), nil)))
		defer log.SetOutput(io.Discard)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				_, _ = io.WriteString(conn, "HTTP/1.1 204 No Content\r\n\r\nhunter2")
				defer func() { _ = conn.Close() }()
				_, _ = io.Copy(io.Discard, conn)
			}
		}))
		defer server.Close()
		response, err := server.Client().Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if line := <-said; strings.Contains(line, "hunter2") || !strings.Contains(line, "sent more than one answer") {
			t.Error(line)
		}
	})
}

// lineWriter sends each written line to a channel.
type lineWriter chan<- string

func (l lineWriter) Write(p []byte) (int, error) {
	l <- string(bytes.TrimSpace(p))
	return len(p), nil
}
