package store

// Erasable reports whether the payload of a row in state s may be erased. The payload of a completed or discarded row
// may be erased. Waiting, parked and dead-lettered rows must be discarded first.
func (s RowState) Erasable() bool { return s == StateCompleted || s == StateDiscarded }
