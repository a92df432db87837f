package metrics

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fakeRecorders replaces the flight recorders of a run, and counts the requests to write recordings.
type fakeRecorders struct {
	requestCount int
	err          error
}

func (r *fakeRecorders) write(string) ([]string, error) {
	r.requestCount++
	return []string{"billing.recording"}, r.err
}

// post sends a request that asks for flight recordings.
func post(s *Server, token string) (int, string) {
	r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1"+PathRecord, nil)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	s.server.Handler.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func TestRecordingsNeedAccess(t *testing.T) {
	const token = "0123456789abcdef"
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Run("trap_T79_a_token_is_whole_and_nothing_else", func(t *testing.T) {
		s := openServer(t, Options{TokenFile: file, Consumers: []string{"billing"}})
		for _, wrong := range []string{token + "0", token + token, token[:15], token[:1], " " + token, strings.ToUpper(token)} {
			if code, text := get(s, PathMetrics, func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+wrong) }); code != http.StatusUnauthorized {
				t.Errorf("with Authorization %q: %d %q", wrong, code, text)
			}
		}
	})
	t.Run("trap_T79_where_others_reach_it_and_there_is_no_token_nobody_has_access", func(t *testing.T) {
		s := openServer(t, Options{Consumers: []string{"billing"}, Record: (&fakeRecorders{}).write})
		s.Started(map[string]Consumer{"billing": &idleConsumer{notReady: "store: down"}})
		if code, text := get(s, PathMetrics); code != http.StatusUnauthorized || strings.Contains(text, "billing") {
			t.Errorf("metrics: %d %q", code, text)
		}
		if code, text := get(s, PathReady); code != http.StatusServiceUnavailable || text != "" {
			t.Errorf("reasons: %d %q", code, text)
		}
	})
	t.Run("trap_T79_a_recording_is_written_for_who_has_access", func(t *testing.T) {
		r := &fakeRecorders{}
		s := openServer(t, Options{TokenFile: file, Consumers: []string{"billing"}, Record: r.write})
		for _, wrong := range []string{"", token[:15], token + "0"} {
			if code, text := post(s, wrong); code != http.StatusUnauthorized || strings.Contains(text, "billing") || r.requestCount != 0 {
				t.Errorf("with %q: %d %q, written %d times", wrong, code, text, r.requestCount)
			}
		}
		if code, text := post(s, token); code != http.StatusOK || text != `{"files":["billing.recording"]}`+"\n" || r.requestCount != 1 {
			t.Errorf("with the token: %d %q, written %d times", code, text, r.requestCount)
		}
		r.err = errors.New("no space left")
		if code, text := post(s, token); code != http.StatusServiceUnavailable || !strings.Contains(text, "no space left") {
			t.Errorf("if writing fails: %d %q", code, text)
		}
		if code, _ := get(s, PathRecord, func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }); code != http.StatusMethodNotAllowed {
			t.Errorf("GET wrote a recording: %d", code)
		}
	})
}
