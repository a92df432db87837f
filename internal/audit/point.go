package audit

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/semel-go/semel/internal/admin"
)

// Point identifies a line of an audit chain by its sequence and hash. People save a Point outside of the store, to
// prove later that the line existed.
type Point struct {
	Sequence int64
	Hash     admin.SealHash
}

// PointOf returns the sequence and hash of the line that a SealHead describes.
func PointOf(end admin.SealHead) Point { return Point{end.Sequence, end.Hash} }

// String returns the sequence, a colon, and the hash in hexadecimal digits.
func (p Point) String() string { return fmt.Sprintf("%d:%x", p.Sequence, p.Hash) }

// ParsePoint parses a text that Point.String has written.
func ParsePoint(s string) (p Point, err error) {
	sequence, digits, found := strings.Cut(strings.TrimSpace(s), ":")
	if p.Sequence, err = strconv.ParseInt(sequence, 10, 64); !found || err != nil || p.Sequence < 0 {
		return Point{}, fmt.Errorf("%q is not a head: give a sequence, a colon and 64 hexadecimal digits, as verify prints it", s)
	}
	if p.Hash, err = parseHash(digits); err != nil {
		return Point{}, fmt.Errorf("the head %d: %w", p.Sequence, err)
	}
	return p, nil
}

func parseHash(digits string) (h admin.SealHash, err error) {
	b, err := hex.DecodeString(digits)
	if err != nil || len(b) != len(h) {
		return h, fmt.Errorf("%q is not a hash: it needs 64 hexadecimal digits", digits)
	}
	return admin.SealHash(b), nil
}
