package engine

import (
	"context"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer/internal/delivery"
	"github.com/semel-go/semel/consumer/internal/guard"
	"github.com/semel-go/semel/consumer/internal/runner"
	"github.com/semel-go/semel/consumer/internal/upkeep"
	"github.com/semel-go/semel/internal/generations"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/recording"
)

// Config is what the engine needs of a consumer's policy.
type Config struct {
	guard.Guard
	runner.Timeouts
	// PublicName is the name of the consumer without its generation.
	PublicName string
	// Strategy is the name of the consumer's strategy, for the log.
	Strategy string
	// CallsOut: handlers call out. If they have a transaction, it begins after the call.
	CallsOut bool
	Machine  machine.Config
	// Lease is how long a claim lasts if it is not extended. Poll is how long an idle consumer waits
	// before it asks the inbox again.
	Lease, Poll time.Duration
	Rules       *delivery.Rules
	Retention   *upkeep.Retention
	// Lines is the order that messages keep in the inbox.
	Lines Lines
	// VersionStart is the first version of a stream; 0: any.
	VersionStart int64
	// StrictPrevious: a message is a conflict if its previous identity is marked without a fingerprint
	// that can be compared.
	StrictPrevious bool
	// Working is the generation of the consumer; the store rejects batches while it has another state.
	Working generations.Working
	// StepOutput is the most bytes that a step may return.
	StepOutput int
	// NoResults is the reason why handlers cannot keep results; nil if they can.
	NoResults error
	// MayEnd is asked before an idle run ends; nil: every idle run may end.
	MayEnd func() bool
	// OnDuplicate, if not nil, is called for each duplicate.
	OnDuplicate func(ctx context.Context, m *semel.Message, result []byte) error
	// ReEmit: when a duplicate arrives, the intents of its message are sent again. SenderWindows are
	// the longest ages of such intents, by sender.
	ReEmit        bool
	SenderWindows map[string]time.Duration
	// Recorder is nil where nothing is recorded.
	Recorder *recording.Recorder
	// AuditKey is the key of the audit chain, empty for none.
	AuditKey []byte
}
