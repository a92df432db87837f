package simulator

import (
	"strconv"

	"github.com/semel-go/semel/internal/machine"
)

// The words of histories and of the coverage table.
var (
	asNames = [...]string{machine.AsApplied: "applied", machine.AsDuplicate: "duplicate", machine.AsParked: "parked",
		machine.AsDiscarded: "discarded", machine.AsDeadLettered: "dead-lettered"}
	verdictNames = [...]string{machine.Fresh: "fresh", machine.AlreadyApplied: "already applied",
		machine.AlreadyWaiting: "already waiting", machine.AlreadyParked: "already parked",
		machine.AlreadyDeadLettered: "already dead-lettered", machine.AlreadyDiscarded: "already discarded",
		machine.Conflict: "conflict", machine.ConflictKnown: "conflict known", machine.Busy: "busy"}
	classNames = [...]string{machine.None: "none", machine.Retry: "retry", machine.Permanent: "permanent",
		machine.Contended: "contended", machine.Down: "down", machine.Aborted: "aborted", machine.CopyBusy: "copy busy"}
	decisionNames = [...]string{0: "none", machine.DecideRetry: "retry", machine.DecidePermanent: "permanent",
		machine.DecidePark: "park", machine.DecideDiscard: "discard", machine.DecideDuplicate: "duplicate",
		machine.DecideUnmet: "unmet"}
	outcomeNames = [...]string{machine.Committed: "committed", machine.NotCommitted: "not committed", machine.Unknown: "unknown"}
	endingNames  = [...]string{machine.NotEnded: "not ended", machine.EndApplied: "applied", machine.EndDuplicate: "duplicate",
		machine.EndConflict: "conflict", machine.EndParked: "parked", machine.EndDeadLettered: "dead-lettered",
		machine.EndDiscarded: "discarded", machine.EndSkipped: "skipped"}
	reportNames = [...]string{machine.ReportRetry: "retry", machine.ReportReady: "ready", machine.ReportNotReady: "not ready",
		machine.ReportUnknown: "unknown", machine.ReportStuck: "stuck", machine.ReportBackstop: "backstop",
		machine.ReportCommitted: "committed", machine.ReportContended: "contended", machine.ReportSerial: "serial",
		machine.ReportParallel: "parallel", machine.ReportBusy: "busy", machine.ReportWaits: "waits"}
	settleNames = [...]string{machine.Ack: "ack", machine.HandBack: "hand back", machine.DeadLetter: "dead letter"}
	phaseNames  = [...]string{"beginning", "begun", "running", "run", "committing", "rolling back"}
)

// word returns the word for a value, or its number if there is none yet.
func word[N ~uint8](words []string, n N) string {
	if int(n) < len(words) && (n == 0 || words[n] != "") {
		return words[n]
	}
	return strconv.Itoa(int(n))
}
