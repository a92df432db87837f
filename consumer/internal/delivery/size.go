package delivery

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/semelheader"
	"github.com/semel-go/semel/store"
)

// KeptOfLargest is the number of bytes that are kept of a body that is too large.
const KeptOfLargest = 64 << 10

// isTooLarge reports whether the body is longer than MaxBody.
func (c *Rules) isTooLarge(m *semel.Message) bool { return int64(len(m.Body)) > c.MaxBody }

func (c *Rules) tooLarge(m *semel.Message) error {
	return fmt.Errorf("the body has %d bytes, more than the limit of %d; its first 64 KiB are kept", len(m.Body), c.MaxBody)
}

// cut replaces a body that is too large by a copy of its first bytes, and adds a header with the original
// length.
func (c *Rules) cut(m *semel.Message) {
	if !c.isTooLarge(m) {
		return
	}
	length := strconv.AppendInt(nil, int64(len(m.Body)), 10)
	m.Body = bytes.Clone(m.Body[:KeptOfLargest])
	if _, there := m.Headers.Get(semelheader.Length); !there {
		m.Headers = append(slices.Clip(m.Headers), semel.Header{Name: semelheader.Length, Value: length})
	}
}

// messageOverhead is approximately the number of bytes that a message takes in memory in addition to its
// contents: for the Delivery, and for the source's message.
const messageOverhead = 1024

// clampSize converts n to the type of an item's size.
func clampSize(n int) int32 { return int32(min(n, math.MaxInt32)) }

func sizeOf(m *semel.Message) int {
	n := messageOverhead + len(m.Body) + len(m.Key)
	for i := range m.Headers {
		n += len(m.Headers[i].Name) + len(m.Headers[i].Value)
	}
	return n
}

// outputsSize returns the number of bytes that the outputs of steps take in memory.
func outputsSize(done []store.StepDone) (n int) {
	for i := range done {
		n += len(done[i].Name) + len(done[i].Output)
	}
	return n
}
