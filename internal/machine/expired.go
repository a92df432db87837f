package machine

import (
	"errors"

	"github.com/semel-go/semel/internal/reasonname"
)

var errOld = errors.New("it is older than what is kept, or nothing tells how old it is; nothing is kept of it, and it may have taken effect before")

var errAhead = errors.New("by its time it is from the future, so that nobody could tell later whether it has taken effect: whether it does now, a person decides")

// old ends a message of which nobody can tell any more whether it has taken effect: it
// rides in its worker's next flight as a mark that does not ask.
func (m *Machine) old(it *Item, ahead bool) {
	if t := it.trouble; t != nil {
		t.suspicion = suspicion{} // no run of its follows
	}
	it.failing().last = errOld
	if ahead {
		it.failing().last = errAhead
	}
	m.endAs(it, m.config.OnExpired, reasonname.Expired)
}
