package store

// StepDone is a completed step of a message.
type StepDone struct {
	// Name is the name of the step, 1 to MaxStepName bytes.
	Name string
	// Output is the output of the step for later steps, at most MaxStepOutput bytes; nil if it
	// has none.
	Output []byte
}

// The limits of the steps that a row stores.
const (
	MaxSteps      = 32
	MaxStepName   = 64
	MaxStepOutput = 64 << 10
)
