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

// The versions of the rules that make fingerprints. They are stored with every
// fingerprint, and only fingerprints of one version are compared, so that a
// changed rule makes no false conflicts. A version is never reused.
const (
	// fingerprintBodyVersion: the canonical form of a JSON body, any other
	// body byte for byte.
	fingerprintBodyVersion = 1
	// fingerprintSelected is the first of the versions of selected values,
	// which go up to 255. Those between are for later rules of whole bodies, but for 15,
	// which is that of intents, and 14, which stores give to fingerprints that they cannot decrypt.
	fingerprintSelected = 16
)

// FingerprintBody recognises the body and is the default. A body that is
// strict JSON is compared by its value: white space, the order of members,
// escapes and the format of numbers (1.0 and 1) make no difference. Any other
// body is compared byte for byte. Headers are left out: trace context and
// attempt counts differ between copies of one message. The hash is a SHA-256
// cut to 128 bits.
//
// A producer that adds an optional field on the way makes another body; where
// that happens between copies use FingerprintOf.
func FingerprintBody() Fingerprinter { return bodyFingerprint{} }

type bodyFingerprint struct{}

// What begins the hash of a JSON body, and of any other one.
var (
	ofJSON  = digest.Domain("fingerprint/json")
	ofBytes = digest.Domain("fingerprint/bytes")
)

func (bodyFingerprint) Validate() error { return nil }

func (f bodyFingerprint) Fingerprint(m *semel.Message) (semel.Fingerprint, error) {
	return borrowed(f, m)
}

// FingerprintIn is Fingerprint in a room of the engine's.
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

// borrowed makes a fingerprint for who has no room.
func borrowed(by reading.Printer, m *semel.Message) (semel.Fingerprint, error) {
	room := reading.Borrow()
	defer room.Return()
	return by.FingerprintIn(room, m)
}

// FingerprintNone keeps no fingerprint: the same identity with other content
// is a duplicate like any other.
func FingerprintNone() Fingerprinter { return noFingerprint{} }

type noFingerprint struct{}

func (noFingerprint) Validate() error { return nil }
func (noFingerprint) Fingerprint(*semel.Message) (semel.Fingerprint, error) {
	return semel.Fingerprint{}, nil
}

// FingerprintIn reads nothing.
func (noFingerprint) FingerprintIn(*reading.Room, *semel.Message) (semel.Fingerprint, error) {
	return semel.Fingerprint{}, nil
}

// FingerprintOf recognises the values that the selectors find, in their order
// (see By); JSON values are compared as FingerprintBody compares
// them, and a missing value differs from null and from an empty one. A body
// that is no strict JSON while a selector points into it is an error.
//
// The fingerprint's version is made from the list of selectors: after a change
// of the list, old and new fingerprints are not compared. There are 240
// versions, so that one changed list in 240 has the version of the old and
// makes conflicts with messages marked before the change.
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
	f.begin = digest.AppendPart(digest.Domain("fingerprint/values"), rule)
	return f
}

type selectedFingerprint struct {
	selectors []selectors.Selector
	faults    []error
	// begin is what the hash begins with. It has the hash of the list, so that
	// fingerprints of different lists differ.
	begin   []byte
	version uint8
}

func (f *selectedFingerprint) Validate() error {
	faults := append([]error(nil), f.faults...)
	constant := true
	for _, s := range f.selectors {
		constant = constant && s.Constant()
		if s.Coordinate() || s.Place() == selectors.PlaceTopic || (s.Place() == selectors.PlaceHeader && brokerheader.Set(s.Argument())) {
			faults = append(faults, fmt.Errorf("%q cannot be part of a fingerprint: it differs between copies of one message, which would all be conflicts; leave it out", s))
		}
	}
	if constant {
		faults = append(faults, errors.New("a fingerprint needs at least one selector that is no constant, such as body:/amount"))
	}
	return errors.Join(faults...)
}

func (f *selectedFingerprint) Fingerprint(m *semel.Message) (semel.Fingerprint, error) {
	return borrowed(f, m)
}

// FingerprintIn is Fingerprint in a room of the engine's.
func (f *selectedFingerprint) FingerprintIn(room *reading.Room, m *semel.Message) (semel.Fingerprint, error) {
	if err := errors.Join(f.faults...); err != nil {
		return semel.Fingerprint{}, err
	}
	h := room.Hash()
	_, _ = h.Write(f.begin)
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
