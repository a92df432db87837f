package admin

import (
	"context"
	"time"
)

// Emitter is implemented by a store with CallerTx or QueueStore and Leases that can send the outputs of
// a message again. A row that is written with Mark.Cause is an output of that cause.
type Emitter interface {
	// Emit makes the outputs of causes due again under their identities, each in its own transaction,
	// which is committed when Emit returns. Emit returns counts; outputs that an earlier Emit made
	// due are not counted again. After an error some outputs are due, and Emit can be called again.
	// Without causes it only reports whether the store supports it.
	//
	// An output is made due if its row is completed, its marker is Applied, all its calls have a known
	// outcome, its body was not removed, at least EmitOptions.Every has passed since it ended, and
	// less than its sender's window has passed since its first call. The row then waits like a row
	// that was just received, without attempts, and CallStarted.Again informs its sender. A row that
	// was completed in a transaction has no calls, so an effect in a transaction is never repeated.
	Emit(ctx context.Context, o EmitOptions) (Emitted, error)
}

// EmitInterval is the minimum time, by the store's clock, between two times that an intent is sent again
// because of duplicates, however many arrive.
const EmitInterval = time.Minute

// EmitOptions are the options of Emitter.Emit.
type EmitOptions struct {
	// Causes are values of Mark.Cause.
	Causes [][]byte
	// Every is the minimum time since an output ended, by the store's clock.
	Every time.Duration
	// Windows are, by sender, how long its provider remembers a key after the first call. An output of
	// a sender without a positive window is never too old.
	Windows map[string]time.Duration
}

// Emitted counts the outputs of one Emit.
type Emitted struct {
	// Again is the number of outputs that are due again.
	Again int
	// Recent is the number of outputs that ended less than EmitOptions.Every ago.
	Recent int
	// Forgotten is the number of outputs whose first call was so long ago that the provider may
	// have forgotten their keys.
	Forgotten int
	// Left is the number of all other outputs: waiting, parked, discarded, completed in a transaction,
	// or without a body.
	Left int
}

// Plus returns the sum of two counts.
func (e Emitted) Plus(o Emitted) Emitted {
	return Emitted{e.Again + o.Again, e.Recent + o.Recent, e.Forgotten + o.Forgotten, e.Left + o.Left}
}
