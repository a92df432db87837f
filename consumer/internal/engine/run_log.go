package engine

import (
	"log/slog"

	"github.com/semel-go/semel/internal/legible"
)

// logsRun reports whether the start and the end of the run are logged. Start and end are not logged for Process and for
// a command that processes an inbox.
func (e *Engine[Tx]) logsRun() bool {
	return !e.ByCalls && !e.InboxOnly
}

// logStart logs that the consumer starts, with the description of its source.
func (e *Engine[Tx]) logStart() {
	if !e.logsRun() {
		return
	}
	about := []any{"consumer", e.config.Consumer, "strategy", e.config.Strategy, "workers", e.config.Machine.Workers}
	if source, describes := e.Source.(slog.LogValuer); describes {
		about = append(about, "source", source.LogValue())
	}
	e.config.Logger.Info("the consumer starts", about...)
}

// logEnd logs that the consumer's run has ended, with the counts of messages.
func (e *Engine[Tx]) logEnd(err error) {
	if !e.logsRun() {
		return
	}
	c := e.Snapshot()
	about := []any{"consumer", e.config.Consumer, "applied", c.Applied + c.Inbox.Applied, "duplicates", c.Duplicates + c.Inbox.Duplicates,
		"unapplied", c.Parked + c.DeadLettered + c.Conflicts + c.Inbox.Parked + c.Inbox.DeadLettered, "failed", c.Failed, "in_flight", c.InFlight}
	if err != nil {
		about = append(about, "error", legible.Printable(err.Error()))
	}
	e.config.Logger.Info("the consumer has ended", about...)
}
