package webhook_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/semel-go/semel/webhook"
)

// The vectors come from the libraries of Stripe and Standard Webhooks. A test in itest/http/signers writes
// them.
func TestTheVectorsThatTheProvidersLibrariesMake(t *testing.T) {
	t.Run("F3_signatures_of_the_libraries_and_their_forgeries", func(t *testing.T) {
		text, err := os.ReadFile("testdata/vectors.json")
		if err != nil {
			t.Fatal(err)
		}
		var all []struct {
			Scheme, Name, Secret string
			Headers              map[string]string
			Body                 []byte
			At                   int64
			Accepted             bool
		}
		if err := json.Unmarshal(text, &all); err != nil || len(all) == 0 {
			t.Fatal(len(all), err)
		}
		for _, c := range all {
			h, scheme := http.Header{}, webhook.Stripe()
			for name, value := range c.Headers {
				h.Set(name, value)
			}
			if c.Scheme == "standard_webhooks" {
				scheme = webhook.StandardWebhooks()
			}
			v, err := webhook.NewVerifier(scheme, []string{c.Secret}, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := v.Verify(h, c.Body, time.Unix(c.At, 0)); (err == nil) != c.Accepted || err != nil && !errors.Is(err, webhook.ErrSignature) {
				t.Errorf("%s: %s: %v, want it accepted: %v", c.Scheme, c.Name, err, c.Accepted)
			}
		}
	})
}
