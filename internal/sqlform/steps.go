package sqlform

import (
	"encoding/json"

	"github.com/semel-go/semel/contract"
)

// step is a step as the tables have it.
type step struct {
	Name   string `json:"name"`
	Output []byte `json:"output,omitempty"`
	// None tells an output that is none from one that is empty.
	None bool `json:"none,omitempty"`
}

// Steps is the text of steps in the tables. It is plain ASCII but for names.
func Steps(done []contract.StepDone) string {
	all := make([]step, len(done))
	for i, d := range done {
		all[i] = step{d.Name, d.Output, d.Output == nil}
	}
	text, _ := json.Marshal(all) // of texts and bytes, which always have a form
	return string(text)
}

// ReadSteps is the inverse of Steps.
func ReadSteps(text []byte) ([]contract.StepDone, error) {
	if text == nil {
		return nil, nil
	}
	var all []step
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, err
	}
	done := make([]contract.StepDone, len(all))
	for i, s := range all {
		done[i] = contract.StepDone{Name: s.Name, Output: s.Output}
		if s.Output == nil && !s.None {
			done[i].Output = []byte{}
		}
	}
	return done, nil
}
