package admin

import (
	"context"
	"time"
)

// Emitter is implemented by a store with CallerTx or QueueStore and Leases that can send the outputs of a
// message again. An output of a message is a row that was written with the message as its Mark.Cause.
type Emitter interface {
	// Emit makes the outputs of causes due again under their identities, each in its own transaction. When Emit
	// returns, the transactions of the outputs are committed. Emit returns the numbers of outputs. An output that an
	// earlier Emit made due is not counted again. After an error some outputs are due, and Emit can be called again. If
	// there are no causes, Emit only reports whether the store supports Emit.
	//
	// Emit makes an output due only if all of these conditions hold:
	//   - The output's row is completed, and its marker is Applied.
	//   - All calls for the output have a known outcome.
	//   - The output's body was not removed.
	//   - At least EmitOptions.Every has passed since the row was completed.
	//   - The time since the first call is shorter than the sender's window (see EmitOptions.Windows).
	//
	// An output that Emit has made due waits like a row that was just received, without attempts. CallStarted.Again
	// tells the sender that the row is sent again. A row that was completed in a transaction has no calls, so an effect
	// in a transaction is never repeated.
	Emit(ctx context.Context, o EmitOptions) (Emitted, error)
}

// EmitInterval is the minimum interval, by the store's clock, at which an intent is sent again because of
// duplicates. The interval does not depend on the number of duplicates.
const EmitInterval = time.Minute

// EmitOptions are the options of Emitter.Emit.
type EmitOptions struct {
	// Causes are values of Mark.Cause.
	Causes [][]byte
	// Every is the minimum time since an output ended, by the store's clock.
	Every time.Duration
	// Windows contains, for each sender, how long its provider remembers a key after the first call. If a
	// sender has no positive window, its outputs are never too old.
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
