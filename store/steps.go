package store

// StepDone is a completed step of a message.
type StepDone struct {
	// Name is the name of the step, 1 to 64 bytes.
	Name string
	// Output is the output of the step for later steps, at most Limits.StepOutput bytes; nil if the step has
	// none.
	Output []byte
}
