package model

import (
	"slices"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/store"
)

// State returns the state of the row as stores write it.
func (r *Row) State() store.RowState {
	switch {
	case r.Waits() && r.Token != 0:
		return store.StateInProgress
	case r.As == machine.AsReceived:
		return store.StateReceived
	case r.As == machine.AsWaiting:
		return store.StateFailedRetryable
	case r.As == machine.AsBlocked:
		return store.StateBlocked
	case r.As == machine.AsDiscarded:
		return store.StateDiscarded
	case r.As == machine.AsDeadLettered:
		return store.StateDeadLettered
	case r.As == machine.AsParked, r.As == machine.AsOverdue:
		return store.StateParked
	}
	return store.StateCompleted
}

// Stored converts the row to the type that package admin needs.
func (r *Row) Stored() *store.StoredRow {
	return &store.StoredRow{State: r.State(), Reason: r.Reason, CallsStarted: r.Calls.Started, CallsFinished: r.Calls.Finished}
}

// SetAside reports whether the row waits for a person.
func (r *Row) SetAside() bool {
	return (r.As == machine.AsParked || r.As == machine.AsDeadLettered) && r.waitsForPerson()
}

// waitsForPerson reports whether a person may let the row run again without further information, such as the
// outcome of a call.
func (r *Row) waitsForPerson() bool {
	return !r.Key.Conflict && r.Reason != semel.ReasonOutcomeUnknown && r.Reason != reasonname.Expired && r.Reason != reasonname.Suppressed
}

// toTwin converts the row to the type that package sqlform needs.
func (r *Row) toTwin() sqlform.Twin {
	return sqlform.Twin{State: r.State(), Conflict: r.Key.Conflict, Version: int64(r.Print.Version), Sum: sqlform.Sum(r.Print),
		Stepped: len(r.Steps) > 0, UnknownOutcome: r.Calls.Started > r.Calls.Finished}
}

// Others returns the other rows of the identity of r.
func (s *Store) Others(r *Row) (all []sqlform.Twin) {
	for _, o := range s.Inbox {
		if o != r && o.Key.ID == r.Key.ID {
			all = append(all, o.toTwin())
		}
	}
	return all
}

// Form converts the marker to the type that package sqlform needs.
func (m Marker) Form() sqlform.Marker {
	return sqlform.Marker{Outcome: int64(m.Outcome), Version: int64(m.Print.Version), Sum: sqlform.Sum(m.Print)}
}

// Owns reports whether the marker of the row's identity belongs to the row r.
func (s *Store) Owns(r *Row) bool {
	m, marked := s.Markers[r.Key.ID]
	return marked && m.Form().Of(r.toTwin(), s.Others(r))
}

// WaitsFor reports whether the marker of the row's identity belongs to the row r and has the outcome Waiting.
func (s *Store) WaitsFor(r *Row) bool {
	return s.Markers[r.Key.ID].Outcome == store.Waiting && s.Owns(r)
}

// MayRun returns nil if a person may retry the row although its identity has other rows.
func (s *Store) MayRun(r *Row) error {
	return admin.MayRun(0, s.Markers[r.Key.ID].Outcome, s.Owns(r), sqlform.StoredTwins(s.Others(r)))
}

// TakeMarker makes the marker of the row's identity belong to the row r, with the outcome Waiting.
func (s *Store) TakeMarker(r *Row) {
	m := s.Markers[r.Key.ID]
	if m.Print != r.Print {
		s.Passed[r.Key.ID] = true
	}
	s.Remember(r.Key.ID, store.Waiting, Marker{Print: r.Print, At: m.At})
}

// CloseMarker gives the marker of a discarded row the outcome Discarded, if the marker belongs to the row. If the row
// is a conflict, the marker then belongs again to the row with the first content.
func (s *Store) CloseMarker(r *Row) {
	m := s.Markers[r.Key.ID]
	if !s.Owns(r) || m.Outcome == store.Applied {
		return
	}
	closed := m.Form()
	closed.Outcome = int64(store.Discarded)
	if r.Key.Conflict {
		closed = sqlform.Returned(closed, s.Others(r))
	}
	m.Print = sqlform.Fingerprint(uint8(closed.Version), closed.Sum)
	s.Remember(r.Key.ID, store.Outcome(closed.Outcome), m)
}

// RowWith reports whether an identity has a row with the given content. A row with the content proves that an ack was
// right, although the marker now belongs to another row.
func (s *Store) RowWith(id string, print semel.Fingerprint) bool {
	return slices.ContainsFunc(s.Inbox, func(r *Row) bool { return r.Key.ID == id && !Conflicts(r.Print, print) })
}
