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
	// Strategy is what the log calls the way in which effects happen once.
	Strategy string
	// CallsOut: handlers call out, and their transaction, if any, begins later.
	CallsOut bool
	Machine  machine.Config
	// Lease is of a claim. Poll is how long an idle consumer waits before it asks the inbox again.
	Lease, Poll time.Duration
	Rules       *delivery.Rules
	Retention   *upkeep.Retention
	// Lines is the order that messages keep in the inbox.
	Lines Lines
	// VersionStart is the version that a stream begins with, 0: any.
	VersionStart int64
	// StrictPrevious: a previous identity that is marked without a comparable fingerprint is a conflict.
	StrictPrevious bool
	// Working is the generation that batches are held to.
	Working generations.Working
	// StepOutput is the most bytes that a step may return.
	StepOutput int
	// NoResults is why handlers can keep no results, nil if they can.
	NoResults error
	// MayEnd is asked before an idle run ends; nil: it may.
	MayEnd func() bool
	// OnDuplicate is called for each duplicate; nil: nothing is.
	OnDuplicate func(ctx context.Context, m *semel.Message, result []byte) error
	// ReEmit: the intents of a message are sent again when a duplicate comes. SenderWindows says for
	// how long, by sender.
	ReEmit        bool
	SenderWindows map[string]time.Duration
	// Recorder is nil where nothing is recorded.
	Recorder *recording.Recorder
	// AuditKey is the key of the audit chain, empty for none.
	AuditKey []byte
}
