package semel

import (
	"context"
	"time"
)

// Consumer is a named handler with its policy.
type Consumer[Tx any] struct{ config Config }

// New returns a consumer that runs handle once for each message, in batches
// that share a transaction. It reports every fault of the configuration at once.
func New[Tx any](store TxStore[Tx], handle func(ctx context.Context, tx Tx, m *Message) error, c Config) (*Consumer[Tx], error) {
	return &Consumer[Tx]{config: c}, nil
}

// NewAll is New for a handler of whole batches, for set-based effects. When it
// fails, the batch is cut until the message to blame is alone.
func NewAll[Tx any](store TxStore[Tx], handle func(ctx context.Context, tx Tx, ms []*Message) error, c Config) (*Consumer[Tx], error) {
	return &Consumer[Tx]{config: c}, nil
}

// Run consumes until ctx ends, the source ends, or a message halts it
// (ErrHalted). When ctx ends it drains for Config.Drain and returns nil. It may
// be called once.
func (c *Consumer[Tx]) Run(ctx context.Context) error { return nil }

// Counts returns what the consumer did so far. It may be called at any time.
func (c *Consumer[Tx]) Counts() Counts { return Counts{} }

// Ready reports whether the consumer works, and if not, why.
func (c *Consumer[Tx]) Ready() (bool, string) { return true, "" }

// Retry runs the handler for a parked row in one transaction with the row's
// completion. It returns nil when the effect is committed; ErrChanged,
// ErrConflict or ErrState when nothing was done; the handler's error when it
// failed again, which is recorded on the row.
func (c *Consumer[Tx]) Retry(ctx context.Context, row StoredRow, a Act) error { return nil }

// Disposition is what to tell the broker of a message given to Process.
type Disposition struct {
	Kind   SettleKind
	After  time.Duration
	Reason Reason
}

// Process makes one attempt and never waits for another: for those who bring
// their own loop. Concurrent calls form batches. An error says that nothing is
// known of the message: do not settle it.
func (c *Consumer[Tx]) Process(ctx context.Context, m *Message) (Disposition, error) {
	return Disposition{}, nil
}

// ProcessAll is Process for several messages that arrived together.
func (c *Consumer[Tx]) ProcessAll(ctx context.Context, ms []*Message) ([]Disposition, error) {
	return nil, nil
}

// Close stops what Process started. It is not needed after Run.
func (c *Consumer[Tx]) Close(ctx context.Context) error { return nil }

// TryMark marks the message in a transaction that the user opened, on a store
// that can (TxMarker): Fresh means that the effect belongs into tx now;
// anything else that it must not happen.
func (c *Consumer[Tx]) TryMark(ctx context.Context, tx Tx, m *Message) (Verdict, error) {
	return Verdict{}, nil
}
