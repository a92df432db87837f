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

// Config contains the parts of a consumer's policy that the engine uses.
type Config struct {
	guard.Guard
	runner.Timeouts
	// PublicName is the name of the consumer without its generation.
	PublicName string
	// Strategy is the name of the consumer's strategy, for the log.
	Strategy string
	// CallsOut means that handlers call other systems. If a handler that calls another system has a transaction, the
	// transaction begins after the call.
	CallsOut bool
	Machine  machine.Config
	// Lease is the duration of a claim that is not extended. Poll is the interval at which an idle consumer
	// asks the inbox for due rows.
	Lease, Poll time.Duration
	Rules       *delivery.Rules
	Retention   *upkeep.Retention
	// Lines says which messages must wait for earlier messages in the inbox.
	Lines Lines
	// VersionStart is the first version of a stream; 0 means that a stream can start with any version.
	VersionStart int64
	// StrictPrevious means that a message is a conflict if its previous identity is marked without a
	// fingerprint, or with a fingerprint that cannot be compared.
	StrictPrevious bool
	// Working is the generation of the consumer and its expected state. The store rejects batches while the
	// generation has another state.
	Working generations.Working
	// Canary is consumer.Config.Canary.
	Canary int
	// StepOutput is the maximum number of bytes that a step may return.
	StepOutput int
	// NoResults is the reason why handlers cannot store results, or nil if they can.
	NoResults error
	// MayEnd is called before an idle run ends. If MayEnd is nil, every idle run may end.
	MayEnd func() bool
	// OnDuplicate, if not nil, is called for each duplicate.
	OnDuplicate func(ctx context.Context, m *semel.Message, result []byte) error
	// ReEmit means that, when a duplicate arrives, the intents of its message are sent again. SenderWindows contains,
	// by sender, the maximum age of an intent that is sent again.
	ReEmit        bool
	SenderWindows map[string]time.Duration
	// Recorder is nil if nothing is recorded.
	Recorder *recording.Recorder
	// AuditKey is the key for the hashes in the chain of audit records, or empty if there is no key.
	AuditKey []byte
}
