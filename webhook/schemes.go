package webhook

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// StandardWebhooks is the scheme of https://www.standardwebhooks.com, which Svix and other providers use. The signature
// is an HMAC-SHA256 of the headers webhook-id and webhook-timestamp and of the body. When an event is sent again,
// webhook-id is the same, so use header:webhook-id as the identity. The header names svix-id, svix-timestamp and
// svix-signature are also accepted; the messages of such requests contain webhook-id. A secret is the base64 form of 24
// to 64 bytes, with or without the prefix whsec_.
func StandardWebhooks() Scheme {
	return Scheme{
		name:    "standard_webhooks",
		headers: []string{"webhook-id", "webhook-timestamp", "webhook-signature"},
		aliases: map[string]string{"webhook-id": "svix-id", "webhook-timestamp": "svix-timestamp", "webhook-signature": "svix-signature"},
		signs:   []string{"webhook-id", "webhook-timestamp"},
		timed:   true, hash: sha256.New, deriveKey: standardKey, parseHeaders: readStandard,
	}
}

func standardKey(secret string) ([]byte, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	switch {
	case err != nil:
		return nil, errors.New("it is not base64, with or without the prefix whsec_")
	case len(key) < 24 || len(key) > 64:
		return nil, fmt.Errorf("it has %d bytes, but the specification requires 24 to 64", len(key))
	}
	return key, nil
}

func readStandard(h map[string]string) (claim, error) {
	id := h["webhook-id"]
	at, ok := parseSeconds(h["webhook-timestamp"])
	if !ok || isAmbiguous(id) {
		return claim{}, ErrMalformed
	}
	c := claim{before: id + "." + h["webhook-timestamp"] + ".", signedTime: at}
	for _, part := range strings.Fields(h["webhook-signature"]) {
		version, text, _ := strings.Cut(part, ",")
		if sum, err := base64.StdEncoding.DecodeString(text); err == nil && version == "v1" {
			c.signatures = append(c.signatures, sum)
		}
	}
	return c, nil
}

// isAmbiguous reports whether an id ends in a way that makes the signed text ambiguous. In the signed text,
// points separate id, time and body. So in the signed text a.1.2.b, the id can be a or a.1.
func isAmbiguous(id string) bool {
	labels := strings.Split(id, ".")
	for _, label := range labels[1:] {
		if _, is := parseSeconds(label); is {
			return true
		}
	}
	return false
}

// GitHub is the scheme of GitHub's webhooks and of providers that copy this scheme. The header X-Hub-Signature-256
// contains an HMAC-SHA256 of the body. Neither a time nor an id is signed. When an event is sent again,
// X-GitHub-Delivery is the same, but anybody who has seen a signed body can replace X-GitHub-Delivery. The older header
// X-Hub-Signature with SHA-1 is not accepted.
func GitHub() Scheme {
	s, _ := HMAC(HMACOptions{Header: "x-hub-signature-256", Prefix: "sha256="}) // these options are valid
	s.name = "github"
	return s
}

// Stripe is the scheme of Stripe's webhooks. The header Stripe-Signature contains an HMAC-SHA256 of a time
// and the body. Use body:/id, the id of the event, as the identity. The secret is the endpoint's signing
// secret as Stripe shows it, including whsec_.
func Stripe() Scheme {
	return Scheme{name: "stripe", headers: []string{"stripe-signature"}, timed: true, hash: sha256.New, deriveKey: plainKey, parseHeaders: readStripe}
}

func readStripe(h map[string]string) (claim, error) {
	var c claim
	times := 0
	for part := range strings.SplitSeq(h["stripe-signature"], ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch name {
		case "t":
			at, ok := parseSeconds(value)
			if times++; !ok || times > 1 {
				return c, ErrMalformed
			}
			c.signedTime, c.before = at, value+"."
		case "v1":
			if sum, err := hex.DecodeString(value); err == nil {
				c.signatures = append(c.signatures, sum)
			}
		}
	}
	if times == 0 {
		return c, ErrMalformed
	}
	return c, nil
}
