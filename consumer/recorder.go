package consumer

import (
	"time"

	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/recording"
)

// recorded begins the recording of a run's machine; nil where nothing is recorded.
func (c *settings) recorded(m *machine.Machine, policy machine.Config, began time.Time) *recording.Tape {
	r := c.Recorder.Recording()
	if r == nil {
		return nil
	}
	return r.Begin(c.Name, m, policy, began)
}

// step is the machine's, recorded.
func (e *engine[Tx]) step(event machine.Event, now machine.Time) []machine.Action {
	if e.recording == nil {
		return e.machine.Step(event, now)
	}
	e.recording.Event(event, now)
	ended := false
	defer func() {
		if !ended { // it panics, and the process with it
			e.config.Recorder.Recording().Tell("no panic")
		}
	}()
	actions := e.machine.Step(event, now)
	ended = true
	if broken := e.recording.Actions(actions); broken != nil {
		e.config.Logger.Error("the engine has broken a law: please report it, with the recording", "consumer", e.config.public, "law", broken.Law, "how", broken.How)
		e.config.Recorder.Recording().Tell(broken.Law)
	}
	return actions
}
