package report

import (
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel/internal/eventkind"
	"github.com/semel-go/semel/internal/machine"
)

// SourceAnswered records that the source has responded for the first time.
func (n *Reporter) SourceAnswered() { n.SetReady("source", "") }

// unanswered is the reason why a consumer is not ready before its source has responded.
const unanswered = "it has not answered yet"

// SourceNotAsked records that the consumer does not use its source at the moment. A consumer that does not use its
// source is ready before the source has responded for the first time. After a failure of the source, the consumer stays
// not ready.
func (n *Reporter) SourceNotAsked() {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if n.ready["source"] == unanswered {
		delete(n.ready, "source")
	}
}

// SetReady records why a part does not work. An empty reason means that the part works.
func (n *Reporter) SetReady(what, why string) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if why == "" {
		n.setWorking(what)
		return
	}
	n.failsAt(what, why)
}

// setWorking records that a part works. The caller has locked the mutex.
func (n *Reporter) setWorking(what string) {
	delete(n.ready, what)
	delete(n.failingSince, what)
}

// failsAt records why a part does not work. The caller has locked the mutex.
func (n *Reporter) failsAt(what, why string) {
	n.ready[what] = why
	if n.failingSince == nil {
		n.failingSince = map[string]time.Time{}
	}
	if n.failingSince[what].IsZero() {
		n.failingSince[what] = time.Now()
	}
}

// StoreDown returns the time since which a part of the store has not worked, and the reason. If all parts of the store
// work, the returned time is zero.
func (n *Reporter) StoreDown() (since time.Time, why string) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	for _, part := range []string{"store", "inbox", partKeys} {
		if at := n.failingSince[part]; !at.IsZero() && (since.IsZero() || at.Before(since)) {
			since, why = at, part+": "+n.ready[part]
		}
	}
	return since, why
}

// State reports whether all parts work. If a part does not work, State also returns the reason.
func (n *Reporter) State() (bool, string) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	var reasons []string
	for what, why := range n.ready {
		reasons = append(reasons, what+": "+why)
	}
	slices.Sort(reasons)
	return len(reasons) == 0, strings.Join(reasons, "; ")
}

// CallbackSticks reports a callback that is still running after its timeout.
func (n *Reporter) CallbackSticks(it *machine.Item) {
	n.mutex.Lock()
	n.stuckCallbacks++
	n.ready["callback"] = "a callback is still running after its timeout"
	n.mutex.Unlock()
	n.reportItem(slog.LevelError, eventkind.Stuck, machine.Report{Kind: machine.ReportStuck, Item: it, N: 1})
}

// CallbackEnded records that a callback has returned after its timeout.
func (n *Reporter) CallbackEnded() {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if n.stuckCallbacks--; n.stuckCallbacks == 0 {
		delete(n.ready, "callback")
	}
}
