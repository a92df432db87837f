// Package signers signs requests in the same way as providers of webhooks. The tests of this package compare its
// signatures with the signatures of the providers' own libraries. The tests also compare which requests package webhook
// accepts with which requests these libraries accept.
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
