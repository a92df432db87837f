package webhook

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// HMACOptions describe the signatures of a provider that uses none of the known schemes.
type HMACOptions struct {
	// Header is the header with the signature. Required.
	Header string
	// Prefix precedes the signature in the header, such as sha256= or v0=.
	Prefix string
	// Encoding is hex, the default, or base64.
	Encoding string
	// Hash is sha256, the default, sha512 or sha1.
	Hash string
	// Signed is the signed text, with the placeholders {body}, {timestamp} and {id}; default {body}. {body}
	// must be the last placeholder. After {timestamp} and {id}, there must be a character that never occurs
	// in their values.
	Signed string
	// Timestamp is the header of {timestamp}, in seconds since 1970.
	Timestamp string
	// ID is the header of {id}. The header ID may be used as identity.
	ID string
}

// HMAC returns the scheme of a provider that sends an HMAC in a header. For example, the options for Slack
// are:
//
//	HMACOptions{Header: "x-slack-signature", Prefix: "v0=", Signed: "v0:{timestamp}:{body}",
//		Timestamp: "x-slack-request-timestamp"}
//
// A secret is a text of at least 16 bytes. If the options have a fault, the error describes the fault.
func HMAC(o HMACOptions) (Scheme, error) {
	o = o.withDefaults()
	decode, known := map[string]func(string) ([]byte, error){"hex": hex.DecodeString, "base64": base64.StdEncoding.DecodeString}[o.Encoding]
	hash, hashed := hashes[o.Hash]
	before, bodyLast := strings.CutSuffix(o.Signed, "{body}")
	switch {
	case o.Header == "":
		return Scheme{}, errors.New("webhook: Header is empty; set it to the header that contains the signature")
	case !known:
		return Scheme{}, fmt.Errorf("webhook: encoding %q is unknown; use hex or base64", o.Encoding)
	case !hashed:
		return Scheme{}, fmt.Errorf("webhook: hash %q is unknown; use sha256, sha512 or sha1", o.Hash)
	case !bodyLast:
		return Scheme{}, fmt.Errorf("webhook: Signed %q does not end with {body}", o.Signed)
	}
	if err := o.checkPlaceholders(before); err != nil {
		return Scheme{}, err
	}
	for _, name := range []string{o.Header, o.Timestamp, o.ID} {
		if name != "" && !isHeaderName(name) {
			return Scheme{}, fmt.Errorf("webhook: %q is not a valid name of a header", name)
		}
	}
	s := Scheme{name: "hmac", headers: []string{o.Header}, timed: o.Timestamp != "", hash: hash, deriveKey: plainKey}
	for _, name := range []string{o.ID, o.Timestamp} {
		if name != "" {
			s.headers, s.signs = append(s.headers, name), append(s.signs, name)
		}
	}
	s.parseHeaders = func(h map[string]string) (claim, error) { return o.claim(h, before, decode) }
	return s, nil
}

func (o HMACOptions) withDefaults() HMACOptions {
	o.Header, o.Timestamp, o.ID = strings.ToLower(o.Header), strings.ToLower(o.Timestamp), strings.ToLower(o.ID)
	if o.Encoding == "" {
		o.Encoding = "hex"
	}
	if o.Hash == "" {
		o.Hash = "sha256"
	}
	if o.Signed == "" {
		o.Signed = "{body}"
	}
	return o
}

// checkPlaceholders reports faults of the placeholders: a missing placeholder, or a placeholder that is not separated
// from the next placeholder. Without a separator, two different requests could have the same signature.
func (o HMACOptions) checkPlaceholders(before string) error {
	for place, header := range map[string]string{"{timestamp}": o.Timestamp, "{id}": o.ID} {
		at := strings.Index(before, place)
		switch {
		case (at >= 0) != (header != "") || strings.Count(before, place) > 1:
			return fmt.Errorf("webhook: Signed must contain %s exactly once if its header is set, and not otherwise", place)
		case at < 0:
			continue
		}
		if next := before[at+len(place):]; next == "" || next[0] == '{' || next[0] >= '0' && next[0] <= '9' {
			return fmt.Errorf("webhook: in Signed %q, %s must be followed by a character that it cannot contain", o.Signed, place)
		}
	}
	return nil
}

func (o HMACOptions) claim(h map[string]string, before string, decode func(string) ([]byte, error)) (claim, error) {
	text, has := strings.CutPrefix(h[o.Header], o.Prefix)
	sum, err := decode(text)
	if !has || err != nil {
		return claim{}, ErrMalformed
	}
	c := claim{before: before, signatures: [][]byte{sum}}
	if o.Timestamp != "" {
		at, ok := parseSeconds(h[o.Timestamp])
		if !ok {
			return claim{}, ErrMalformed
		}
		c.signedTime = at
	}
	if o.ID != "" && strings.ContainsAny(h[o.ID], before[strings.Index(before, "{id}")+4:][:1]) {
		return claim{}, ErrMalformed
	}
	c.before = strings.NewReplacer("{timestamp}", h[o.Timestamp], "{id}", h[o.ID]).Replace(before)
	return c, nil
}
