package contract

// StepDone is a step of a message that has taken effect.
type StepDone struct {
	// Name is the step's, 1 to MaxStepName bytes.
	Name string
	// Output is what the step left for those after it, at most MaxStepOutput bytes; nil if
	// it left nothing.
	Output []byte
}

// What a row keeps of steps, at most.
const (
	MaxSteps      = 32
	MaxStepName   = 64
	MaxStepOutput = 64 << 10
)

// StepWriter is an optional ability of a store with Leases: a message whose handler is
// made of steps. The end of a claim says with ClaimEnding.Steps which steps have taken
// effect, which the row keeps from that commit on; a claim tells them (StoredRow.Steps).
// So what a row says and the effects of its steps are one commit.
type StepWriter interface {
	// MaxOutput is how many bytes the output of one step may have.
	MaxOutput() int
}
