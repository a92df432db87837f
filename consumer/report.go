package consumer

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/measure"
	"github.com/semel-go/semel/source"
)

// reporter tells observers and the log. Events come from the loop's
// goroutine, and of callbacks that stick from a timer's.
type reporter struct {
	consumer  string
	logger    *slog.Logger
	observers []semel.Observer
	meters    []measure.Meter // those of them that measure
	unmetered atomic.Bool     // one of them has panicked
	tracer    measure.Tracer  // the one of them that traces, nil without
	untraced  atomic.Bool     // it has panicked
	// outages are those under way, by part; of the loop's goroutine.
	outages map[string]*outage
	recent  recent
	// elsewhere: see there.
	elsewhere elsewhere
	// reEmitted are intents that duplicates have made due again, forgotten those that were
	// not sent again because the other side may have forgotten their keys.
	reEmitted, forgotten atomic.Int64

	mutex sync.Mutex
	ready map[string]string // what is not ready, and why; guarded by mutex
	// since is when that began, of what was asked; guarded by mutex.
	since map[string]time.Time
	// sticking are the callbacks that go on after their time-out; guarded by mutex.
	sticking int
	// unended are the ends of calls that the store of the keys refuses; guarded by mutex.
	unended int
	flood   flood // guarded by mutex
	// newer says of messages that a newer release marked what they wait for;
	// guarded by mutex.
	newer map[*machine.Item]string
	// panicked are the observers that have; guarded by mutex.
	panicked map[int]bool
}

func newReporter(c *settings) *reporter {
	return &reporter{consumer: c.Name, logger: c.Logger, observers: c.Observers, meters: metersOf(c.Observers), tracer: tracerOf(c.Observers), ready: unasked(c.Source), outages: map[string]*outage{}}
}

// flood keeps outages that come and go out of the log; observers hear each. What else comes
// often, the logger bounds (loglimit).
type flood struct {
	began  time.Time
	logged map[string]int // by part, since began
}

// The log has at most floodMost beginnings of an outage of one part in floodWindow.
const (
	floodMost   = 10
	floodWindow = time.Minute
)

// count returns how many events of this name the window has, this one included.
func (f *flood) count(name string) int {
	if now := time.Now(); f.logged == nil || now.Sub(f.began) > floodWindow || len(f.logged) > 1000 {
		f.began, f.logged = now, map[string]int{}
	}
	f.logged[name]++
	return f.logged[name]
}

func (n *reporter) tell(e semel.Event) {
	e.Consumer = n.consumer
	for i := range n.observers {
		n.observe(i, e)
	}
}

// endings names what observers and the log are told of a settlement.
var endings = map[source.End]struct {
	kind  semel.EventKind
	level slog.Level
}{
	source.EndDuplicate:    {semel.EventDuplicate, slog.LevelDebug},
	source.EndConflict:     {semel.EventConflict, slog.LevelWarn},
	source.EndParked:       {semel.EventParked, slog.LevelWarn},
	source.EndDeadLettered: {semel.EventDeadLettered, slog.LevelWarn},
	source.EndDiscarded:    {semel.EventDiscarded, slog.LevelInfo},
	source.EndSkipped:      {semel.EventSkipped, slog.LevelDebug},
}

func (n *reporter) settled(s *machine.Settle) {
	for i := range s.Items {
		n.ended(&s.Items[i])
	}
}

func (n *reporter) ended(item *machine.Settlement) {
	if item.Again {
		return
	}
	n.placed(item)
	if item.Ending == source.EndApplied {
		n.applied(item.Item)
	}
	if note, told := endings[item.Ending]; told {
		reason := item.Reason
		if item.Ending == source.EndConflict && reason != semel.ReasonFormerConflict {
			reason = semel.ReasonConflict // as its row has it, whatever it failed of before
		}
		n.message(note.level, n.about(item.Item, semel.Event{Kind: note.kind, Reason: reason, Messages: 1, Err: item.Err}))
	}
}

// about is an event of one message.
func (n *reporter) about(it *machine.Item, e semel.Event) semel.Event {
	e.Key, e.Lane = keyOf(n.consumer, it), it.Lane.ID
	if v := it.Version; v != nil {
		e.Stream, e.Version = v.Stream, v.Number
	}
	return e
}

// message logs and tells an event of one message. Neither carries its payload.
func (n *reporter) message(level slog.Level, e semel.Event) {
	n.tell(e)
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
		attributes = append(attributes, "wait", rounded(e.Wait))
	}
	if e.Err != nil {
		attributes = append(attributes, "error", e.Err)
	}
	n.logger.Log(context.Background(), level, string(e.Kind), attributes...)
}

func (n *reporter) report(r machine.Report) {
	switch r.Kind {
	case machine.ReportRetry:
		n.item(slog.LevelInfo, semel.EventRetry, r)
	case machine.ReportBusy:
		n.item(slog.LevelWarn, semel.EventBusy, r)
	case machine.ReportWaits:
		n.item(slog.LevelWarn, semel.EventWaits, r)
	case machine.ReportNewer:
		n.holds(r)
		n.item(slog.LevelWarn, semel.EventNewer, r)
	case machine.ReportNewerEnds:
		n.holdsNoMore(r.Item)
	case machine.ReportFull:
		n.fullOfNewer(r.N)
	case machine.ReportFullEnds:
		n.up(partFetch)
	case machine.ReportClaimLost:
		n.item(slog.LevelWarn, semel.EventClaimLost, r)
	case machine.ReportBackstop:
		n.item(slog.LevelWarn, semel.EventBackstop, r)
	case machine.ReportStuck:
		n.setReady("handler", "a handler goes on after its timeout")
		n.item(slog.LevelError, semel.EventStuck, r)
	case machine.ReportReady:
		n.up(r.Part)
	case machine.ReportNotReady:
		if r.Part == machine.PartBreaker {
			n.breakerOpen(r)
			return
		}
		n.down(r)
	case machine.ReportUnknown:
		n.tell(semel.Event{Kind: semel.EventUnknown, Messages: r.N, Err: r.Err})
		n.logger.Warn("a commit's outcome is unknown; its messages are marked again", "consumer", n.consumer, "messages", r.N, "error", cause(r.Err))
	case machine.ReportContended:
		n.tell(semel.Event{Kind: semel.EventContended, Messages: r.N, Err: r.Err})
	case machine.ReportSerial:
		n.tell(semel.Event{Kind: semel.EventSerial, Wait: r.Wait})
		n.logger.Info("batches contend with one another; they run one at a time for a while", "consumer", n.consumer, "for", rounded(r.Wait))
	case machine.ReportParallel:
		n.tell(semel.Event{Kind: semel.EventParallel})
		n.logger.Info("batches run side by side again", "consumer", n.consumer)
	case machine.ReportBudget:
		n.tell(semel.Event{Kind: semel.EventRetriesWait, Wait: r.Wait})
		n.logger.Warn("more messages fail than the retry budget has room for; their next tries wait, which is no attempt", "consumer", n.consumer, "wait", rounded(r.Wait))
	case machine.ReportTrial:
		n.tell(semel.Event{Kind: semel.EventTrial, Messages: r.N, Err: r.Err})
		n.logger.Warn("attempts fail one after the other; one message is tried at a time until one succeeds", "consumer", n.consumer, "failed", r.N, "error", r.Err)
	case machine.ReportTrialEnds:
		n.tell(semel.Event{Kind: semel.EventTrialEnds})
		n.logger.Info("a message has succeeded; all are tried again", "consumer", n.consumer)
	case machine.ReportCommitted:
		n.tell(semel.Event{Kind: semel.EventCommitted, Messages: r.N})
	}
}

// done tells of the message that halted the consumer.
func (n *reporter) done(d machine.Done) {
	if !d.Halted {
		return
	}
	n.message(slog.LevelError, n.about(d.Item, semel.Event{Kind: semel.EventFailed, Reason: d.Reason, Messages: 1, Err: d.Err}))
}

func (n *reporter) item(level slog.Level, kind semel.EventKind, r machine.Report) {
	n.message(level, n.about(r.Item, semel.Event{Kind: kind, Messages: max(1, r.N), Wait: r.Wait, Err: r.Err}))
}

// sourceAnswers is called when a source has answered for the first time.
func (n *reporter) sourceAnswers() { n.setReady("source", "") }

// unasked is why a consumer is not ready before its run has asked anything.
func unasked(src source.Source) map[string]string {
	if src == nil {
		return map[string]string{}
	}
	return map[string]string{"store": "it has not been checked yet", "source": unanswered}
}

// unanswered is why a consumer is not ready whose source was not heard of yet.
const unanswered = "it has not answered yet"

// sourceUnasked is called while nobody asks the source: that it has not answered yet
// keeps no consumer from being ready then. One that failed stays so.
func (n *reporter) sourceUnasked() {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if n.ready["source"] == unanswered {
		delete(n.ready, "source")
	}
}

func (n *reporter) setReady(what, why string) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if why == "" {
		n.works(what)
		return
	}
	n.failsAt(what, why)
}

// works takes with the mutex held that a part works.
func (n *reporter) works(what string) {
	delete(n.ready, what)
	delete(n.since, what)
}

// failsAt takes with the mutex held that it does not.
func (n *reporter) failsAt(what, why string) {
	n.ready[what] = why
	if n.since == nil {
		n.since = map[string]time.Time{}
	}
	if n.since[what].IsZero() {
		n.since[what] = time.Now()
	}
}

// storeDown is since when one of the parts of the store has not worked, and why.
func (n *reporter) storeDown() (since time.Time, why string) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	for _, part := range []string{"store", "inbox", partKeys} {
		if at := n.since[part]; !at.IsZero() && (since.IsZero() || at.Before(since)) {
			since, why = at, part+": "+n.ready[part]
		}
	}
	return since, why
}

// state reports whether nothing is in the way, and otherwise what is.
func (n *reporter) state() (bool, string) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	var reasons []string
	for what, why := range n.ready {
		reasons = append(reasons, what+": "+why)
	}
	slices.Sort(reasons)
	return len(reasons) == 0, strings.Join(reasons, "; ")
}
