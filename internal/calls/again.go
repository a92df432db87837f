package calls

import (
	"time"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

// Sent is what a row says of an output that is to be sent again.
type Sent struct {
	// Sender is the consumer whose row it is.
	Sender string
	State  store.RowState
	// Started and Finished are its calls; see store.StoredRow.
	Started, Finished int
	// Since is how long ago the first of them was begun, Ended how long ago the row ended.
	Since, Ended time.Duration
	BodyRemoved  bool
}

// EmitAgain counts one output by what is to become of it: Again says that it is to be made
// due.
func EmitAgain(o *admin.EmitOptions, s *Sent) admin.Emitted {
	window := o.Windows[s.Sender]
	switch {
	case s.State != store.StateCompleted || s.Started == 0 || s.Finished < s.Started || s.BodyRemoved:
		return admin.Emitted{Left: 1}
	case window > 0 && s.Since >= window:
		return admin.Emitted{Forgotten: 1}
	case s.Ended < o.Every:
		return admin.Emitted{Recent: 1}
	}
	return admin.Emitted{Again: 1}
}
