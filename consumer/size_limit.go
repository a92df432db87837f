package consumer

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"

	"github.com/semel-go/semel"
)

// keptOfLargest is how much is kept of a body that is too large.
const keptOfLargest = 64 << 10

// isTooLarge reports whether no store may see the body.
func (c *settings) isTooLarge(m *semel.Message) bool { return int64(len(m.Body)) > c.MaxBody }

func (c *settings) tooLarge(m *semel.Message) error {
	return fmt.Errorf("the body has %d bytes, more than the limit of %d; its first 64 KiB are kept", len(m.Body), c.MaxBody)
}

// cut bounds a body that is too large, in memory of its own, and says how long
// it was.
func (c *settings) cut(m *semel.Message) {
	if !c.isTooLarge(m) {
		return
	}
	length := strconv.AppendInt(nil, int64(len(m.Body)), 10)
	m.Body = bytes.Clone(m.Body[:keptOfLargest])
	if _, there := m.Headers.Get(semel.HeaderLength); !there {
		m.Headers = append(slices.Clip(m.Headers), semel.Header{Name: semel.HeaderLength, Value: length})
	}
}
