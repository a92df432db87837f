package simulator

import (
	"strconv"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/machine"
)

// The words of histories and of the coverage table.
var (
	asNames = [...]string{machine.AsApplied: "applied", machine.AsDuplicate: "duplicate", machine.AsParked: "parked",
		machine.AsDiscarded: "discarded", machine.AsDeadLettered: "dead-lettered",
		machine.AsReceived: "received", machine.AsWaiting: "waiting", machine.AsBlocked: "blocked", machine.AsOverdue: "overdue", machine.AsStepped: "stepped"}
	decisionNames = [...]string{0: "none", semel.DecideRetry: "retry", semel.DecidePermanent: "permanent",
		semel.DecidePark: "park", semel.DecideDiscard: "discard", semel.DecideDuplicate: "duplicate",
		semel.DecidePreconditionFailed: "unmet", semel.DecideUnknown: "unknown"}
	reportNames = [...]string{machine.ReportRetry: "retry", machine.ReportReady: "ready", machine.ReportNotReady: "not ready",
		machine.ReportUnknown: "unknown", machine.ReportStuck: "stuck", machine.ReportBackstop: "backstop",
		machine.ReportCommitted: "committed", machine.ReportContended: "contended", machine.ReportSerial: "serial",
		machine.ReportParallel: "parallel", machine.ReportBusy: "busy", machine.ReportWaits: "waits",
		machine.ReportNewer: "newer", machine.ReportNewerEnds: "newer ends",
		machine.ReportFull: "full", machine.ReportFullEnds: "full ends", machine.ReportClaimLost: "claim lost",
		machine.ReportBudget: "budget", machine.ReportTrial: "trial", machine.ReportTrialEnds: "trial ends"}
	phaseNames = [...]string{"beginning", "begun", "running", "run", "committing", "rolling back"}
)

// word returns the word for a value, or its number if there is none yet.
func word[N ~uint8](words []string, n N) string {
	if int(n) < len(words) && (n == 0 || words[n] != "") {
		return words[n]
	}
	return strconv.Itoa(int(n))
}
