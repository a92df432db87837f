package trace

import (
	"fmt"
	"strconv"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/store"
)

// Names in histories and in the coverage.
var (
	AsNames = [...]string{machine.AsApplied: "applied", machine.AsDuplicate: "duplicate", machine.AsParked: "parked",
		machine.AsDiscarded: "discarded", machine.AsDeadLettered: "dead-lettered",
		machine.AsReceived: "received", machine.AsWaiting: "waiting", machine.AsBlocked: "blocked", machine.AsOverdue: "overdue", machine.AsStepped: "stepped"}
	decisionNames = [...]string{0: "none", semel.DecideRetry: "retry", semel.DecidePermanent: "permanent",
		semel.DecidePark: "park", semel.DecideDiscard: "discard", semel.DecideDuplicate: "duplicate",
		semel.DecidePreconditionFailed: "unmet", semel.DecideUnknown: "unknown"}
	ReportNames = [...]string{machine.ReportRetry: "retry", machine.ReportReady: "ready", machine.ReportNotReady: "not ready",
		machine.ReportUnknown: "unknown", machine.ReportStuck: "stuck", machine.ReportBackstop: "backstop",
		machine.ReportCommitted: "committed", machine.ReportContended: "contended", machine.ReportSerial: "serial",
		machine.ReportParallel: "parallel", machine.ReportBusy: "busy", machine.ReportWaits: "waits",
		machine.ReportNewer: "newer", machine.ReportNewerEnds: "newer ends",
		machine.ReportFull: "full", machine.ReportFullEnds: "full ends", machine.ReportClaimLost: "claim lost",
		machine.ReportBudget: "budget", machine.ReportTrial: "trial", machine.ReportTrialEnds: "trial ends"}
	PhaseNames = [...]string{"beginning", "begun", "running", "run", "committing", "rolling back"}
)

// Word returns the word for a value. If there is no word, Word returns the number.
func Word[N ~uint8](words []string, n N) string {
	if int(n) < len(words) && (n == 0 || words[n] != "") {
		return words[n]
	}
	return strconv.Itoa(int(n))
}

func eventName(e machine.Event) string {
	switch e := e.(type) {
	case machine.Given:
		return "given"
	case machine.Revoking:
		return "revoking"
	case machine.Lost:
		return "lost"
	case machine.Fetched:
		return fetchedName(e)
	case machine.Claimed:
		return claimedName(e)
	case machine.Due:
		return "due"
	case machine.Marked:
		return "marked " + notBegun(e)
	case machine.Ran:
		if e.Failed {
			return "ran, failed " + e.Class.String() + " " + Word(decisionNames[:], e.Decision)
		}
		return "ran"
	case machine.Stuck:
		return "stuck"
	case machine.Ended:
		return endedName(e)
	case machine.Settled:
		if len(e.Left) > 0 {
			return "settled but for some"
		}
		return "settled"
	case machine.Timer:
		return "timer"
	default:
		return "stop"
	}
}

func claimedName(e machine.Claimed) string {
	switch {
	case e.Failed:
		return "claimed, failed"
	case len(e.Items) == 0:
		return "claimed nothing"
	}
	return "claimed"
}

func fetchedName(e machine.Fetched) string {
	switch {
	case e.Failed && len(e.Items) > 0:
		return "fetched some, failed"
	case e.Failed:
		return "fetched, failed"
	case e.Unanswered:
		return "fetched, unanswered"
	case e.End:
		return "fetched, end"
	case e.More:
		return "fetched nothing, more"
	case len(e.Items) == 0:
		return "fetched nothing"
	default:
		return "fetched"
	}
}

func endedName(e machine.Ended) string {
	name := "ended, " + e.Outcome.String()
	if e.Outcome == store.NotCommitted {
		name += " " + e.Class.String()
	}
	if e.Culprit >= 0 {
		name += ", culprit named"
	}
	return name
}

func actionName(a machine.Action) string {
	switch a := a.(type) {
	case machine.Fetch:
		return "fetch"
	case machine.CancelFetch:
		return fmt.Sprintf("cancel fetch, idle: %v", a.Idle)
	case machine.Begin:
		return fmt.Sprintf("begin, serial: %v", a.Serial)
	case machine.Run:
		return "run"
	case machine.StopRun:
		return fmt.Sprintf("stop run, abort: %v", a.Abort)
	case machine.Commit:
		return commitName(a)
	case machine.Rollback:
		return "rollback"
	case machine.Kill:
		return "kill"
	case *machine.Settle:
		return "settle"
	case machine.ClaimRows:
		return "claim rows"
	case machine.Unclaim:
		return "unclaim"
	case machine.Over:
		return "over"
	case machine.Flow:
		return fmt.Sprintf("flow, on: %v", a.On)
	case machine.Release:
		return "release"
	case machine.Wake:
		return "wake"
	case machine.Report:
		return "report " + Word(ReportNames[:], a.Kind)
	case machine.Done:
		return doneName(a)
	}
	return "unknown"
}

func commitName(a machine.Commit) string {
	name := "commit"
	if len(a.Trim) > 0 {
		name += ", trimmed"
	}
	if len(a.Rows) > 0 {
		name += ", with rows"
	}
	return name
}

func doneName(a machine.Done) string {
	switch {
	case a.Halted:
		return "done, halted"
	case a.Idle:
		return "done, idle"
	default:
		return "done"
	}
}

// ClaimWord returns a prefix for the name of an entry: "claim, " for a claim, empty for other entries.
func ClaimWord(e machine.Entry) string {
	if e.Item.Claim != nil {
		return "claim, "
	}
	return ""
}
