package httphandler

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Requests are signed according to Standard Webhooks
// (https://github.com/standard-webhooks/standard-webhooks, spec/standard-webhooks.md). The signature is the
// HMAC-SHA256, in base64, of the id, the time in seconds and the body, joined with dots. The id is the
// idempotency key, so all attempts have the same id.

// Secret is a key that signs requests. Formatting a Secret does not show the key.
type Secret struct{ key []byte }

// String returns a fixed text instead of the secret.
func (Secret) String() string { return "a secret" }

// GoString returns a fixed text instead of the secret.
func (Secret) GoString() string { return "a secret" }

const (
	secretPrefix = "whsec_"
	// The minimum and maximum key sizes of the specification, in bytes.
	leastSecret, mostSecret = 24, 64
)

// ParseSecret parses a secret of Standard Webhooks: "whsec_" followed by 24 to 64 bytes in base64. Errors
// contain no part of the secret.
func ParseSecret(text string) (Secret, error) {
	rest, ok := strings.CutPrefix(text, secretPrefix)
	key, err := base64.StdEncoding.DecodeString(rest)
	switch {
	case !ok:
		return Secret{}, errors.New("the secret does not begin with " + secretPrefix)
	case err != nil:
		return Secret{}, errors.New("after " + secretPrefix + " the secret is not valid base64")
	case len(key) < leastSecret || len(key) > mostSecret:
		return Secret{}, fmt.Errorf("the secret has %d bytes, but must have %d to %d", len(key), leastSecret, mostSecret)
	}
	return Secret{key}, nil
}

func sign(to http.Header, secrets []Secret, id string, now time.Time, body []byte) {
	if len(secrets) == 0 {
		return
	}
	at := strconv.FormatInt(now.Unix(), 10)
	var all []string
	for _, s := range secrets {
		mac := hmac.New(sha256.New, s.key)
		_, _ = mac.Write([]byte(id + "." + at + "."))
		_, _ = mac.Write(body)
		all = append(all, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	to.Set("Webhook-Id", id)
	to.Set("Webhook-Timestamp", at)
	to.Set("Webhook-Signature", strings.Join(all, " "))
}
