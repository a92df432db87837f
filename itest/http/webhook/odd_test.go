package webhook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"testing"
	"time"
)

// sendRaw sends a body with the signature of a secret, and with an additional header that no signature
// covers.
func sendRaw(ctx context.Context, url string, body []byte, delivery string) (int, string) {
	h := hmac.New(sha256.New, []byte(secret))
	_, _ = h.Write(body)
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return 0, err.Error()
	}
	q.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(h.Sum(nil)))
	q.Header.Set(unsigned, delivery)
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		return 0, err.Error()
	}
	defer a.Body.Close()
	text, _ := io.ReadAll(a.Body)
	return a.StatusCode, string(text)
}

func TestWhatNoStoreKeepsAsText(t *testing.T) {
	for name, open := range stores {
		t.Run("F3_trap_76_odd_bodies_and_headers_have_an_answer_and_spoil_nobodys_batch/"+name, func(t *testing.T) {
			s := open(t)
			p := s.serve(t, 5*time.Second)
			for _, c := range []struct {
				what, body, delivery, want string
			}{
				{"a usual one", `{"id":"a"}`, "d", `{"result":"received"}`},
				{"an id with a NUL", `{"id":"a\u0000b"}`, "d", `{"result":"received"}`},
				{"an id that is no text", `{"id":"` + "\xff\xfe" + `"}`, "d", `{"result":"parked"}`},
				{"an id of half a letter", `{"id":"\ud800"}`, "d", `{"result":"parked"}`},
				{"an id of 10,000 bytes", `{"id":"` + string(bytes.Repeat([]byte("x"), 10_000)) + `"}`, "d", `{"result":"parked"}`},
				{"a header that is no text", `{"id":"c"}`, "\xff\xfe\x80", `{"result":"received"}`},
				{"a body that is no text", "\x00\xff\xfe", "d", `{"result":"parked"}`},
				{"an empty body", "", "d", `{"result":"parked"}`},
				{"a usual one at the end", `{"id":"e"}`, "d", `{"result":"received"}`},
			} {
				if status, text := sendRaw(t.Context(), p.server.URL, []byte(c.body), c.delivery); status != 200 || text != c.want+"\n" {
					t.Errorf("%s: %d %s", c.what, status, text)
				}
			}
			for _, id := range []string{"a", "c", "e"} {
				s.expectOnce(t, id)
			}
			p.end(t)
		})
	}
}
