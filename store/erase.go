package store

// Erasable reports whether the payload of a row in state s may be erased. That is allowed if the row is
// completed or discarded. Waiting, parked and dead-lettered rows must be discarded first.
func (s RowState) Erasable() bool { return s == StateCompleted || s == StateDiscarded }
