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

// Scheme is how a provider signs its requests. Make one with StandardWebhooks, GitHub,
// Stripe or HMAC.
type Scheme struct {
	name string
	// headers are those that a request must have, each once, in lower case.
	headers []string
	// aliases are other names of headers, which older senders use.
	aliases map[string]string
	// signs are those of them that are signed, or made of what is, and that messages have.
	signs []string
	// timed says that a time is signed.
	timed bool
	hash  func() hash.Hash
	// key makes the key of a secret.
	key func(secret string) ([]byte, error)
	// read takes a request's headers apart.
	read func(headers map[string]string) (claim, error)
}

// claim is what a request says of its signature.
type claim struct {
	// before and after stand around the body in what is signed.
	before, after string
	// at is the signed time in seconds since 1970.
	at int64
	// signatures are those that may be right, decoded.
	signatures [][]byte
}

// Name is the name of the scheme: standard_webhooks, github, stripe or hmac.
func (s Scheme) Name() string { return s.name }

// Timed reports whether requests carry a signed time, so that old ones can be told.
func (s Scheme) Timed() bool { return s.timed }

// Signs reports whether the scheme signs the header of this name, compared without regard to
// case, so that messages have it and it may be an identity.
func (s Scheme) Signs(header string) bool {
	for _, name := range s.signs {
		if strings.EqualFold(name, header) {
			return true
		}
	}
	return false
}

// mostSignatures bounds what one request may have checked.
const mostSignatures = 16

// The refusals of a signature. Each wraps ErrSignature.
var (
	// ErrSignature is wrapped by every error of Verify.
	ErrSignature = errors.New("semel: the webhook's signature is not accepted")
	// ErrUnsigned: a header is missing that the scheme needs.
	ErrUnsigned = fmt.Errorf("%w: it is not signed by this scheme", ErrSignature)
	// ErrMalformed: a header of the signature cannot be read, or stands there twice, or has no
	// signature that could be right.
	ErrMalformed = fmt.Errorf("%w: its headers cannot be read", ErrSignature)
	// ErrForged: no secret makes this signature of this body.
	ErrForged = fmt.Errorf("%w: no secret makes it of this body", ErrSignature)
	// ErrOld: its time is too long ago. Verify checks the signature first; Signed cannot.
	ErrOld = fmt.Errorf("%w: it was made too long ago", ErrSignature)
	// ErrEarly: its time is too far ahead. Verify checks the signature first; Signed cannot.
	ErrEarly = fmt.Errorf("%w: its time is too far ahead; compare the clocks", ErrSignature)
)

// Verifier checks the signatures of one scheme. It is safe for use by several goroutines.
type Verifier struct {
	scheme    Scheme
	keys      [][]byte
	tolerance time.Duration
}

// DefaultTolerance is how far a signed time may be from now unless it is said.
const DefaultTolerance = 5 * time.Minute

// NewVerifier returns a Verifier. A signature is right if one of the secrets makes it, so
// that a secret can be changed: name the new one first, and remove the old one when no
// provider signs with it any more. The tolerance of a scheme that signs a time is
// DefaultTolerance unless it is set; another scheme has none. The error says what is wrong
// with a secret and shows nothing of it.
func NewVerifier(s Scheme, secrets []string, tolerance time.Duration) (*Verifier, error) {
	v := &Verifier{scheme: s, tolerance: tolerance}
	switch {
	case s.read == nil:
		return nil, errors.New("webhook: there is no scheme; use StandardWebhooks, GitHub, Stripe or HMAC")
	case len(secrets) == 0:
		return nil, errors.New("webhook: there is no secret; give the one that the provider signs with")
	case tolerance < 0:
		return nil, fmt.Errorf("webhook: a tolerance of %v is negative; use a positive one", tolerance)
	case tolerance > 0 && !s.timed:
		return nil, fmt.Errorf("webhook: scheme %s signs no time that could be tolerated; leave the tolerance out", s.name)
	case tolerance == 0:
		v.tolerance = DefaultTolerance
	}
	for i, text := range secrets {
		key, err := s.key(text)
		if err != nil {
			return nil, fmt.Errorf("webhook: secret %d: %w", i+1, err)
		}
		v.keys = append(v.keys, key)
	}
	return v, nil
}

// Signed reports whether the headers of a request may sign its body, so that reading it may be
// worth it: they are those of the scheme, have a signature that could be right, and a time within
// the tolerance of now. Its error is ErrUnsigned, ErrMalformed, ErrOld or ErrEarly.
func (v *Verifier) Signed(h http.Header, now time.Time) error {
	_, c, err := v.read(h)
	if err != nil {
		return err
	}
	return v.timely(c, now)
}

// timely checks the signed time of a scheme that has one.
func (v *Verifier) timely(c claim, now time.Time) error {
	if !v.scheme.timed {
		return nil
	}
	switch age := now.Sub(time.Unix(c.at, 0)); {
	case age > v.tolerance:
		return ErrOld
	case age < -v.tolerance:
		return ErrEarly
	}
	return nil
}

// Verify checks that one of the secrets signed the body, which must be the raw bytes of the
// request, and that it was done within the tolerance of now. It returns the headers that are
// signed, by names in lower case. The error is one of those above.
func (v *Verifier) Verify(h http.Header, body []byte, now time.Time) (semel.Headers, error) {
	headers, c, err := v.read(h)
	if err != nil {
		return nil, err
	}
	if !v.signed(c, body) {
		return nil, ErrForged
	}
	if err := v.timely(c, now); err != nil {
		return nil, err
	}
	var out semel.Headers
	for _, name := range v.scheme.signs {
		out = append(out, semel.Header{Name: name, Value: []byte(headers[name])})
	}
	return out, nil
}

// signed compares each signature with that of each secret, in constant time, and all of
// them, whichever was right.
func (v *Verifier) signed(c claim, body []byte) bool {
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

// read takes the headers of a signature apart. A header that stands there twice says two
// things, of which another server may believe the other.
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
	c, err := v.scheme.read(found)
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

// seconds reads a time as whole seconds since 1970, in the one spelling that it has.
func seconds(text string) (int64, bool) {
	at, err := strconv.ParseInt(text, 10, 64)
	return at, err == nil && at >= 0 && at < 1<<40 && strconv.FormatInt(at, 10) == text
}

// leastSecret is the fewest bytes of a secret that is a text.
const leastSecret = 16

// plainKey is a secret that is its own key.
func plainKey(secret string) ([]byte, error) {
	switch {
	case len(secret) < leastSecret:
		return nil, fmt.Errorf("it has %d bytes, and one that nobody guesses has %d at least", len(secret), leastSecret)
	case strings.TrimSpace(secret) != secret: // of a file that was read whole: nothing would ever be signed with it
		return nil, errors.New("it begins or ends with white space, as the line end of a file; leave that out")
	}
	return []byte(secret), nil
}

// hashes are those that HMAC can be made with.
var hashes = map[string]func() hash.Hash{"sha256": sha256.New, "sha512": sha512.New, "sha1": sha1.New}
