package sqlstore

import "context"

// beside is what a store marks in beside Semel's own tables: nothing, or a table
// of the user's, which internal/adoption knows.
type beside interface {
	// Admit refuses a scope that its rows do not tell apart from others.
	Admit(consumer, source string, generation int64) error
	// Fit is an id in the one spelling that it gives back, or why it holds none.
	Fit(source, id string) (string, error)
	// Check reports whether it is still what it has to be.
	Check(ctx context.Context) error
	// Missing adds to an error of marks that are neither written nor there.
	Missing(err error) error
}

// nothing is beside most stores.
type nothing struct{}

func (nothing) Admit(string, string, int64) error { return nil }
func (nothing) Fit(_, id string) (string, error)  { return id, nil }
func (nothing) Check(context.Context) error       { return nil }
func (nothing) Missing(error) error               { return nil }

// marksAlone: its statements are of Semel's tables only, so that advice about those
// fits an error of theirs.
func (s *Store) marksAlone() bool { return s.beside == nothing{} || s.days != nil }
