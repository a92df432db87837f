package signers

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	stripe "github.com/stripe/stripe-go/v85/webhook"

	"github.com/semel-go/semel/itest/must"
	"github.com/semel-go/semel/webhook"
)

func byName(all []vector) {
	slices.SortFunc(all, func(a, b vector) int {
		return cmp.Or(cmp.Compare(a.Scheme, b.Scheme), cmp.Compare(a.Name, b.Name))
	})
}

// verifier returns a verifier that accepts signatures with the given secrets.
func verifier(t *testing.T, s webhook.Scheme, secrets ...string) *webhook.Verifier {
	t.Helper()
	v := must.Get(webhook.NewVerifier(s, secrets, 0))(t)
	return v
}

func TestWhatTheLibrariesSignIsAcceptedAndWhatTheyRefuseIsRefused(t *testing.T) {
	t.Run("F3_requests_of_odd_bodies_and_their_forgeries", func(t *testing.T) {
		right := 0
		for _, v := range signRequests(t) {
			_, err := verifier(t, scheme(v.Scheme), v.Secret).Verify(v.header(), v.Body, time.Unix(v.At, 0))
			if (err == nil) != v.Accepted {
				t.Errorf("%s: %s: it is %v, and the library accepts it: %v", v.Scheme, v.Name, err, v.Accepted)
			}
			if v.Accepted {
				right++
			}
		}
		if right != 2*3*(len(fragileBodies())-1) {
			t.Errorf("the libraries accept %d", right)
		}
	})
	t.Run("F3_random_bodies_and_secrets", func(t *testing.T) {
		random := rand.New(rand.NewPCG(1, 2))
		for range 2_000 {
			body := make([]byte, random.IntN(200))
			for i := range body {
				body[i] = byte(random.Uint32())
			}
			secret, other := fmt.Sprintf("whsec_%016x", random.Uint64()), fmt.Sprintf("whsec_%016x", random.Uint64())
			at := time.Unix(random.Int64N(1<<33), 0)
			p := stripe.GenerateTestSignedPayload(&stripe.UnsignedPayload{Payload: body, Secret: secret, Timestamp: at})
			h := http.Header{StripeHeader: {p.Header}}
			if _, err := verifier(t, webhook.Stripe(), other, secret).Verify(h, body, at); err != nil {
				t.Fatalf("%x by %s at %d: %v", body, secret, at.Unix(), err)
			}
			if _, err := verifier(t, webhook.Stripe(), other).Verify(h, body, at); !errors.Is(err, webhook.ErrForged) {
				t.Fatalf("%x under another secret: %v", body, err)
			}
			if got := Stripe(secret, at, body); got != p.Header {
				t.Fatalf("%x is signed %s here, and %s by the library", body, got, p.Header)
			}
		}
	})
}

func TestTimesAreJudgedAsByTheLibraries(t *testing.T) {
	body := []byte(`{"id":"evt_1"}`)
	standard := must.Get(standardwebhooks.NewWebhook(standardSecret))(t)
	for _, age := range []time.Duration{-time.Hour, -310 * time.Second, -290 * time.Second, 0, 290 * time.Second, 310 * time.Second, 72 * time.Hour} {
		t.Run(fmt.Sprint("F3_of_an_age_of_", age), func(t *testing.T) {
			now := time.Now()
			at := now.Add(-age)
			header := stripe.GenerateTestSignedPayload(&stripe.UnsignedPayload{Payload: body, Secret: stripeSecret, Timestamp: at}).Header
			_, got := verifier(t, webhook.Stripe(), stripeSecret).Verify(http.Header{StripeHeader: {header}}, body, now)
			// Stripe's library accepts a timestamp that lies any time in the future.
			if want := stripe.ValidatePayload(body, header, stripeSecret); age > -5*time.Minute && (want == nil) != (got == nil) {
				t.Errorf("of Stripe: %v, and the library says %v", got, want)
			}
			if age < -5*time.Minute && !errors.Is(got, webhook.ErrEarly) {
				t.Errorf("of Stripe, from ahead: %v", got)
			}
			sum := must.Get(standard.Sign("msg_1", at, body))(t)
			h := http.Header{"Webhook-Id": {"msg_1"}, "Webhook-Timestamp": {fmt.Sprint(at.Unix())}, "Webhook-Signature": {sum}}
			_, got = verifier(t, webhook.StandardWebhooks(), standardSecret).Verify(h, body, now)
			if want := standard.Verify(body, h); (want == nil) != (got == nil) {
				t.Errorf("of Standard Webhooks: %v, and the library says %v", got, want)
			}
		})
	}
}

func TestWhileASecretIsChanged(t *testing.T) {
	t.Run("F3_stripe_signs_with_the_old_and_the_new_secret_for_a_day", func(t *testing.T) {
		body, at := []byte(`{"id":"evt_1"}`), time.Unix(vectorAt, 0)
		by := func(secret string) string {
			return stripe.GenerateTestSignedPayload(&stripe.UnsignedPayload{Payload: body, Secret: secret, Timestamp: at}).Header
		}
		old, new := "whsec_the_old_secret", "whsec_the_new_secret"
		_, second, _ := strings.Cut(by(new), ",")
		both := http.Header{StripeHeader: {by(old) + "," + second}}
		for _, secrets := range [][]string{{old}, {new}, {new, old}} {
			if _, err := verifier(t, webhook.Stripe(), secrets...).Verify(both, body, at); err != nil {
				t.Errorf("of %v: %v", secrets, err)
			}
		}
		if _, err := verifier(t, webhook.Stripe(), "whsec_of_somebody_else").Verify(both, body, at); !errors.Is(err, webhook.ErrForged) {
			t.Errorf("of another: %v", err)
		}
	})
}
