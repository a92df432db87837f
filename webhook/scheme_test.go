package webhook_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/webhook"
)

// The test vector is from the libraries of Standard Webhooks: libraries/go/webhook_test.go of
// https://github.com/standard-webhooks/standard-webhooks.
const (
	standardSecret    = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	standardID        = "msg_p5jXN8AQM9LWM0D4loKWxJek"
	standardAt        = 1614265330
	standardBody      = `{"test": 2432232314}`
	standardSignature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	// A forged signature from the same file.
	standardForged = "v1,Ceo5qEr07ixe2NLpvHk3FH9bwy/WavXrAFQ/9tdO6mc="
)

// The test vector is from "Validating webhook deliveries" of GitHub's documentation.
const (
	githubSecret    = "It's a Secret to Everybody"
	githubBody      = "Hello, World!"
	githubSignature = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
)

// The secret is from the tests of Stripe's library for Go (webhook/client_test.go of stripe-go).
const stripeSecret = "whsec_test_secret"

// mac returns an HMAC-SHA256 in hex.
func mac(secret, text string) string {
	h := hmac.New(sha256.New, []byte(secret))
	_, _ = h.Write([]byte(text))
	return hex.EncodeToString(h.Sum(nil))
}

// stripeHeader returns a header as described in "Verify webhook signatures manually" of Stripe's documentation.
func stripeHeader(secret string, at int64, body string) string {
	return fmt.Sprintf("t=%d,v1=%s", at, mac(secret, fmt.Sprintf("%d.%s", at, body)))
}

func header(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

func standardHeader(changed ...string) http.Header {
	h := header("Webhook-Id", standardID, "Webhook-Timestamp", fmt.Sprint(standardAt), "Webhook-Signature", standardSignature)
	for i := 0; i < len(changed); i += 2 {
		h.Del(changed[i])
		if changed[i+1] != "" {
			h.Set(changed[i], changed[i+1])
		}
	}
	return h
}

func slack(t *testing.T) webhook.Scheme {
	t.Helper()
	s, err := webhook.HMAC(webhook.HMACOptions{Header: "X-Slack-Signature", Prefix: "v0=", Signed: "v0:{timestamp}:{body}", Timestamp: "X-Slack-Request-Timestamp"})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The test vector is from "Verifying requests from Slack" of Slack's documentation.
const (
	slackSecret    = "8f742231b10e8888abcd99yyyzzz85a5"
	slackAt        = 1531420618
	slackBody      = "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
	slackSignature = "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"
)

type signature struct {
	name    string
	scheme  webhook.Scheme
	secrets []string
	header  http.Header
	body    string
	at      int64
	want    error
}

func TestSignatures(t *testing.T) {
	stripeBody := "{\n  \"id\": \"evt_test_webhook\",\n  \"object\": \"event\"\n}"
	standard, github, stripe := webhook.StandardWebhooks(), webhook.GitHub(), webhook.Stripe()
	signed := func(h http.Header, at int64, want error, name string) signature {
		return signature{name, standard, []string{standardSecret}, h, standardBody, at, want}
	}
	hub := func(value, body string, want error, name string) signature {
		return signature{name, github, []string{githubSecret}, header("X-Hub-Signature-256", value), body, 0, want}
	}
	paid := func(value, body string, at int64, want error, name string) signature {
		return signature{name, stripe, []string{stripeSecret}, header("Stripe-Signature", value), body, at, want}
	}
	const now = 1_700_000_000
	right := stripeHeader(stripeSecret, now, stripeBody)
	for _, c := range []signature{
		signed(standardHeader(), standardAt, nil, "F3_the_vector_of_standard_webhooks"),
		signed(standardHeader("Webhook-Signature", standardForged+" v2,AAAA "+standardSignature+" "+standardForged), standardAt, nil, "F3_one_right_signature_of_several_is_enough"),
		signed(header("Svix-Id", standardID, "Svix-Timestamp", fmt.Sprint(standardAt), "Svix-Signature", standardSignature), standardAt, nil, "F3_the_older_names_of_svix"),
		signed(standardHeader(), standardAt+300, nil, "F3_as_old_as_may_be"),
		signed(standardHeader(), standardAt+301, webhook.ErrOld, "F3_a_second_too_old"),
		signed(standardHeader(), standardAt-301, webhook.ErrEarly, "F3_a_second_too_early"),
		signed(standardHeader("Webhook-Signature", standardForged), standardAt, webhook.ErrForged, "F3_a_forged_one_of_standard_webhooks"),
		signed(standardHeader("Webhook-Id", "msg_other"), standardAt, webhook.ErrForged, "F3_another_id_under_a_right_signature"),
		signed(standardHeader("Webhook-Timestamp", fmt.Sprint(standardAt+1)), standardAt, webhook.ErrForged, "F3_another_time_under_a_right_signature"),
		signed(standardHeader("Webhook-Timestamp", fmt.Sprint("0", standardAt)), standardAt, webhook.ErrMalformed, "F3_a_time_in_another_spelling"),
		signed(standardHeader("Webhook-Id", fmt.Sprint("a.", standardAt)), standardAt, webhook.ErrMalformed, "F3_an_id_that_runs_into_the_time"),
		signed(standardHeader("Webhook-Id", ""), standardAt, webhook.ErrUnsigned, "F3_without_its_id"),
		signed(standardHeader("Webhook-Timestamp", ""), standardAt, webhook.ErrUnsigned, "F3_without_its_time"),
		signed(standardHeader("Webhook-Signature", ""), standardAt, webhook.ErrUnsigned, "F3_without_its_signature"),
		signed(header("Webhook-Id", standardID, "Webhook-Id", "other", "Webhook-Timestamp", fmt.Sprint(standardAt), "Webhook-Signature", standardSignature), standardAt, webhook.ErrMalformed, "F3_two_ids"),
		signed(standardHeader("Webhook-Signature", strings.Repeat(standardForged+" ", 17)), standardAt, webhook.ErrMalformed, "F3_more_signatures_than_anybody_makes"),
		signed(header("X-Hub-Signature-256", githubSignature), standardAt, webhook.ErrUnsigned, "F3_the_header_of_another_scheme"),

		hub(githubSignature, githubBody, nil, "F3_the_vector_of_github"),
		hub(githubSignature, githubBody+"\n", webhook.ErrForged, "F3_a_body_with_one_more_byte"),
		hub(githubSignature, "", webhook.ErrForged, "F3_no_body_under_a_right_signature"),
		hub(strings.ToUpper(githubSignature), githubBody, webhook.ErrMalformed, "F3_a_prefix_in_other_letters"),
		hub(strings.TrimPrefix(githubSignature, "sha256="), githubBody, webhook.ErrMalformed, "F3_a_signature_without_its_prefix"),
		hub(githubSignature[:len(githubSignature)-2], githubBody, webhook.ErrMalformed, "F3_a_signature_that_is_cut"),
		{"F3_sha1_alone_is_not_read", github, []string{githubSecret}, header("X-Hub-Signature", "sha1=01dc10d0c83e72ed246219cdd91669667fe2ca59"), githubBody, 0, webhook.ErrUnsigned},

		paid(right, stripeBody, now, nil, "F3_what_stripe_signs"),
		paid(right+",v1=bad_signature", stripeBody, now, nil, "F3_one_that_cannot_be_read_beside_a_right_one"),
		paid(strings.Replace(right, "v1=", "v0=", 1), stripeBody, now, webhook.ErrMalformed, "F3_stripes_scheme_for_tests_is_none"),
		paid(right, stripeBody, now+301, webhook.ErrOld, "F3_an_old_one_of_stripe"),
		paid(right, strings.ReplaceAll(stripeBody, "\n", ""), now, webhook.ErrForged, "F3_json_that_differs_only_in_spaces"),
		paid("t="+fmt.Sprint(now+1)+right[strings.Index(right, ","):], stripeBody, now, webhook.ErrForged, "F3_stripes_signature_under_another_time"),
		paid("v1,t=1", stripeBody, now, webhook.ErrMalformed, "F3_a_header_of_stripe_without_signature"),
		paid("t=", stripeBody, now, webhook.ErrMalformed, "F3_a_header_of_stripe_without_time"),
		paid(right+",t=1", stripeBody, now, webhook.ErrMalformed, "F3_two_times"),

		{"F3_the_vector_of_slack", slack(t), []string{slackSecret}, header("X-Slack-Signature", slackSignature, "X-Slack-Request-Timestamp", fmt.Sprint(slackAt)), slackBody, slackAt, nil},
		{"F3_the_new_secret_beside_the_old_one", github, []string{"the new one, which nobody uses yet", githubSecret}, header("X-Hub-Signature-256", githubSignature), githubBody, 0, nil},
		{"F3_a_secret_that_was_removed", github, []string{"the new one, which nobody uses yet"}, header("X-Hub-Signature-256", githubSignature), githubBody, 0, webhook.ErrForged},
	} {
		t.Run(c.name, func(t *testing.T) {
			v, err := webhook.NewVerifier(c.scheme, c.secrets, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err = v.Verify(c.header, []byte(c.body), time.Unix(c.at, 0)); !errors.Is(err, c.want) {
				t.Errorf("it is %v, want %v", err, c.want)
			}
			if c.want != nil && !errors.Is(err, webhook.ErrSignature) {
				t.Errorf("%v is no ErrSignature", err)
			}
		})
	}
}

func TestMessagesContainOnlySignedHeaders(t *testing.T) {
	t.Run("F3_headers_that_are_signed", func(t *testing.T) {
		v, err := webhook.NewVerifier(webhook.StandardWebhooks(), []string{standardSecret}, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		got, err := v.Verify(standardHeader("Content-Type", "application/json"), []byte(standardBody), time.Unix(standardAt, 0))
		id, _ := got.Get("webhook-id")
		if err != nil || len(got) != 2 || string(id) != standardID {
			t.Errorf("%v, %v", got, err)
		}
		for scheme, signs := range map[*webhook.Scheme]bool{ptr(webhook.StandardWebhooks()): true, ptr(webhook.GitHub()): false, ptr(webhook.Stripe()): false} {
			if scheme.Signs("Webhook-ID") != signs || scheme.Signs("x-github-delivery") {
				t.Errorf("%s signs webhook-id: %v", scheme.Name(), !signs)
			}
		}
	})
}

func ptr[T any](v T) *T { return &v }

func TestFaultsOfVerifiers(t *testing.T) {
	for name, make := range map[string]func() error{
		"without_a_scheme":             func() error { return verifier(webhook.Scheme{}, 0, standardSecret) },
		"without_a_secret":             func() error { return verifier(webhook.GitHub(), 0) },
		"with_a_short_secret":          func() error { return verifier(webhook.GitHub(), 0, "hunter2") },
		"with_a_secret_of_few_bytes":   func() error { return verifier(webhook.StandardWebhooks(), 0, "whsec_aHVudGVyMg==") },
		"with_a_secret_of_other_texts": func() error { return verifier(webhook.StandardWebhooks(), 0, "hunter2 hunter2 hunter2") },
		"with_a_tolerance_of_no_time":  func() error { return verifier(webhook.GitHub(), time.Minute, githubSecret) },
		"with_a_tolerance_below_zero":  func() error { return verifier(webhook.Stripe(), -1, stripeSecret) },
		"hmac_without_header":          func() error { return hmacFault(webhook.HMACOptions{}) },
		"hmac_with_another_encoding":   func() error { return hmacFault(webhook.HMACOptions{Header: "a", Encoding: "rot13"}) },
		"hmac_with_another_hash":       func() error { return hmacFault(webhook.HMACOptions{Header: "a", Hash: "md5"}) },
		"hmac_without_the_body": func() error {
			return hmacFault(webhook.HMACOptions{Header: "a", Signed: "{timestamp}.", Timestamp: "b"})
		},
		"hmac_with_a_time_unsigned": func() error { return hmacFault(webhook.HMACOptions{Header: "a", Timestamp: "b"}) },
		"hmac_with_a_time_of_no_header": func() error {
			return hmacFault(webhook.HMACOptions{Header: "a", Signed: "{timestamp}.{body}"})
		},
		"hmac_with_an_id_that_runs_on": func() error { return hmacFault(webhook.HMACOptions{Header: "a", Signed: "{id}{body}", ID: "b"}) },
	} {
		t.Run("F3_"+name, func(t *testing.T) {
			err := make()
			if err == nil || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%v", err)
			}
		})
	}
}

func verifier(s webhook.Scheme, tolerance time.Duration, secrets ...string) error {
	_, err := webhook.NewVerifier(s, secrets, tolerance)
	return err
}

func hmacFault(o webhook.HMACOptions) error {
	_, err := webhook.HMAC(o)
	return err
}

func TestConfigurationsThatNoRequestMatchesAreRejected(t *testing.T) {
	for name, make := range map[string]func() error{
		"a secret with a line end":      func() error { return verifier(webhook.GitHub(), 0, githubSecret+"\n") },
		"a secret behind a space":       func() error { return verifier(webhook.Stripe(), 0, " "+stripeSecret) },
		"a header that is no name":      func() error { return hmacFault(webhook.HMACOptions{Header: "x-sign:"}) },
		"an id of a header with spaces": func() error { return hmacFault(webhook.HMACOptions{Header: "a", Signed: "{id}.{body}", ID: "x id"}) },
		"a time of a header not of ASCII": func() error {
			return hmacFault(webhook.HMACOptions{Header: "a", Signed: "{timestamp}.{body}", Timestamp: "x-zeit-ä"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			if err := make(); err == nil || strings.Contains(err.Error(), githubSecret) || strings.Contains(err.Error(), stripeSecret) {
				t.Errorf("%v", err)
			}
		})
	}
}
