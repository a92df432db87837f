package simulator

// arose counts that a law could have been broken here: a law whose situation
// never arose was not tested (trap T107).
func (w *world) arose(law string) { w.coverage.Add("law", law) }

func (c *checker) arose(law string) { c.w.arose(law) }
