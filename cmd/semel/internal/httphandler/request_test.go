package httphandler

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/semelheader"
)

// receivedRequest returns the request that an endpoint receives for m.
func receivedRequest(t *testing.T, m *semel.Message, changes ...func(*Config)) (header http.Header, body string, length int64) {
	t.Helper()
	type request struct {
		*http.Request
		body string
	}
	got := make(chan request, 1)
	e := newEndpoint(t, func(_ http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		got <- request{r, string(text)}
	})
	if err := e.handler(t, changes...).Handle(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	r := <-got
	return r.Header, r.body, r.ContentLength
}

func headers(pairs ...string) (all semel.Headers) {
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, semel.Header{Name: pairs[i], Value: []byte(pairs[i+1])})
	}
	return all
}

func TestAMessageBecomesARequest(t *testing.T) {
	of := semel.Key{Consumer: "billing", Source: "shop", ID: "order-17"}
	t.Run("K10_B7_C14_an_event_in_binary_mode_with_its_key_and_causes", func(t *testing.T) {
		m := semel.NewMessage(of, []byte(`{"n":1}`), headers("ce-id", "o-17", "ce-source", "/shop", "ce-type", "order.placed", "ce-specversion", "1.0",
			"ce-subject", "Zoë \"17\" 50%", "ce-time", "2026-02-03T04:05:06Z", "ce-datacontenttype", "application/json; charset=utf-8", "ce-region", "eu",
			"traceparent", "00-1-2-01", "tracestate", "a=1", "tracestate", "b=2", semelheader.Causation, "o-16", semelheader.Correlation, "o-1")...)
		m.Attempt, m.Attributes = 3, semel.Attributes{}
		got, body, length := receivedRequest(t, m)
		want := map[string]string{
			"Ce-Id": "o-17", "Ce-Source": "/shop", "Ce-Type": "order.placed", "Ce-Specversion": "1.0", "Ce-Subject": "Zo%C3%AB%20%2217%22%2050%25",
			"Ce-Time": "2026-02-03T04:05:06Z", "Ce-Region": "eu", "Content-Type": "application/json; charset=utf-8", "Content-Length": "7",
			"Traceparent": "00-1-2-01", "Tracestate": "a=1,b=2", "Semel-Causation-Id": "o-16", "Semel-Correlation-Id": "o-1",
			"Idempotency-Key": m.IdempotencyKey("handler"), "Semel-Attempt": "3", "User-Agent": "semel",
		}
		for name, value := range want {
			if have := strings.Join(got.Values(name), ","); have != value {
				t.Errorf("%s: %q, want %q", name, have, value)
			}
		}
		if extra := slices.DeleteFunc(slices.Sorted(maps.Keys(got)), func(n string) bool { return want[n] != "" }); len(extra) > 0 || body != `{"n":1}` || length != 7 {
			t.Errorf("further headers %v; body %q of %d", extra, body, length)
		}
	})
	t.Run("B7_every_attempt_has_the_same_key_and_another_message_another", func(t *testing.T) {
		m, other := semel.NewMessage(of, nil), semel.NewMessage(semel.Key{Consumer: "billing", Source: "shop", ID: "order-18"}, nil)
		first, _, _ := receivedRequest(t, m)
		m.Attempt = 2
		second, _, _ := receivedRequest(t, m)
		third, _, _ := receivedRequest(t, other)
		if a, b, c := first.Get(headerKey), second.Get(headerKey), third.Get(headerKey); a != b || a == c || strings.Contains(a, `"`) {
			t.Errorf("%q, %q, %q", a, b, c)
		}
	})
	t.Run("a_message_that_is_no_event_becomes_one", func(t *testing.T) {
		m := semel.NewMessage(semel.Key{Consumer: "billing", ID: "a\x00b"}, []byte("plain"))
		m.Attributes = semel.Attributes{}
		got, _, _ := receivedRequest(t, m)
		if got.Get("Ce-Id") != "a%00b" || got.Get("Ce-Source") != "semel" || got.Get("Ce-Type") != "semel.message" || got.Get("Content-Type") != "" {
			t.Errorf("%v", got)
		}
	})
	t.Run("an_empty_body_is_one", func(t *testing.T) {
		if _, body, length := receivedRequest(t, semel.NewMessage(of, nil)); body != "" || length != 0 {
			t.Errorf("%q of %d", body, length)
		}
	})
	t.Run("a_body_is_sent_as_it_is", func(t *testing.T) {
		long := strings.Repeat("\x00\xff\r\n", 1<<18)
		if _, body, _ := receivedRequest(t, semel.NewMessage(of, []byte(long))); body != long {
			t.Errorf("%d bytes came", len(body))
		}
	})
}

func TestRequestsNameTheirReplay(t *testing.T) {
	for want, r := range map[string]*semel.Replay{",": nil, "7,none": {ID: 7}, "8,real": {ID: 8, Effects: true}} {
		t.Run("G1_with_its_number_and_its_effects_"+want, func(t *testing.T) {
			m := semel.NewMessage(semel.Key{Consumer: "billing", ID: "1"}, []byte(`{}`))
			m.Replayed = r
			got, _, _ := receivedRequest(t, m)
			if have := got.Get("Semel-Replay") + "," + got.Get("Semel-Effects"); have != want {
				t.Errorf("the headers are %q, want %q", have, want)
			}
		})
	}
}

func TestAMessageCannotSetReservedHeaders(t *testing.T) {
	of := semel.Key{Consumer: "billing", ID: "17"}
	t.Run("no_header_of_a_message_but_those_that_the_policy_names", func(t *testing.T) {
		m := semel.NewMessage(of, nil, headers("X-Tenant", "north", "x-tenant", "south", "X-Other", "no", "Host", "evil", "Authorization", "evil", "Content-Length", "3",
			"Transfer-Encoding", "chunked", "Connection", "close", "Idempotency-Key", "evil", "webhook-id", "evil", "semel-attempt", "99", "Cookie", "evil", "User-Agent", "evil")...)
		got, body, _ := receivedRequest(t, m, func(c *Config) { c.Pass = []string{"x-tenant"} })
		if v := got.Values("X-Tenant"); !slices.Equal(v, []string{"north", "south"}) || got.Get("X-Other") != "" || body != "" {
			t.Errorf("%v", got)
		}
		for name, values := range got {
			if strings.Contains(strings.Join(values, " "), "evil") || got.Get(headerAttempt) != "1" {
				t.Errorf("%s: %q", name, values)
			}
		}
	})
	t.Run("no_value_becomes_a_second_header", func(t *testing.T) {
		evil := "a\r\nAuthorization: evil"
		m := semel.NewMessage(of, nil, headers("ce-type", evil, "ce-x y", "a", "ce-", "a", "ce-a:b", "c", "traceparent", evil, "correlation-id", evil, "content-type", evil)...)
		got, _, _ := receivedRequest(t, m)
		if got.Get("Authorization") != "" || got.Get("Ce-Type") != "a%0D%0AAuthorization:%20evil" || got.Get("Traceparent")+got.Get("Correlation-Id") != "" || strings.Contains(got.Get("Content-Type"), "evil") {
			t.Errorf("%v", got)
		}
	})
	t.Run("one_that_cannot_be_sent_and_is_wanted_ends_its_message", func(t *testing.T) {
		e := newEndpoint(t, func(http.ResponseWriter, *http.Request) {})
		h := e.handler(t, func(c *Config) { c.Pass = []string{"X-A"} })
		d, text := decisionOf(t, h.Handle(t.Context(), semel.NewMessage(of, nil, headers("x-a", secretText+"\r\nb: c")...)))
		if d.Decision != semel.DecidePermanent || !strings.Contains(text, "X-A") || e.calls.Load() != 0 {
			t.Errorf("%v %q", d.Decision, text)
		}
	})
	t.Run("the_names_that_neither_policy_nor_message_sets", func(t *testing.T) {
		for _, name := range []string{"Host", "content-length", "Transfer-Encoding", "TE", "Trailer", "Upgrade", "Connection", "Proxy-Authorization", "Keep-Alive", "Expect",
			"ce-id", "Semel-Attempt", "Webhook-Signature", "Idempotency-Key", "X-Idempotency-Key", "X-Forwarded-For", "Content-Type", "", "a b", "a:b", "a\r\nb", "ä"} {
			if Allowed(name) == "" || Passable(name) == "" {
				t.Errorf("%q is allowed", name)
			}
		}
		if Allowed("Authorization") != "" || Passable("Authorization") == "" || Passable("X-Tenant") != "" {
			t.Error("the policy may set credentials, a message may not; both may set other headers")
		}
	})
}

func TestSignatures(t *testing.T) {
	const text = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	secret, err := ParseSecret(text)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("the_example_of_the_specification", func(t *testing.T) {
		to := http.Header{}
		sign(to, []Secret{secret}, "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`))
		if got := to.Get("Webhook-Signature"); got != "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=" {
			t.Errorf("%s", got)
		}
	})
	t.Run("a_request_has_one_for_each_secret_under_its_key", func(t *testing.T) {
		other, err := ParseSecret("whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 32))))
		if err != nil {
			t.Fatal(err)
		}
		m := message()
		got, body, _ := receivedRequest(t, m, func(c *Config) { c.Secrets = []Secret{secret, other} })
		mac := hmac.New(sha256.New, []byte(strings.Repeat("k", 32)))
		fmt.Fprintf(mac, "%s.%s.%s", got.Get("webhook-id"), got.Get("webhook-timestamp"), body)
		all := strings.Fields(got.Get("webhook-signature"))
		if len(all) != 2 || all[1] != "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)) || got.Get("webhook-id") != m.IdempotencyKey(step) {
			t.Errorf("%v", got)
		}
	})
	t.Run("law_15_no_secret_is_shown", func(t *testing.T) {
		shown := fmt.Sprintf("%v %+v %#v %s", secret, Config{Secrets: []Secret{secret}}, Config{Secrets: []Secret{secret}}, secret)
		for _, bad := range []string{secretText, "whsec_" + secretText, "whsec_aHVudGVyMg==", "whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 65)), ""} {
			_, err := ParseSecret(bad)
			if err == nil {
				t.Errorf("%q is accepted", bad)
			}
			shown += fmt.Sprint(err)
		}
		if strings.Contains(shown, secretText) || strings.Contains(shown, text[8:20]) || strings.Contains(shown, "49 242") {
			t.Error(shown)
		}
	})
}

func TestInvalidEndpoints(t *testing.T) {
	for _, url := range []string{"", "ftp://bank.example", "https://", "https://shop:" + secretText + "@bank.example", "http://a b", "://" + secretText} {
		if _, err := New(Config{URL: url, Timeout: time.Second, Connections: 1}); err == nil || strings.Contains(err.Error(), secretText) {
			t.Errorf("%q: %v", url, err)
		}
	}
	if _, err := New(Config{URL: "http://bank.example"}); err == nil {
		t.Error("a configuration without a timeout is accepted")
	}
}
