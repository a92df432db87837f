package recording

import (
	"errors"
	"hash/maphash"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/measure"
)

// hider keeps names out of recordings. A nil hider hides nothing.
type hider struct {
	seed maphash.Seed
	ids  bool // identities are asked for
}

// handlers is what is written for the reason of a handler.
const handlers = "a handler's reason"

func (h *hider) reason(r semel.Reason) string {
	if h == nil || h.ids || measure.OwnReason(r) {
		return string(r)
	}
	return handlers
}

// errUnrecorded stands for an error whose text is not recorded.
var errUnrecorded = errors.New("its text is not recorded")
