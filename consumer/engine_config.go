package consumer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer/internal/engine"
	"github.com/semel-go/semel/consumer/internal/runner"
	"github.com/semel-go/semel/internal/calls"
	"github.com/semel-go/semel/internal/generations"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/internal/steplimit"
	"github.com/semel-go/semel/internal/steps"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// ending converts an action to the machine's type.
func (t Action) ending() machine.Ending {
	switch t {
	case ActionHalt:
		return machine.EndHalt
	case ActionDiscard:
		return machine.EndDiscard
	case ActionKeepFirst:
		return machine.EndKeepFirst
	case ActionRetry:
		return machine.EndRetry
	case ActionDeadLetter:
		return machine.EndDeadLetter
	}
	return machine.EndPark
}

// kept converts a LaneMode to the machine's type Lanes.
func (m LaneMode) kept() machine.Lanes {
	switch m {
	case LanesNone:
		return machine.NoOrder
	case LanesKey:
		return machine.Key
	}
	return machine.Partition
}

// engineConfig returns the configuration of the engine. The parameter byCalls means that messages are passed by calls
// of Process. The parameter inbox means that the store has an inbox whose rows can be claimed.
func (c *settings) engineConfig(info source.Info, byCalls, inbox bool) *engine.Config {
	out := &engine.Config{
		Guard: c.guard, Timeouts: c.run.Timeouts, PublicName: c.public, Strategy: c.Strategy.String(),
		CallsOut: c.mechanism != byTransaction, Machine: c.machineConfig(info, byCalls, inbox), Lease: c.Inbox.Lease, Poll: c.Inbox.Poll,
		Rules: &c.rules, Retention: c.retention, Lines: c.lines(), VersionStart: c.versionStart(), Working: c.generationUse(),
		StepOutput: min(c.limits.StepOutput, steplimit.Output), MayEnd: c.MayEnd, OnDuplicate: c.OnDuplicate, ReEmit: c.ReEmitIntents,
		SenderWindows: c.SenderWindows, AuditKey: c.AuditKey, Canary: c.Canary,
	}
	if c.PreviousIdentity != nil {
		out.StrictPrevious = !c.PreviousIdentity.TrustUnfingerprinted
	}
	if !c.Strategy.marks() {
		out.NoResults = fmt.Errorf("semel: consumer %q: a result needs a marker, and the Strategy %v writes none: %w", c.Name, c.Strategy, semel.ErrUnsupported)
	}
	if c.Recorder != nil {
		out.Recorder = c.Recorder.recording()
	}
	return out
}

// lines returns which earlier messages in the inbox a message waits for: the messages of its key, the messages of its
// lane, or none.
func (c *settings) lines() engine.Lines {
	blocks := c.OnParked == OnParkedBlock
	return engine.Lines{Consumer: c.Name, ByKey: blocks && c.Lanes != LanesPartition, ByLane: blocks && c.Lanes == LanesPartition}
}

// versionStart returns the first version of a stream; 0 means that a stream can start with any version.
func (c *settings) versionStart() int64 {
	if c.Version == nil {
		return 0
	}
	return c.Version.Start
}

func (c *settings) machineConfig(info source.Info, oneAttempt, inbox bool) machine.Config {
	lanes := c.Lanes.kept()
	if oneAttempt {
		lanes = machine.NoOrder
	}
	cost := time.Second / time.Duration(c.Retry.Budget.PerSecond)
	gap, most := c.gap()
	return machine.Config{
		Lanes: lanes, Workers: c.Workers, Most: c.Batch.MaxSize, BatchTime: c.Batch.MaxTime, MaxInMemoryWait: c.MaxInMemoryWait,
		MaxMessages: c.MaxUnacked.Messages, MaxBytes: c.MaxUnacked.Bytes, Drain: c.Drain,
		MaxAttempts: c.Retry.MaxAttempts, InitialDelay: c.Retry.InitialDelay, MaxDelay: c.Retry.MaxDelay, OnExhausted: c.Retry.OnExhausted.ending(),
		RetryCost: cost, RetryShare: cost * time.Duration(c.Retry.Budget.Percent) / 100, RetrySaved: time.Minute, TrialAfter: c.Retry.SerialAfter,
		BreakerThreshold: c.Retry.breakerThreshold(), HaltLater: c.Retry.BreakerThreshold > 0,
		OnConflict: c.OnConflict.ending(), OnBadIdentity: c.OnBadIdentity.ending(), OnPrecondition: c.OnPrecondition.ending(), OnFiltered: c.OnFiltered.ending(), OnUnversioned: c.onUnversioned().ending(), OnExpired: c.Retention.OnExpired.ending(), Gap: gap, GapCap: most,
		IdleExit: c.IdleExit, Ends: info.AtEnd != nil, Bounded: info.Bounded, BackoffFirst: 50 * time.Millisecond, BackoffMost: 5 * time.Second, SerialFor: c.serialFor(), OneWriter: c.mechanism == byTransaction && c.limits.SingleWriter,
		Unmarked: !c.Strategy.marks(), OneAttempt: oneAttempt, Seed: c.guard.Plan.Seed,
		Inbox: inbox, Wait: inbox && c.Strategy.marks(), Poll: c.Inbox.Poll, Receive: inbox && c.AckOnReceipt, Keep: inbox && c.Strategy == StrategyInbox,
		Block: inbox && c.OnParked == OnParkedBlock, NoRows: !c.rows, ClaimsAlone: c.mechanism.overRows() || c.stepsOfVersions(), Alone: c.mechanism == byLookup,
	}
}

// serialFor returns how long batches run one at a time after contention. The result is 0 if handlers call other systems
// for inbox rows. If handlers call other systems, running one batch at a time would slow down all calls, although
// contention occurs only in the short transaction after a call.
func (c *settings) serialFor() time.Duration {
	if c.mechanism.overRows() {
		return 0
	}
	return time.Minute
}

// onUnversioned returns the action for a message without a version.
func (c *settings) onUnversioned() Action {
	if c.Version == nil {
		return ActionPark
	}
	return c.Version.Missing
}

func (c *settings) gap() (wait time.Duration, most int64) {
	if c.Version == nil {
		return 0, 0
	}
	return c.Version.Gap, c.Version.GapCap
}

// neverProcessed returns an error if no handler may get the message of a row, even after a retry. The error contains
// the cause and the remedy. A consumer without Identity also gets messages without a usable identity.
func (c *settings) neverProcessed(r *store.StoredRow) error {
	if !r.Surrogate {
		return nil
	}
	switch r.Reason {
	case reasonname.Filtered:
		return errors.New("it is of a message that Config.Filter leaves to other consumers and is never processed; discard it, or change Filter and let the producer send it again")
	case semel.ReasonTooLarge:
		return errors.New("only the beginning of its message was kept, and it is never processed; discard it, and let the producer send a smaller one, or raise Config.MaxBody or the source's limit and let it be sent again")
	case semel.ReasonMalformed:
		return errors.New("its message could not be read and is never processed; discard it, and let the producer send a good one")
	}
	if c.Identity == nil {
		return nil
	}
	return errors.New("its message has no usable identity and is never processed; discard it, and let the producer send it again")
}

// refusalOf returns the reason why a claimed row must not run and is parked again, or nil if the row may run.
func (c *settings) refusalOf(r *store.StoredRow) *machine.Refusal {
	if why := c.neverProcessed(r); why != nil {
		return &machine.Refusal{Reason: r.Reason, Why: why}
	}
	if r.Unreadable != "" {
		return &machine.Refusal{Reason: reasonname.Unreadable, Why: errors.New(r.Unreadable)}
	}
	if why := steps.Fit(c.steps, r.Steps); why != nil {
		return &machine.Refusal{Reason: reasonname.Steps, Why: why}
	}
	if r.Started >= c.Inbox.MaxCrashes {
		return &machine.Refusal{Reason: reasonname.Kills, Why: fmt.Errorf("it was begun %d times and never came to its end: its process died each time, or its handler did not return", r.Started)}
	}
	return nil
}

func (c *settings) runOptions() runner.Options {
	o := runner.Options{
		Guard: c.guard, Timeouts: runner.Timeouts{Timeout: c.Timeout, CommitTimeout: c.CommitTimeout}, Keep: c.keys.Keep, FailOpen: c.keys.FailOpen,
		Provider: runner.Provider{Rule: calls.Rule{Window: c.Provider.Window, Timeout: c.Timeout, Asks: c.Provider.Lookup != nil}, Discard: c.Provider.OnUnknown == ActionDiscard},
	}
	if lookup := c.Provider.Lookup; lookup != nil {
		o.Provider.Lookup = func(ctx context.Context, m *semel.Message) (runner.Finding, error) {
			switch found, err := lookup(ctx, m); {
			case err != nil:
				return runner.StillUnknown, err
			case found == Happened:
				return runner.Happened, nil
			case found == DidNotHappen:
				return runner.DidNotHappen, nil
			}
			return runner.StillUnknown, nil
		}
	}
	return o
}

// stepsOfVersions reports whether messages have both steps and versions. With steps and versions, two messages of one
// stream must not share a batch: a version can be applied only after its predecessor, and the commit of a batch does
// not apply a message that has further steps.
func (c *settings) stepsOfVersions() bool { return c.steps != nil && c.Version != nil }

func (c *settings) generationUse() generations.Working {
	if c.Generation == nil {
		return generations.Working{}
	}
	return generations.Working{Consumer: c.public, Number: c.Generation.Number, In: c.Generation.state()}
}

// controlName returns the name that operators use to control the consumer. A rebuild has the name of its
// generation, so that operators can pause the rebuild separately.
func (c *settings) controlName() string {
	if c.Generation != nil && !c.Generation.Building {
		return c.public
	}
	return c.Name
}

// ownTransactions returns an error if the consumer has generations. A consumer with generations must not mark messages
// in transactions of the user, because a switch of generations does not wait for these transactions.
func (c *settings) ownTransactions() error {
	if c.Generation == nil {
		return nil
	}
	return fmt.Errorf("semel: consumer %q works in generations, and a switch would not wait for a transaction of yours; use Run or Process: %w", c.public, semel.ErrUnsupported)
}
