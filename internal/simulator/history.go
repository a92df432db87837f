package simulator

import (
	"fmt"

	"github.com/semel-go/semel/internal/simulator/trace"
)

// String is what histories call the delivery, or the claim.
func (h *handed) String() string {
	m := h.delivery.Message
	if c := h.claim; c != nil {
		return fmt.Sprintf("%s(%s)@inbox:%d", m.Name(), c.Row.Key.ID, c.Token())
	}
	return fmt.Sprintf("%s(%s)@%s:%d", m.Name(), m.ID, trace.Lane(h.item.Lane), h.delivery.Position)
}
