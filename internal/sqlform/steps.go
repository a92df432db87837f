package sqlform

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/semel-go/semel/store"
)

// step is a step as the tables have it.
type step struct {
	Name   string `json:"name"`
	Output []byte `json:"output,omitempty"`
	// None tells an output that is none from one that is empty.
	None bool `json:"none,omitempty"`
}

// Steps is the text of steps of a row in the tables. It is plain ASCII but for names.
func Steps(c Crypt, row int64, done []store.StepDone) (string, error) {
	all := make([]step, len(done))
	for i, d := range done {
		output, err := c.Hide(ofStep, rowID(row), d.Output)
		if err != nil {
			return "", err
		}
		all[i] = step{d.Name, output, d.Output == nil}
	}
	text, err := json.Marshal(all)
	return string(text), err
}

// ReadSteps is the inverse of Steps.
func ReadSteps(c Crypt, row int64, text []byte) ([]store.StepDone, error) {
	if text == nil {
		return nil, nil
	}
	var all []step
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, err
	}
	done := make([]store.StepDone, len(all))
	for i, s := range all {
		if c.required() && len(s.Output) > 0 && !bytes.HasPrefix(s.Output, marked) {
			return nil, fmt.Errorf("the output of step %q is in plain text, and the store requires encryption", s.Name)
		}
		output, err := c.Show(ofStep, rowID(row), s.Output)
		if err != nil {
			return nil, err
		}
		done[i] = store.StepDone{Name: s.Name, Output: output}
		if s.Output == nil && !s.None {
			done[i].Output = []byte{}
		}
	}
	return done, nil
}

// ofStep is the kind of what is encrypted of steps, which belongs to their row.
const ofStep = "output of a step"

func rowID(row int64) []byte { return strconv.AppendInt(nil, row, 10) }
