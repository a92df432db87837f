package engine

import (
	"github.com/semel-go/semel/internal/machine"
)

// step calls Step of the machine and records the event and the actions.
func (e *Engine[Tx]) step(event machine.Event, now machine.Time) []machine.Action {
	if e.recording == nil {
		return e.machine.Step(event, now)
	}
	e.recording.Event(event, now)
	ended := false
	defer func() {
		if !ended { // the step panics, and the process crashes
			e.config.Recorder.Tell("no panic")
		}
	}()
	actions := e.machine.Step(event, now)
	ended = true
	if broken := e.recording.Actions(actions); broken != nil {
		e.config.Logger.Error("the engine has broken a law: please report it, with the recording", "consumer", e.config.PublicName, "law", broken.Law, "how", broken.How)
		e.config.Recorder.Tell(broken.Law)
	}
	return actions
}

// manySkipped is the number of skipped messages after which a consumer warns that its filter has selected no
// message.
const manySkipped = 1000

// noteSkipping warns that the filter has excluded every message so far, which is the effect of a misspelt
// condition. noteSkipping warns once during the run and again at its end.
func (e *Engine[Tx]) noteSkipping(over bool) {
	skipped := e.counts.Skipped // written by this goroutine only
	if skipped == 0 || e.took || !over && (e.skipping || skipped < manySkipped) {
		return
	}
	text := "filter has left out everything so far"
	if over {
		text = "filter has left out everything that was read"
	}
	e.skipping = true
	e.config.Logger.Warn(text+"; compare its conditions with the types and headers that messages have", "consumer", e.config.Consumer, "skipped", skipped)
}
