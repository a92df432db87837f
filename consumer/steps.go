package consumer

import (
	"context"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer/internal/engine"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/store"
)

// Step is a part of a handler that has its own effect; see NewSteps.
type Step[Tx any] struct {
	// Name is stored in the message's row, 1 to steplimit.Name bytes. Later releases recognise a completed
	// step by its name, so the name must not change.
	Name string
	// Run performs the step, like a handler: Run writes its effect through tx and returns nil or an error. The output
	// is stored in the transaction of the step and passed to later steps. The output of a step has at most
	// steplimit.Output bytes. If the step calls another system, pass m.IdempotencyKey(Name), which is the same in each
	// attempt.
	Run func(ctx context.Context, tx Tx, m *semel.Message, done Done) (output []byte, err error)
}

// Done contains the completed steps of a message.
type Done struct{ steps []store.StepDone }

// Output returns the output of the step with the given name. The result is nil if the step returned no output or is not
// completed. The caller must not change the returned output.
func (d Done) Output(step string) []byte {
	for i := range d.steps {
		if d.steps[i].Name == step {
			return d.steps[i].Output
		}
	}
	return nil
}

// NewSteps is New for a handler that consists of steps, which run in the order of the parameter steps. Each step runs
// in its own transaction, which also records in the message's row that the step is completed. A completed step never
// runs again, even if its process crashes; the next attempt, in any process, begins with the following step. The
// message is applied with its last step. Attempts are counted for each step.
//
// Between two steps the message waits in the inbox. Later messages of its key, partition or stream wait until
// the message has ended. NewSteps needs StrategyInbox, a store with store.Limits.StepOutput and, if there is
// a Source, AckOnReceipt. Process cannot be used. With NewLeasedSteps no transaction is open while a step
// runs. A step of NewLeasedSteps runs at least once, and never again after its completion was recorded.
//
// A row is parked with the reason "steps changed" if its completed steps are not the first elements of the parameter
// steps, or if no step is left. So a release that renames, removes or reorders steps cannot run a wrong step.
func NewSteps[Tx any](st store.TxStore[Tx], steps []Step[Tx], c Config, plans ...faults.Plan) (*Consumer[Tx], error) {
	return newConsumer(st, engine.Handler[Tx]{Steps: stepsOf(steps)}, c, plans)
}

// stepsOf converts the steps to the engine's type.
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
