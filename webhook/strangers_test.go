package webhook_test

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel/internal/worker"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/webhook"
)

// trackedBody is a request body that records whether it was read.
type trackedBody struct {
	io.Reader
	read bool
}

func (u *trackedBody) Read(b []byte) (int, error) {
	u.read = true
	return u.Reader.Read(b)
}

func TestABodyIsNotReadIfTheSignatureHeadersAreWrong(t *testing.T) {
	const hex64 = "5257a869e7ecebeda32affa62cdca3fa51cad7e77a0e56ff536d0ce8e108d8bd"
	header := func(format string, args ...any) map[string]string {
		return map[string]string{"Stripe-Signature": fmt.Sprintf(format, args...)}
	}
	standard := func(at time.Duration, signature string) map[string]string {
		return map[string]string{"Webhook-Id": "msg_1", "Webhook-Timestamp": fmt.Sprint(time.Now().Add(at).Unix()), "Webhook-Signature": signature}
	}
	at := func(d time.Duration) int64 { return time.Now().Add(d).Unix() }
	sum := base64.StdEncoding.EncodeToString(make([]byte, 32))
	bubble(t, "F3_by_its_time_or_by_signatures_that_no_secret_makes", func(t *testing.T) {
		for name, c := range map[string]struct {
			scheme webhook.Scheme
			secret string
			header map[string]string
			fate   webhook.Fate
		}{
			"too old":                       {webhook.Stripe(), stripeSecret, header("t=%d,v1=%s", at(-6*time.Minute), hex64), webhook.Old},
			"too early":                     {webhook.Stripe(), stripeSecret, header("t=%d,v1=%s", at(6*time.Minute), hex64), webhook.Old},
			"without a signature":           {webhook.Stripe(), stripeSecret, header("t=%d", at(0)), webhook.Malformed},
			"with a signature that is cut":  {webhook.Stripe(), stripeSecret, header("t=%d,v1=%s", at(0), hex64[:62]), webhook.Malformed},
			"with one that cannot be read":  {webhook.Stripe(), stripeSecret, header("t=%d,v1=nothing", at(0)), webhook.Malformed},
			"too old, of standard webhooks": {webhook.StandardWebhooks(), standardSecret, standard(-6*time.Minute, "v1,"+sum), webhook.Old},
			"of another version":            {webhook.StandardWebhooks(), standardSecret, standard(0, "v2,"+sum), webhook.Malformed},
			"cut, of github":                {webhook.GitHub(), githubSecret, map[string]string{"X-Hub-Signature-256": githubSignature[:60]}, webhook.Malformed},
		} {
			r := receiver(t, func(to *webhook.Config) { to.Scheme, to.Secrets = c.scheme, []string{c.secret} })
			q := httptest.NewRequest(http.MethodPost, "/hooks", nil)
			body := &trackedBody{Reader: strings.NewReader(event("evt_1"))}
			q.Body, q.ContentLength = io.NopCloser(body), -1
			for name, value := range c.header {
				q.Header.Set(name, value)
			}
			if w := post(r, q); w.Code != 401 || r.Count(c.fate) != 1 || body.read {
				t.Errorf("a request %s: %d %s, its body was read: %t", name, w.Code, w.Body, body.read)
			}
		}
	})
}

// newOpenRequest returns a request of the given client address, with a body that ends when the function end is
// called.
func newOpenRequest(address string) (q *http.Request, end func()) {
	reader, writer := io.Pipe()
	q = paidRequest("")
	q.Body, q.ContentLength, q.RemoteAddr = reader, -1, address
	return q, func() { _ = writer.CloseWithError(io.ErrUnexpectedEOF) }
}

func TestOneAddressGetsOnlyAShareOfTheMemory(t *testing.T) {
	for name, c := range map[string]struct {
		address func(i int) string
		refused int
	}{
		"F3_a_client":                        {func(i int) string { return fmt.Sprint("192.0.2.1:", i) }, 750},
		"F3_a_network_of_IPv6":               {func(i int) string { return fmt.Sprintf("[2001:db8::%x]:1", i) }, 750},
		"F3_a_proxy_on_this_host_is_none":    {func(i int) string { return fmt.Sprint("127.0.0.1:", i) }, 0},
		"F3_many_clients_have_all_of_it":     {func(i int) string { return fmt.Sprintf("192.0.2.%d:1", i%4) }, 0},
		"F3_what_is_no_address_is_one_of_it": {func(int) string { return "@" }, 750},
	} {
		bubble(t, name, func(t *testing.T) {
			r := receiver(t, nil)
			running := startConsumer(t, memstore.New(), r, nil)
			var clients worker.Group
			var ends []func()
			for i := range 1000 {
				q, end := newOpenRequest(c.address(i))
				ends = append(ends, end)
				clients.Go(func() {
					if w := post(r, q); w.Code == 429 && (w.Header().Get("Retry-After") == "" || w.Header().Get("Connection") != "close") {
						t.Errorf("%v", w.Header())
					}
				})
			}
			synctest.Wait()
			if n := int(r.Count(webhook.Crowded)); n != c.refused {
				t.Errorf("%d were refused, want %d", n, c.refused)
			}
			q := paidRequest(event("evt_1"))
			q.RemoteAddr = "198.51.100.7:1"
			if w := post(r, q); w.Code != 200 {
				t.Errorf("another client gets %d %s", w.Code, w.Body)
			}
			for _, end := range ends {
				end()
			}
			clients.Wait()
			q = paidRequest(event("evt_2"))
			q.RemoteAddr = c.address(0)
			if w := post(r, q); w.Code != 200 {
				t.Errorf("afterwards it gets %d %s", w.Code, w.Body)
			}
			running.end(t)
		})
	}
	bubble(t, "F3_and_of_the_bytes", func(t *testing.T) {
		r := receiver(t, func(c *webhook.Config) { c.MaxBody, c.InHand.Bytes = 100_000, 400_000 })
		running := startConsumer(t, memstore.New(), r, nil)
		var clients worker.Group
		reader, writer := io.Pipe()
		first := paidRequest("")
		first.Body, first.ContentLength = reader, -1
		clients.Go(func() { post(r, first) })
		_, _ = writer.Write(make([]byte, 60_000))
		synctest.Wait() // Write returns before the bytes are counted
		long := event(strings.Repeat("x", 60_000))
		if w := post(r, paidRequest(long)); w.Code != 429 || r.Count(webhook.Crowded) != 1 {
			t.Errorf("a second one of the same address: %d %s", w.Code, w.Body)
		}
		other := paidRequest(long)
		other.RemoteAddr = "198.51.100.7:1"
		if w := post(r, other); w.Code != 200 {
			t.Errorf("one of another address: %d %s", w.Code, w.Body)
		}
		for i := range 10 { // bytes that were read no longer count, although the first body is read all the time
			if w := post(r, paidRequest(event(fmt.Sprint("evt_", i)+strings.Repeat("y", 30_000)))); w.Code != 200 {
				t.Fatalf("short one %d of the same address: %d %s", i, w.Code, w.Body)
			}
		}
		_ = writer.CloseWithError(io.ErrUnexpectedEOF)
		clients.Wait()
		if w := post(r, paidRequest(long)); w.Code != 200 {
			t.Errorf("when the first has ended: %d %s", w.Code, w.Body)
		}
		running.end(t)
	})
}
