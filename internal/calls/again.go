package calls

import (
	"time"

	"github.com/semel-go/semel/contract"
)

// Sent is what a row says of an output that is to be sent again.
type Sent struct {
	// Sender is the consumer whose row it is.
	Sender string
	State  contract.RowState
	// Started and Finished are its calls; see contract.StoredRow.
	Started, Finished int
	// Since is how long ago the first of them was begun, Ended how long ago the row ended.
	Since, Ended time.Duration
	BodyRemoved  bool
}

// EmitAgain counts one output by what is to become of it: Again says that it is to be made
// due.
func EmitAgain(o *contract.EmitOptions, s *Sent) contract.Emitted {
	window := o.Windows[s.Sender]
	switch {
	case s.State != contract.StateCompleted || s.Started == 0 || s.Finished < s.Started || s.BodyRemoved:
		return contract.Emitted{Left: 1}
	case window > 0 && s.Since >= window:
		return contract.Emitted{Forgotten: 1}
	case s.Ended < o.Every:
		return contract.Emitted{Recent: 1}
	}
	return contract.Emitted{Again: 1}
}
