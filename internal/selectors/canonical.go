package selectors

import (
	"hash"

	"github.com/semel-go/semel/internal/digest"
	"github.com/semel-go/semel/internal/strictjson"
)

// WriteCanonical writes the selected value. For one selector, equal values give equal bytes, and different
// values give different bytes.
func (s *Selector) WriteCanonical(h hash.Hash, b *Body) error {
	if s.place == PlaceBody {
		inside, found, err := s.inBody(b)
		if err != nil {
			return err
		}
		if found && kinds[inside.Kind()] == JSON {
			b.write(h, append(b.Room.Buffer(), byte(JSON)))
			inside.WriteCanonical(h)
			return nil
		}
	}
	v, err := s.In(b)
	if err != nil {
		return err
	}
	text := v.Bytes()
	if v.kind == Number {
		text = strictjson.AppendDecimal(nil, v.text)
	}
	b.write(h, digest.AppendPart(append(b.Room.Buffer(), byte(v.kind)), text))
	return nil
}

// write writes buffer to h and returns the buffer to the room.
func (b *Body) write(h hash.Hash, buffer []byte) {
	_, _ = h.Write(buffer) // a hash never returns an error
	b.Room.Keep(buffer)
}
