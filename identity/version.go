package identity

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/reading"
	"github.com/semel-go/semel/internal/selectors"
	"github.com/semel-go/semel/internal/versions"
)

// Versioner finds a message's position in a stream: the stream, such as an aggregate, and the version. A
// Versioner must be safe for concurrent use; see Identity.
type Versioner interface {
	// Version returns the stream's name, which has 1 to 512 bytes, and the version, which is at least 1. If the message
	// has no version, Version returns an error with the cause.
	Version(m *semel.Message) (stream string, number int64, err error)
	// Validate returns an error if the Versioner must not be used, and nil if it may be used.
	Validate() error
}

// Versions finds versions by selectors. See Stream.
type Versions struct {
	stream *Selected
	number selectors.Selector
	has    bool
	faults []error
}

// Stream returns a Versions that finds a message's stream by selectors, as By finds an identity. The stream
// is one value, or consists of several values. At sets the selector of the version:
//
//	identity.Stream("body:/order").At("body:/version")
func Stream(selectors ...string) *Versions { return &Versions{stream: By(selectors...)} }

// At sets the selector of the version. A version is a whole number from 1 to 9223372036854775806, as a JSON
// number or as decimal digits. At changes v and returns v.
func (v *Versions) At(number string) *Versions {
	selector, err := selectors.Parse(number)
	if err != nil {
		v.faults = append(v.faults, err)
	}
	v.number, v.has = selector, true
	return v
}

// Validate returns all faults of the selectors.
func (v *Versions) Validate() error {
	faults := append(append([]error(nil), v.stream.faults...), v.faults...)
	for _, s := range v.stream.ids {
		if s.Coordinate() || s.Optional() {
			faults = append(faults, fmt.Errorf("%q cannot name a stream: a stream is the aggregate that messages are about, such as body:/order, and each message names it", s))
		}
	}
	switch {
	case !v.has:
		faults = append(faults, errors.New("a stream needs the selector of the version beside it: Stream(\"body:/order\").At(\"body:/version\")"))
	case v.number.Constant() || v.number.Coordinate():
		faults = append(faults, fmt.Errorf("%q cannot be a version: the producer counts the versions of each stream; a broker's offset has gaps, and a constant stands still", v.number))
	case v.number.Time():
		faults = append(faults, fmt.Errorf("%q cannot be a version: the producer counts the versions of each stream; after a time nobody knows the next", v.number))
	case v.number.Optional():
		faults = append(faults, fmt.Errorf("%q: leave the question mark out; what becomes of a message without a version is a setting of its own", v.number))
	}
	return errors.Join(faults...)
}

// Version implements Versioner.
func (v *Versions) Version(m *semel.Message) (stream string, number int64, err error) {
	room := reading.Borrow()
	defer room.Return()
	return v.FindIn(room, m)
}

// FindIn does the same as Version, and reuses the memory of room.
func (v *Versions) FindIn(room *reading.Room, m *semel.Message) (stream string, number int64, err error) {
	body := selectors.Body{Message: m, Room: room}
	if stream, err = v.stream.id(&body); err != nil {
		return "", 0, fmt.Errorf("its stream: %w", err)
	}
	found, err := v.number.In(&body)
	if err != nil {
		return "", 0, fmt.Errorf("its version: %w", err)
	}
	number, err = versionNumber(found)
	if err == nil {
		err = versions.CheckStream(stream)
	}
	return stream, number, err
}

// versionNumber converts a selected value to a version.
func versionNumber(v selectors.Value) (int64, error) {
	var digits string
	switch v.Kind() {
	case selectors.Missing:
		return 0, errors.New("its version is missing")
	case selectors.Number:
		digits = v.Decimal()
	case selectors.String, selectors.Bytes:
		digits = v.Text()
	default:
		return 0, fmt.Errorf("its version is %s, and no number", v.Kind())
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	switch {
	case err != nil || n > versions.Max || digits != strconv.FormatInt(n, 10):
		return 0, fmt.Errorf("its version is %.40q, and no whole number from 1 to %d in plain digits", digits, int64(versions.Max))
	case n < 1:
		return 0, fmt.Errorf("its version is %d; the first is 1", n)
	}
	return n, nil
}

// UsesType reports whether the stream or the version is found by the selector type.
func (v *Versions) UsesType() bool {
	uses := v.number.Place() == selectors.PlaceType
	for i := range v.stream.ids {
		uses = uses || v.stream.ids[i].Place() == selectors.PlaceType
	}
	return uses
}
