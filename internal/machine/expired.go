package machine

import (
	"errors"

	"github.com/semel-go/semel/internal/reasonname"
)

var errOld = errors.New("it is older than what is kept, or nothing tells how old it is; nothing is kept of it, and it may have taken effect before")

var errAhead = errors.New("by its time it is from the future, so that nobody could tell later whether it has taken effect: whether it does now, a person decides")

// endExpired ends a message that may have been applied before, because its marker may have been removed. The
// next batch of the message's worker writes its marker, and does not check the age of the message again.
func (m *Machine) endExpired(it *Item, ahead bool) {
	if t := it.trouble; t != nil {
		t.suspicion = suspicion{} // the handler will not run again
	}
	it.ensureFailure().last = errOld
	if ahead {
		it.ensureFailure().last = errAhead
	}
	m.endAs(it, m.config.OnExpired, reasonname.Expired)
}
