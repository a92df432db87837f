package recording

import (
	"errors"
	"hash/maphash"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/measure"
)

// hider removes identities, sources, streams and the reasons of handlers from recordings.
type hider struct {
	seed maphash.Seed // seed of the hashes that replace the removed values
	ids  bool         // nothing is removed
}

// hiddenReason is recorded in place of the reason of a handler, which may identify a message.
const hiddenReason = "a handler's reason"

// reason returns the text that is recorded in place of a reason.
func (h *hider) reason(r semel.Reason) string {
	if h.ids || measure.OwnReason(r) {
		return string(r)
	}
	return hiddenReason
}

// errUnrecorded replaces every error in a replay, because a recording contains no texts of errors.
var errUnrecorded = errors.New("its text is not recorded")
