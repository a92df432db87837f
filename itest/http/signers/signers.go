// Package signers signs requests in the same way as providers of webhooks. Its tests compare these signatures
// with the providers' own libraries. They also compare which requests package webhook and these libraries
// accept.
package signers

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"
)

// StripeHeader is the header that contains Stripe's signature.
const StripeHeader = "Stripe-Signature"

// Stripe returns the value of the header Stripe-Signature for a body.
func Stripe(secret string, at time.Time, body []byte) string {
	h := hmac.New(sha256.New, []byte(secret))
	_, _ = fmt.Fprintf(h, "%d.", at.Unix())
	_, _ = h.Write(body)
	return fmt.Sprintf("t=%d,v1=%s", at.Unix(), hex.EncodeToString(h.Sum(nil)))
}
