package recording

import (
	"errors"
	"hash/maphash"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/measure"
)

// hider removes identities, sources, streams and the reasons of handlers from recordings.
type hider struct {
	seed maphash.Seed // the seed of the hashes that replace them
	ids  bool         // hide nothing
}

// hiddenReason replaces the reason of a handler, which may name a message.
const hiddenReason = "a handler's reason"

// reason returns the text that is recorded for a reason.
func (h *hider) reason(r semel.Reason) string {
	if h.ids || measure.OwnReason(r) {
		return string(r)
	}
	return hiddenReason
}

// errUnrecorded replaces every error in a replay, because a recording has no texts of errors.
var errUnrecorded = errors.New("its text is not recorded")
