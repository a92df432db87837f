package semel

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
)

// HeaderLength is the header that a message set aside as ReasonTooLarge gets
// from Semel: the length of its body in bytes, in decimal digits. The body is
// the first 64 KiB of it.
const HeaderLength = "semel-length"

// keptOfLargest is how much is kept of a body that is too large.
const keptOfLargest = 64 << 10

// isTooLarge reports whether no store may see the body.
func (c *Config) isTooLarge(m *Message) bool { return int64(len(m.Body)) > c.MaxBody }

func (c *Config) tooLarge(m *Message) error {
	return fmt.Errorf("the body has %d bytes, more than the limit of %d; its first 64 KiB are kept", len(m.Body), c.MaxBody)
}

// cut bounds a body that is too large, in memory of its own, and says how long
// it was.
func (c *Config) cut(m *Message) {
	if !c.isTooLarge(m) {
		return
	}
	length := strconv.AppendInt(nil, int64(len(m.Body)), 10)
	m.Body = bytes.Clone(m.Body[:keptOfLargest])
	if _, there := m.Headers.Get(HeaderLength); !there {
		m.Headers = append(slices.Clip(m.Headers), Header{Name: HeaderLength, Value: length})
	}
}
