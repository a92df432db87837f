package identity

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"sync"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/brokerheader"
	"github.com/semel-go/semel/internal/digest"
	"github.com/semel-go/semel/internal/strictjson"
)

// The versions of the rules that make fingerprints. They are stored with every
// fingerprint, and only fingerprints of one version are compared, so that a
// changed rule makes no false conflicts. A version is never reused.
const (
	// fingerprintBodyVersion: the canonical form of a JSON body, any other
	// body byte for byte.
	fingerprintBodyVersion = 1
	// fingerprintSelected is the first of the versions of selected values,
	// which go up to 255. Those between are for later rules of whole bodies.
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
func FingerprintBody() Fingerprinter { return &bodyFingerprint{} }

type bodyFingerprint struct {
	// rooms holds *bodyRoom, so that a message costs no memory.
	rooms sync.Pool
}

// bodyRoom is what making one fingerprint needs.
type bodyRoom struct {
	parser strictjson.Parser
	hash   hash.Hash
	// json begins the hash of a JSON body.
	json []byte
	sum  [sha256.Size]byte
}

func (*bodyFingerprint) Validate() error { return nil }

func (f *bodyFingerprint) Fingerprint(m *semel.Message) (semel.Fingerprint, error) {
	room, ok := f.rooms.Get().(*bodyRoom)
	if !ok {
		room = &bodyRoom{hash: sha256.New(), json: digest.Domain("fingerprint/json")}
	}
	defer f.rooms.Put(room)
	room.hash.Reset()
	if document, err := room.parser.Parse(m.Body); err == nil {
		_, _ = room.hash.Write(room.json)
		document.Root().WriteCanonical(room.hash)
	} else {
		digest.Begin(room.hash, "fingerprint/bytes")
		digest.Part(room.hash, m.Body)
	}
	return cut(room.hash.Sum(room.sum[:0]), fingerprintBodyVersion), nil
}

// FingerprintNone keeps no fingerprint: the same identity with other content
// is a duplicate like any other.
func FingerprintNone() Fingerprinter { return noFingerprint{} }

type noFingerprint struct{}

func (noFingerprint) Validate() error { return nil }
func (noFingerprint) Fingerprint(*semel.Message) (semel.Fingerprint, error) {
	return semel.Fingerprint{}, nil
}

// FingerprintOf recognises the values that the selectors find, in their order
// (see ParseSelector); JSON values are compared as FingerprintBody compares
// them, and a missing value differs from null and from an empty one. A body
// that is no strict JSON while a selector points into it is an error.
//
// The fingerprint's version is made from the list of selectors: after a change
// of the list, old and new fingerprints are not compared. There are 240
// versions, so that one changed list in 240 has the version of the old and
// makes conflicts with messages marked before the change.
func FingerprintOf(selectors ...string) Fingerprinter {
	f := &selectedFingerprint{}
	h := sha256.New()
	digest.Begin(h, "fingerprint/selectors")
	for _, text := range selectors {
		s, err := ParseSelector(text)
		f.faults = append(f.faults, err)
		f.selectors = append(f.selectors, s)
		digest.Part(h, []byte(text))
	}
	copy(f.rule[:], h.Sum(nil))
	f.version = fingerprintSelected + uint8(uint(f.rule[0])%(256-fingerprintSelected))
	return f
}

type selectedFingerprint struct {
	selectors []Selector
	faults    []error
	// rule is the hash of the list; fingerprints of different lists differ.
	rule    [sha256.Size]byte
	version uint8
}

func (f *selectedFingerprint) Validate() error {
	faults := append([]error(nil), f.faults...)
	constant := true
	for _, s := range f.selectors {
		constant = constant && s.Constant()
		if s.Coordinate() || s.place == placeTopic || (s.place == placeHeader && brokerheader.Set(s.argument)) {
			faults = append(faults, fmt.Errorf("%q cannot be part of a fingerprint: it differs between copies of one message, which would all be conflicts; leave it out", s))
		}
	}
	if constant {
		faults = append(faults, errors.New("a fingerprint needs at least one selector that is no constant, such as body:/amount"))
	}
	return errors.Join(faults...)
}

func (f *selectedFingerprint) Fingerprint(m *semel.Message) (semel.Fingerprint, error) {
	if err := errors.Join(f.faults...); err != nil {
		return semel.Fingerprint{}, err
	}
	values, err := Select(m, f.selectors)
	if err != nil {
		return semel.Fingerprint{}, err
	}
	h := sha256.New()
	digest.Begin(h, "fingerprint/values")
	digest.Part(h, f.rule[:])
	for _, v := range values {
		v.writeCanonical(h)
	}
	return cut(h.Sum(nil), f.version), nil
}

// writeCanonical writes the value so that equal values of one selector are
// written equally, and different ones differently.
func (v Value) writeCanonical(h hash.Hash) {
	_, _ = h.Write([]byte{byte(v.kind)})
	switch v.kind {
	case ValueNumber:
		digest.Part(h, strictjson.AppendDecimal(nil, v.text))
	case ValueJSON:
		if document, err := strictjson.Parse(v.text); err == nil {
			document.Root().WriteCanonical(h)
		}
	default:
		digest.Part(h, v.Bytes())
	}
}

func cut(sum []byte, version uint8) semel.Fingerprint {
	f := semel.Fingerprint{Version: version}
	copy(f.Sum[:], sum)
	return f
}
