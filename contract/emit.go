package contract

import (
	"context"
	"time"
)

// Emitter is an optional ability of a store that is a TxReceiver, or a QueueReceiver, and
// remembers calls (Calls): to have what a message caused sent again. A row that is written
// with Mark.Cause is an output of the message that the cause stands for.
type Emitter interface {
	// Emit makes the outputs of causes due again, under their identities, each in a
	// transaction of its own that is committed when Emit returns. It returns how many
	// there were of each kind; what an earlier Emit has made due is not counted again as
	// such. After an error some are due, and the same Emit may be asked again. Without causes
	// it says whether the store can.
	//
	// An output is made due if its row is completed, its marker applied, what became of
	// all its calls is known, its body was not removed, EmitOptions.Every has passed since
	// it ended, and less than its sender's window since its first call. It waits then as
	// one that was just received, at that time and without attempts, and CallStarted.Again tells its sender.
	// A row that ended in a transaction remembers no call of which that is known, so that
	// what is done in transactions is never done twice.
	Emit(ctx context.Context, o EmitOptions) (Emitted, error)
}

// EmitInterval is how long ago an intent must have been sent, by the store's clock, to be
// sent again because of a duplicate: however many come, it is sent once in so long at most.
const EmitInterval = time.Minute

// EmitOptions say what is to be sent again.
type EmitOptions struct {
	// Causes are those of Mark.Cause.
	Causes [][]byte
	// Every is how long ago an output must have ended at least, by the store's clock.
	Every time.Duration
	// Windows are for how long the other side of a sender knows a key, from the first call,
	// by the sender's name. Of a sender without one, and where it is not positive, none is
	// too old here.
	Windows map[string]time.Duration
}

// Emitted counts outputs by what became of them.
type Emitted struct {
	// Again are due again.
	Again int
	// Recent ended less than EmitOptions.Every ago.
	Recent int
	// Forgotten were called for first so long ago that the other side may not know their
	// keys any more.
	Forgotten int
	// Left are those of every other state: they are on their way, set aside, discarded,
	// were done in a transaction, or have lost their body.
	Left int
}

// Plus adds two counts.
func (e Emitted) Plus(o Emitted) Emitted {
	return Emitted{e.Again + o.Again, e.Recent + o.Recent, e.Forgotten + o.Forgotten, e.Left + o.Left}
}
