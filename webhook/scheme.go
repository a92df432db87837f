package webhook

import (
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"errors"
	"fmt"
	"hash"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/semel-go/semel"
)

// Scheme is the way in which a provider signs its requests. Create a Scheme with StandardWebhooks, GitHub,
// Stripe or HMAC.
type Scheme struct {
	name string
	// The headers that a request must contain exactly once, in lower case.
	headers []string
	// The names that older senders use for headers.
	aliases map[string]string
	// The headers that are signed, or derived from signed data. Signed headers are copied into messages.
	signs []string
	// The field timed is true if a time is signed.
	timed bool
	hash  func() hash.Hash
	// deriveKey returns the HMAC key of a secret.
	deriveKey func(secret string) ([]byte, error)
	// parseHeaders parses the headers of a request.
	parseHeaders func(headers map[string]string) (claim, error)
}

// claim is the parsed signature of a request.
type claim struct {
	// The signed bytes are the field before, the body, and the field after.
	before, after string
	// The signed time in seconds since 1970.
	signedTime int64
	// The decoded signatures; one of the signatures must match.
	signatures [][]byte
}

// Name returns the name of the scheme: standard_webhooks, github, stripe or hmac.
func (s Scheme) Name() string { return s.name }

// Timed reports whether requests have a signed time, so that old requests can be recognised.
func (s Scheme) Timed() bool { return s.timed }

// Signs reports whether the scheme signs the header. A signed header is copied into messages and may be used
// as identity. The case of the name does not matter.
func (s Scheme) Signs(header string) bool {
	for _, name := range s.signs {
		if strings.EqualFold(name, header) {
			return true
		}
	}
	return false
}

// The maximum number of signatures in a request.
const mostSignatures = 16

// The errors of Verify. Each error wraps ErrSignature.
var (
	// ErrSignature is wrapped by every error of Verify.
	ErrSignature = errors.New("semel: the webhook's signature is not accepted")
	// ErrUnsigned means that a header that the scheme needs is missing.
	ErrUnsigned = fmt.Errorf("%w: it is not signed by this scheme", ErrSignature)
	// ErrMalformed means that a signature header cannot be parsed, appears twice, or contains no signature of
	// the right length.
	ErrMalformed = fmt.Errorf("%w: its headers cannot be read", ErrSignature)
	// ErrForged means that the signature of the body matches no secret.
	ErrForged = fmt.Errorf("%w: no secret makes it of this body", ErrSignature)
	// ErrOld means that the signed time is too long ago. Verify checks the signature before the time; the method Signed
	// does not check the signature.
	ErrOld = fmt.Errorf("%w: it was made too long ago", ErrSignature)
	// ErrEarly means that the signed time is too far ahead. Verify checks the signature before the time; the method
	// Signed does not check the signature.
	ErrEarly = fmt.Errorf("%w: its time is too far ahead; compare the clocks", ErrSignature)
)

// Verifier checks signatures of one scheme. A Verifier is safe for concurrent use.
type Verifier struct {
	scheme    Scheme
	keys      [][]byte
	tolerance time.Duration
}

// DefaultTolerance is the default of Config.Tolerance.
const DefaultTolerance = 5 * time.Minute

// NewVerifier returns a Verifier. A signature is valid if it matches one of the secrets, so secrets can be
// rotated: add the new secret first, and remove the old secret when the provider no longer uses it. A
// tolerance of 0 means DefaultTolerance. If the scheme signs no time, tolerance must be 0. If a secret has a
// fault, the error describes the fault without showing the secret.
func NewVerifier(s Scheme, secrets []string, tolerance time.Duration) (*Verifier, error) {
	v := &Verifier{scheme: s, tolerance: tolerance}
	switch {
	case s.parseHeaders == nil:
		return nil, errors.New("webhook: Scheme is empty; use StandardWebhooks, GitHub, Stripe or HMAC")
	case len(secrets) == 0:
		return nil, errors.New("webhook: there is no secret; add the one that the provider signs with")
	case tolerance < 0:
		return nil, fmt.Errorf("webhook: the tolerance %v is negative; use a positive one", tolerance)
	case tolerance > 0 && !s.timed:
		return nil, fmt.Errorf("webhook: scheme %s signs no time; leave the tolerance out", s.name)
	case tolerance == 0:
		v.tolerance = DefaultTolerance
	}
	for i, text := range secrets {
		key, err := s.deriveKey(text)
		if err != nil {
			return nil, fmt.Errorf("webhook: secret %d: %w", i+1, err)
		}
		v.keys = append(v.keys, key)
	}
	return v, nil
}

// Signed checks the headers of a request before its body is read. Signed checks that the headers of the scheme exist,
// that there is a signature of the right length, and that the signed time is within the tolerance of now. The error is
// ErrUnsigned, ErrMalformed, ErrOld or ErrEarly.
func (v *Verifier) Signed(h http.Header, now time.Time) error {
	_, c, err := v.read(h)
	if err != nil {
		return err
	}
	return v.checkTime(c, now)
}

// checkTime checks the signed time, if the scheme signs a time.
func (v *Verifier) checkTime(c claim, now time.Time) error {
	if !v.scheme.timed {
		return nil
	}
	switch age := now.Sub(time.Unix(c.signedTime, 0)); {
	case age > v.tolerance:
		return ErrOld
	case age < -v.tolerance:
		return ErrEarly
	}
	return nil
}

// Verify checks that body, the raw bytes of the request, was signed with one of the secrets, and that the
// signed time is within the tolerance of now. Verify returns the signed headers, with names in lower case.
// The error wraps ErrSignature.
func (v *Verifier) Verify(h http.Header, body []byte, now time.Time) (semel.Headers, error) {
	headers, c, err := v.read(h)
	if err != nil {
		return nil, err
	}
	if !v.hasValidSignature(c, body) {
		return nil, ErrForged
	}
	if err := v.checkTime(c, now); err != nil {
		return nil, err
	}
	var out semel.Headers
	for _, name := range v.scheme.signs {
		out = append(out, semel.Header{Name: name, Value: []byte(headers[name])})
	}
	return out, nil
}

// hasValidSignature reports whether a signature matches a secret. The method compares all signatures with all secrets,
// in constant time.
func (v *Verifier) hasValidSignature(c claim, body []byte) bool {
	right := false
	for _, key := range v.keys {
		mac := hmac.New(v.scheme.hash, key)
		_, _ = mac.Write([]byte(c.before))
		_, _ = mac.Write(body)
		_, _ = mac.Write([]byte(c.after))
		want := mac.Sum(nil)
		for _, got := range c.signatures {
			right = hmac.Equal(got, want) || right
		}
	}
	return right
}

// read parses the signature headers. If a header appears twice, the request is rejected, because another
// server might use the other value.
func (v *Verifier) read(h http.Header) (map[string]string, claim, error) {
	found := map[string]string{}
	for _, name := range v.scheme.headers {
		all := h.Values(name)
		if len(all) == 0 {
			all = h.Values(v.scheme.aliases[name])
		}
		switch {
		case len(all) == 0 || all[0] == "":
			return nil, claim{}, ErrUnsigned
		case len(all) > 1:
			return nil, claim{}, ErrMalformed
		}
		found[name] = all[0]
	}
	c, err := v.scheme.parseHeaders(found)
	if err == nil && len(c.signatures) > mostSignatures {
		err = ErrMalformed
	}
	size := v.scheme.hash().Size()
	c.signatures = slices.DeleteFunc(c.signatures, func(s []byte) bool { return len(s) != size })
	if err == nil && len(c.signatures) == 0 {
		err = ErrMalformed
	}
	return found, c, err
}

// parseSeconds parses whole seconds since 1970 in canonical form.
func parseSeconds(text string) (int64, bool) {
	at, err := strconv.ParseInt(text, 10, 64)
	return at, err == nil && at >= 0 && at < 1<<40 && strconv.FormatInt(at, 10) == text
}

// The minimum length of a secret in bytes.
const leastSecret = 16

// plainKey returns a secret unchanged as its key.
func plainKey(secret string) ([]byte, error) {
	switch {
	case len(secret) < leastSecret:
		return nil, fmt.Errorf("it has %d bytes; use at least %d", len(secret), leastSecret)
	case strings.TrimSpace(secret) != secret: // for example a text from a file with a line end, which would match no signature
		return nil, errors.New("it begins or ends with white space, such as the line end of a file; remove that")
	}
	return []byte(secret), nil
}

// The hash functions of HMAC.
var hashes = map[string]func() hash.Hash{"sha256": sha256.New, "sha512": sha512.New, "sha1": sha1.New}
