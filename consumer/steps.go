package consumer

import (
	"context"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer/internal/engine"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/store"
)

// Step is a part of a handler that takes effect by itself; see NewSteps.
type Step[Tx any] struct {
	// Name is kept in the message's row, 1 to steplimit.Name bytes. It is what a
	// later release knows a completed step by, so it stays.
	Name string
	// Run does the step, as a handler does its message: its effect through tx, its
	// outcome by its error. What it returns beside nil is kept with the commit of the
	// step, at most steplimit.Output bytes, and told to the steps after it. For a
	// call to somebody else, m.IdempotencyKey(Name) is the same in each attempt.
	Run func(ctx context.Context, tx Tx, m *semel.Message, done Done) (output []byte, err error)
}

// Done is what of a message has taken effect: the steps before the one that runs.
type Done struct{ steps []store.StepDone }

// Output is what the step of this name returned; nil if it returned nothing, or is not
// among those that are done. It must not be changed.
func (d Done) Output(step string) []byte {
	for i := range d.steps {
		if d.steps[i].Name == step {
			return d.steps[i].Output
		}
	}
	return nil
}

// NewSteps is New for a handler that is made of steps, in this order. Each step runs in a
// transaction of its own, whose commit also writes into the message's row that the step is
// done: a step that is done never runs again, however often its process dies, and the next
// attempt begins with the step after it, in whichever process. The message is applied with
// its last step. Attempts are counted by step.
//
// Between two steps the message waits in the inbox, where it keeps its place in its line
// and its stream. So it needs StrategyInbox, a store with store.Limits.StepOutput, and, where
// there is a Source, AckOnReceipt; Process is not for it. With NewLeasedSteps no
// transaction is open while a step runs: a step is then done at least once, and never
// again after its end was written.
//
// A row whose completed steps are not the first ones of these, in this order, or that
// were all of them, is parked with reason "steps changed": a release that renames, removes or
// moves a step does not guess what became of it.
func NewSteps[Tx any](st store.TxStore[Tx], steps []Step[Tx], c Config, plans ...faults.Plan) (*Consumer[Tx], error) {
	return newConsumer(st, engine.Handler[Tx]{Steps: stepsOf(steps)}, c, plans)
}

// stepsOf returns the steps as the engine runs them.
func stepsOf[Tx any](all []Step[Tx]) []engine.Step[Tx] {
	out := make([]engine.Step[Tx], len(all))
	for i := range all {
		out[i].Name = all[i].Name
		if run := all[i].Run; run != nil {
			out[i].Run = func(ctx context.Context, tx Tx, m *semel.Message, done []store.StepDone) ([]byte, error) {
				return run(ctx, tx, m, Done{done})
			}
		}
	}
	return out
}
