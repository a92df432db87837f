package identity

import (
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/brokerheader"
	"github.com/semel-go/semel/internal/digest"
	"github.com/semel-go/semel/internal/reading"
	"github.com/semel-go/semel/internal/selectors"
)

// A fingerprint is stored with the version of its rule. Only fingerprints with the same version are compared,
// so that a changed rule causes no false conflicts. A version is never used for a second rule.
const (
	// fingerprintBodyVersion is the version of fingerprints of whole bodies: of the canonical form of a JSON
	// body, or of the bytes of any other body.
	fingerprintBodyVersion = 1
	// fingerprintSelected is the first version for selected values. The last version for selected values is 255.
	// Versions below fingerprintSelected are for future rules of whole bodies, with two exceptions: 15 is for intents,
	// and stores use 14 for fingerprints that they cannot decrypt.
	fingerprintSelected = 16
)

// FingerprintBody, the default, computes fingerprints of the body. Bodies of strict JSON are compared by value: white
// space, the order of members, escapes and the format of numbers (1.0 and 1) make no difference. Bodies that are not
// strict JSON are compared byte for byte. Headers are ignored, because trace context and delivery counts differ between
// copies of one message. The hash is a SHA-256 hash that is truncated to 128 bits.
//
// If a producer adds an optional field between two copies, the bodies differ. If producers add fields, use
// FingerprintOf.
func FingerprintBody() Fingerprinter { return bodyFingerprint{} }

type bodyFingerprint struct{}

// The prefixes for the hash of a JSON body and for the hash of any other body.
var (
	ofJSON  = digest.Domain("fingerprint/json")
	ofBytes = digest.Domain("fingerprint/bytes")
)

func (bodyFingerprint) Validate() error { return nil }

func (f bodyFingerprint) Fingerprint(m *semel.Message) (semel.Fingerprint, error) {
	return borrowed(f, m)
}

// FingerprintIn does the same as Fingerprint, and reuses the memory of room.
func (bodyFingerprint) FingerprintIn(room *reading.Room, m *semel.Message) (semel.Fingerprint, error) {
	h := room.Hash()
	if v, err := room.Body(m.Body); err == nil {
		_, _ = h.Write(ofJSON)
		v.WriteCanonical(h)
	} else {
		_, _ = h.Write(ofBytes)
		digest.Part(h, m.Body)
	}
	return cut(room.Sum(), fingerprintBodyVersion), nil
}

// borrowed calls by.FingerprintIn with a temporary room.
func borrowed(by reading.Printer, m *semel.Message) (semel.Fingerprint, error) {
	room := reading.Borrow()
	defer room.Return()
	return by.FingerprintIn(room, m)
}

// FingerprintNone computes no fingerprints. A message with a known identity is then a duplicate even if its
// content differs.
func FingerprintNone() Fingerprinter { return noFingerprint{} }

type noFingerprint struct{}

func (noFingerprint) Validate() error { return nil }
func (noFingerprint) Fingerprint(*semel.Message) (semel.Fingerprint, error) {
	return semel.Fingerprint{}, nil
}

// FingerprintIn returns the zero Fingerprint.
func (noFingerprint) FingerprintIn(*reading.Room, *semel.Message) (semel.Fingerprint, error) {
	return semel.Fingerprint{}, nil
}

// FingerprintOf computes fingerprints of the values that the selectors find, in the order of the selectors
// (see By). JSON values are compared as with FingerprintBody. A missing value differs from null and from an
// empty value. If a selector points into a body that is not strict JSON, the result is an error.
//
// The version of the fingerprint depends on the list of selectors. So fingerprints from before and after a change of
// the list are not compared. Because there are 240 versions, one change in 240 gives the same version by chance. If
// both lists give the same version, redeliveries of messages that were marked before the change become conflicts.
func FingerprintOf(texts ...string) Fingerprinter {
	f := &selectedFingerprint{}
	h := sha256.New()
	digest.Begin(h, "fingerprint/selectors")
	for _, text := range texts {
		s, err := selectors.Parse(text)
		f.faults = append(f.faults, err)
		f.selectors = append(f.selectors, s)
		digest.Part(h, []byte(text))
	}
	rule := h.Sum(nil)
	f.version = fingerprintSelected + uint8(uint(rule[0])%(256-fingerprintSelected))
	f.hashPrefix = digest.AppendPart(digest.Domain("fingerprint/values"), rule)
	return f
}

type selectedFingerprint struct {
	selectors []selectors.Selector
	faults    []error
	// hashPrefix is the prefix of the hash, which contains a hash of the list, so that fingerprints of different
	// lists differ.
	hashPrefix []byte
	version    uint8
}

func (f *selectedFingerprint) Validate() error {
	faults := append([]error(nil), f.faults...)
	constant := true
	for _, s := range f.selectors {
		constant = constant && s.Constant()
		if s.Coordinate() || s.Place() == selectors.PlaceTopic || (s.Place() == selectors.PlaceHeader && brokerheader.Set(s.Argument())) {
			faults = append(faults, fmt.Errorf("%q cannot be part of a fingerprint: it differs between copies of one message, so every copy would be a conflict; leave it out", s))
		}
	}
	if constant {
		faults = append(faults, errors.New("a fingerprint needs at least one selector other than a constant, such as body:/amount"))
	}
	return errors.Join(faults...)
}

func (f *selectedFingerprint) Fingerprint(m *semel.Message) (semel.Fingerprint, error) {
	return borrowed(f, m)
}

// FingerprintIn does the same as Fingerprint, and reuses the memory of room.
func (f *selectedFingerprint) FingerprintIn(room *reading.Room, m *semel.Message) (semel.Fingerprint, error) {
	if err := errors.Join(f.faults...); err != nil {
		return semel.Fingerprint{}, err
	}
	h := room.Hash()
	_, _ = h.Write(f.hashPrefix)
	body := selectors.Body{Message: m, Room: room}
	for i := range f.selectors {
		if err := f.selectors[i].WriteCanonical(h, &body); err != nil {
			return semel.Fingerprint{}, err
		}
	}
	return cut(room.Sum(), f.version), nil
}

func cut(sum []byte, version uint8) semel.Fingerprint {
	f := semel.Fingerprint{Version: version}
	copy(f.Sum[:], sum)
	return f
}
