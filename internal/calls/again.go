package calls

import (
	"time"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

// Sent describes the row of an output that may be sent again.
type Sent struct {
	// Sender is the consumer that owns the row.
	Sender string
	State  store.RowState
	// Started and Finished count the calls for the row; see store.StoredRow.
	Started, Finished int
	// Since is the time since the first call was started. Ended is the time since the row ended.
	Since, Ended time.Duration
	BodyRemoved  bool
}

// EmitAgain decides whether an output is sent again. The result is the count for this output: 1 in the field that names
// the decision, and 0 in all other fields. If the field Again is 1, the row must be made due.
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
