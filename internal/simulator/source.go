package simulator

// allDone reports whether nothing is left, in the source or the inbox.
func (w *world) allDone() bool { return w.source.AllSettled() && !w.store.AnyWaits() && !w.goesOnFor() }
