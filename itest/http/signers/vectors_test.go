package signers

import (
	"bytes"
	"encoding/json"
	"flag"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	stripe "github.com/stripe/stripe-go/v85/webhook"

	"github.com/semel-go/semel/itest/must"
	"github.com/semel-go/semel/webhook"
)

var update = flag.Bool("update", false, "write the vectors for the tests of package webhook")

// vectorsFile contains requests that the providers' libraries signed. Each request has a field that says whether these
// libraries accept the request. The tests of package webhook read this file and so need no library.
const vectorsFile = "../../../webhook/testdata/vectors.json"

// vector is a request, and whether the provider's library accepts its signature at any time.
type vector struct {
	Scheme   string            `json:"scheme"`
	Name     string            `json:"name"`
	Secret   string            `json:"secret"`
	Headers  map[string]string `json:"headers"`
	Body     []byte            `json:"body"`
	At       int64             `json:"at"`
	Accepted bool              `json:"accepted"`
}

const (
	vectorAt       = 1_700_000_000
	stripeSecret   = "whsec_test_secret"
	standardSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
)

// fragileBodies returns bodies that would change if they were parsed and encoded again.
func fragileBodies() map[string][]byte {
	return map[string][]byte{
		"an event":                  []byte("{\n  \"id\": \"evt_1\",\n  \"object\": \"event\"\n}"),
		"the event in one line":     []byte(`{"id":"evt_1","object":"event"}`),
		"nothing":                   {},
		"a line end":                []byte("\n"),
		"line ends of Windows":      []byte("{\r\n\"id\":\"evt_1\"}\r\n"),
		"every byte":                everyByte(),
		"no UTF-8":                  {0xff, 0xfe, 0x00, 0xc0, 0x80},
		"letters with marks":        []byte(`{"id":"evt_ü","name":"Zoë ☃ 𝄞"}`),
		"escapes":                   []byte(`{"id":"evt_\u0031","name":"\u00fc\/"}`),
		"one name twice":            []byte(`{"id":"evt_1","id":"evt_2"}`),
		"a signature":               []byte("t=1700000000,v1=00"),
		"a time and a dot":          []byte("1700000000."),
		"a form":                    []byte("payload=%7B%22id%22%3A%22evt_1%22%7D"),
		"more than a piece is long": bytes.Repeat([]byte("0123456789abcdef"), 2_100),
	}
}

func everyByte() (all []byte) {
	for i := range 256 {
		all = append(all, byte(i))
	}
	return all
}

// signRequests returns requests with each body, signed by the libraries, and forged variants of these requests.
func signRequests(t *testing.T) (all []vector) {
	t.Helper()
	at := time.Unix(vectorAt, 0)
	standard := must.Get(standardwebhooks.NewWebhook(standardSecret))(t)
	for name, body := range fragileBodies() {
		if name == "more than a piece is long" {
			continue // this body is too long for the file
		}
		header := stripe.GenerateTestSignedPayload(&stripe.UnsignedPayload{Payload: body, Secret: stripeSecret, Timestamp: at}).Header
		all = append(all, forgeVariants(vector{Scheme: "stripe", Name: name, Secret: stripeSecret, Headers: map[string]string{StripeHeader: header}, Body: body, At: vectorAt})...)
		sum := must.Get(standard.Sign("msg_1", at, body))(t)
		all = append(all, forgeVariants(vector{Scheme: "standard_webhooks", Name: name, Secret: standardSecret, Body: body, At: vectorAt,
			Headers: map[string]string{"Webhook-Id": "msg_1", "Webhook-Timestamp": "1700000000", "Webhook-Signature": sum}})...)
	}
	for i := range all {
		all[i].Accepted = librarySays(t, all[i])
	}
	return all
}

// forgeVariants returns a request and forged variants of it: with another body, another secret, another
// signature, and another time with the same signature.
func forgeVariants(v vector) []vector {
	as := func(name string, change func(*vector)) vector {
		c := v
		c.Name, c.Body, c.Headers = v.Name+": "+name, bytes.Clone(v.Body), map[string]string{}
		for name, value := range v.Headers {
			c.Headers[name] = value
		}
		change(&c)
		return c
	}
	every := func(c *vector, old, new string) {
		for name, value := range c.Headers {
			c.Headers[name] = strings.Replace(value, old, new, 1)
		}
	}
	return []vector{
		as("as signed", func(*vector) {}),
		as("with a space more", func(c *vector) { c.Body = append(c.Body, ' ') }),
		as("of another secret", func(c *vector) { c.Secret = "whsec_bm90aGluZyB0aGF0IGFueWJvZHkgc2lnbnMgd2l0aA==" }),
		as("of another time", func(c *vector) { every(c, "1700000000", "1700000001") }),
		as("of another scheme", func(c *vector) { every(c, "v1", "v0") }),
		as("with one sign of the signature changed", func(c *vector) { every(c, "v1=", "v1=0"); every(c, "v1,", "v1,A") }),
		as("with a signature that cannot be read before it", func(c *vector) { every(c, "v1=", "v1=zz,v1="); every(c, "v1,", "v1,%% v1,") }),
		as("with a wrong signature before it", func(c *vector) { every(c, "v1=", "v1=00,v1="); every(c, "v1,", "v1,AAAA v1,") }),
	}
}

// librarySays reports whether the provider's library accepts the signature at any time.
func librarySays(t *testing.T, v vector) bool {
	t.Helper()
	if v.Scheme == "stripe" {
		return stripe.ValidatePayloadIgnoringTolerance(v.Body, v.Headers[StripeHeader], v.Secret) == nil
	}
	w := must.Get(standardwebhooks.NewWebhook(v.Secret))(t)
	return w.VerifyIgnoringTimestamp(v.Body, v.header()) == nil
}

func (v vector) header() http.Header {
	h := http.Header{}
	for name, value := range v.Headers {
		h.Set(name, value)
	}
	return h
}

func scheme(name string) webhook.Scheme {
	if name == "stripe" {
		return webhook.Stripe()
	}
	return webhook.StandardWebhooks()
}

func TestTheVectorsOfPackageWebhookAreThoseThatTheLibrariesMake(t *testing.T) {
	all := signRequests(t)
	byName(all)
	text := must.Get(json.MarshalIndent(all, "", " "))(t)
	text = append(text, '\n')
	if *update {
		must.OK(t, os.WriteFile(vectorsFile, text, 0o644))
	}
	if there, err := os.ReadFile(vectorsFile); err != nil || !bytes.Equal(there, text) {
		t.Errorf("%s is another (%v); go test ./itest/http/signers -update writes it", vectorsFile, err)
	}
}
