package model

import (
	"cmp"
	"slices"

	"github.com/semel-go/semel/store"
)

// Removed is the last marker that the store removed for an identity, and the number of such removals (for the
// checker).
type Removed struct {
	Marker
	Times int
}

// MayGo returns the identities that may be removed, the oldest first. An identity may be removed if it and all
// its rows ended before s.Low, and no transaction has locked it.
func (s *Store) MayGo() (due []string) {
	stays := map[string]bool{}
	for _, r := range s.Inbox {
		if !r.isFinal() || r.Changed >= s.Low {
			stays[r.Key.ID] = true
		}
	}
	for id, m := range s.Markers {
		ended := m.Outcome == store.Applied || m.Outcome == store.Discarded || m.Outcome == store.DeadLettered
		if ended && m.At < s.Low && !stays[id] && s.Locks[id] == nil {
			due = append(due, id)
		}
	}
	slices.SortFunc(due, func(x, y string) int {
		return cmp.Or(cmp.Compare(s.Markers[x].At, s.Markers[y].At), cmp.Compare(x, y))
	})
	return due
}

// Old reports whether a message is so old that its marker may have been removed.
func (s *Store) Old(m *Message) bool { return m.Refused == "" && m.Age < s.Low }

// WasRemoved reports whether the store has removed the marker of an identity.
func (s *Store) WasRemoved(id string) bool { return s.Gone[id].Times > 0 }
