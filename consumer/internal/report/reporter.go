// Package report reports the work of a consumer: it sends events to observers and figures to meters, writes the log,
// and decides whether the consumer is ready. The package limits how often the same line is logged.
package report

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/eventkind"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/measure"
	"github.com/semel-go/semel/source"
)

// Reporter reports the work of one consumer. Only the goroutine of the engine's loop calls Report, Ended and Done. All
// other methods of Reporter may be called by several goroutines.
type Reporter struct {
	consumer  string
	logger    *slog.Logger
	observers []semel.Observer
	meters    []measure.Meter // those observers that are meters
	unmetered atomic.Bool     // a meter has panicked
	tracer    measure.Tracer  // the observer that is a tracer; nil if there is none
	untraced  atomic.Bool     // the tracer has panicked
	// outages contains the current outages, by part. Only the loop's goroutine uses outages.
	outages   map[string]*outage
	recent    recent
	elsewhere elsewhere
	// reEmitted counts intents that are sent again because of duplicates. forgotten counts intents that are
	// not sent again because the other system may have forgotten their keys.
	reEmitted, forgotten atomic.Int64

	mutex sync.Mutex
	ready map[string]string // the parts that do not work, and why; guarded by mutex
	// failingSince contains the times at which parts stopped working; guarded by mutex.
	failingSince map[string]time.Time
	// stuckCallbacks counts callbacks that still run after their timeout; guarded by mutex.
	stuckCallbacks int
	// unended counts ended calls that the key store fails to record; guarded by mutex.
	unended int
	flood   flood // guarded by mutex
	// newer maps each message that waits for a newer release of Semel to the reason why it waits; guarded by mutex.
	newer map[*machine.Item]string
	// panicked contains the observers that have panicked; guarded by mutex.
	panicked map[int]bool
}

// New returns a Reporter of the consumer with the given name. Observers that are meters get figures. At most one
// observer may be a tracer. If hasSource is set, the consumer is not ready before its store and its source have
// responded.
func New(consumer string, logger *slog.Logger, observers []semel.Observer, hasSource bool) *Reporter {
	n := &Reporter{consumer: consumer, logger: logger, observers: observers, meters: metersOf(observers), tracer: tracerOf(observers), ready: map[string]string{}, outages: map[string]*outage{}}
	if hasSource {
		n.ready["store"], n.ready["source"] = "it has not been checked yet", unanswered
	}
	return n
}

// SameContent returns the number of applied messages whose content was already applied before under another id.
func (n *Reporter) SameContent() int64 { return n.recent.count.Load() }

// Intents returns the number of intents that were sent again because of duplicates, and the number of intents
// that were not sent again because the other system may have forgotten their keys.
func (n *Reporter) Intents() (reEmitted, notReEmitted int64) {
	return n.reEmitted.Load(), n.forgotten.Load()
}

// flood limits log lines about parts that fail and recover repeatedly. Observers get every event. The logger limits all
// other log lines (package loglimit).
type flood struct {
	began  time.Time
	logged map[string]int // number of lines by part, since began
}

// For each part, at most floodMost beginnings of an outage are logged in floodWindow.
const (
	floodMost   = 10
	floodWindow = time.Minute
)

// count adds an event with the given name and returns the number of such events in the current window.
func (f *flood) count(name string) int {
	if now := time.Now(); f.logged == nil || now.Sub(f.began) > floodWindow || len(f.logged) > 1000 {
		f.began, f.logged = now, map[string]int{}
	}
	f.logged[name]++
	return f.logged[name]
}

// Notify passes an event to all observers.
func (n *Reporter) Notify(e semel.Event) {
	e.Consumer = n.consumer
	for i := range n.observers {
		n.observe(i, e)
	}
}

// endings contains the event kind and the log level for each way in which a message ends.
var endings = map[source.End]struct {
	kind  semel.EventKind
	level slog.Level
}{
	source.EndDuplicate:    {eventkind.Duplicate, slog.LevelDebug},
	source.EndConflict:     {semel.EventConflict, slog.LevelWarn},
	source.EndParked:       {semel.EventParked, slog.LevelWarn},
	source.EndDeadLettered: {semel.EventDeadLettered, slog.LevelWarn},
	source.EndDiscarded:    {semel.EventDiscarded, slog.LevelInfo},
	source.EndSkipped:      {eventkind.Skipped, slog.LevelDebug},
}

// Ended reports how a message ended. The parameter m is the delivered message, or nil for a row of the inbox.
func (n *Reporter) Ended(item *machine.Settlement, m *semel.Message) {
	if item.Again {
		return
	}
	n.checkPlace(item, m)
	if item.Ending == source.EndApplied {
		n.reportRepeatedContent(item.Item)
	}
	if note, reported := endings[item.Ending]; reported {
		reason := item.Reason
		if item.Ending == source.EndConflict && reason != reasonname.FormerConflict {
			reason = semel.ReasonConflict // the row has this reason too, even if the message failed for another reason before
		}
		n.reportMessage(note.level, n.describeItem(item.Item, semel.Event{Kind: note.kind, Reason: reason, Messages: 1, Err: item.Err}))
	}
}

// LogItem logs an event of one message and passes the event to the observers.
func (n *Reporter) LogItem(level slog.Level, it *machine.Item, e semel.Event) {
	n.reportMessage(level, n.describeItem(it, e))
}

// describeItem adds the message of an item to an event.
func (n *Reporter) describeItem(it *machine.Item, e semel.Event) semel.Event {
	e.Key, e.Lane = semel.Key{Consumer: n.consumer, Source: it.Source, ID: it.Identity}, it.Lane.ID
	if v := it.Version; v != nil {
		e.Stream, e.Version = v.Stream, v.Number
	}
	return e
}

// reportMessage logs an event of one message and passes the event, without the payload, to the observers.
func (n *Reporter) reportMessage(level slog.Level, e semel.Event) {
	n.Notify(e)
	if !n.logger.Enabled(context.Background(), level) {
		return
	}
	attributes := []any{"consumer", n.consumer, "id", e.Key.ID, "lane", e.Lane}
	if e.Key.Source != "" {
		attributes = append(attributes, "source", e.Key.Source)
	}
	if e.Reason != "" {
		attributes = append(attributes, "reason", e.Reason)
	}
	if e.Stream != "" {
		attributes = append(attributes, "stream", e.Stream, "version", e.Version)
	}
	if e.Wait > 0 {
		attributes = append(attributes, "wait", Rounded(e.Wait))
	}
	if e.Err != nil {
		attributes = append(attributes, "error", e.Err)
	}
	n.logger.Log(context.Background(), level, string(e.Kind), attributes...)
}

// CanaryRerun logs that the first success of a message's handler is rolled back on purpose, and that the handler runs
// again.
func (n *Reporter) CanaryRerun(it *machine.Item) {
	n.logger.Debug("canary rerun", "consumer", n.consumer, "id", it.Identity, "source", it.Source)
}

// Report reports the events of the machine.
func (n *Reporter) Report(r machine.Report) {
	switch r.Kind {
	case machine.ReportRetry:
		n.reportItem(slog.LevelInfo, eventkind.Retry, r)
	case machine.ReportBusy:
		n.reportItem(slog.LevelWarn, eventkind.Busy, r)
	case machine.ReportWaits:
		n.reportItem(slog.LevelWarn, eventkind.Waits, r)
	case machine.ReportNewer:
		n.addNewer(r)
		n.reportItem(slog.LevelWarn, eventkind.Newer, r)
	case machine.ReportNewerEnds:
		n.removeNewer(r.Item)
	case machine.ReportFull:
		n.reportFullOfNewer(r.N)
	case machine.ReportFullEnds:
		n.reportRecovery(partFetch)
	case machine.ReportClaimLost:
		n.reportItem(slog.LevelWarn, eventkind.ClaimLost, r)
	case machine.ReportBackstop:
		n.reportItem(slog.LevelWarn, eventkind.Backstop, r)
	case machine.ReportStuck:
		n.SetReady("handler", "a handler is still running after its timeout")
		n.reportItem(slog.LevelError, eventkind.Stuck, r)
	case machine.ReportReady:
		n.reportRecovery(r.Part)
	case machine.ReportNotReady:
		if r.Part == machine.PartBreaker {
			n.breakerOpen(r)
			return
		}
		n.reportFailure(r)
	case machine.ReportUnknown:
		n.Notify(semel.Event{Kind: eventkind.Unknown, Messages: r.N, Err: r.Err})
		n.logger.Warn("a commit's outcome is unknown; its messages are marked again", "consumer", n.consumer, "messages", r.N, "error", Cause(r.Err))
	case machine.ReportContended:
		n.Notify(semel.Event{Kind: eventkind.Contended, Messages: r.N, Err: r.Err})
	case machine.ReportSerial:
		n.Notify(semel.Event{Kind: eventkind.Serial, Wait: r.Wait})
		n.logger.Info("batches contend with one another; they run one at a time for a while", "consumer", n.consumer, "for", Rounded(r.Wait))
	case machine.ReportParallel:
		n.Notify(semel.Event{Kind: eventkind.Parallel})
		n.logger.Info("batches run side by side again", "consumer", n.consumer)
	case machine.ReportBudget:
		n.Notify(semel.Event{Kind: eventkind.RetriesWait, Wait: r.Wait})
		n.logger.Warn("more messages fail than the retry budget has room for; their next tries wait, which is no attempt", "consumer", n.consumer, "wait", Rounded(r.Wait))
	case machine.ReportTrial:
		n.Notify(semel.Event{Kind: eventkind.Trial, Messages: r.N, Err: r.Err})
		n.logger.Warn("attempts fail one after the other; one message is tried at a time until one succeeds", "consumer", n.consumer, "failed", r.N, "error", r.Err)
	case machine.ReportTrialEnds:
		n.Notify(semel.Event{Kind: eventkind.TrialEnds})
		n.logger.Info("a message has succeeded; all are tried again", "consumer", n.consumer)
	case machine.ReportCommitted:
		n.Notify(semel.Event{Kind: eventkind.Committed, Messages: r.N})
	}
}

// Done reports the message that stopped the consumer, if there is one.
func (n *Reporter) Done(d machine.Done) {
	if !d.Halted {
		return
	}
	n.reportMessage(slog.LevelError, n.describeItem(d.Item, semel.Event{Kind: eventkind.Failed, Reason: d.Reason, Messages: 1, Err: d.Err}))
}

func (n *Reporter) reportItem(level slog.Level, kind semel.EventKind, r machine.Report) {
	n.reportMessage(level, n.describeItem(r.Item, semel.Event{Kind: kind, Messages: max(1, r.N), Wait: r.Wait, Err: r.Err}))
}
