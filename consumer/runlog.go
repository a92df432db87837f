package consumer

import (
	"log/slog"

	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/source"
)

// logsRun reports whether the log has the start and the end of the run. A run of Process or of
// a command that works off an inbox has neither.
func (e *engine[Tx]) logsRun() bool {
	return !e.ofProcess && e.source != source.Source(noSource{ends: true})
}

// logStart logs that the consumer starts, and what its source says about itself.
func (e *engine[Tx]) logStart() {
	if !e.logsRun() {
		return
	}
	about := []any{"consumer", e.config.Name, "strategy", e.config.Strategy.String(), "workers", e.config.Workers}
	if source, describes := e.source.(slog.LogValuer); describes {
		about = append(about, "source", source.LogValue())
	}
	e.config.Logger.Info("the consumer starts", about...)
}

// logEnd logs that the consumer's run has ended, and what became of the messages.
func (e *engine[Tx]) logEnd(err error) {
	if !e.logsRun() {
		return
	}
	c := e.snapshot()
	about := []any{"consumer", e.config.Name, "applied", c.Applied + c.Inbox.Applied, "duplicates", c.Duplicates + c.Inbox.Duplicates,
		"set_aside", c.Parked + c.DeadLettered + c.Conflicts + c.Inbox.Parked + c.Inbox.DeadLettered, "failed", c.Failed, "in_flight", c.InFlight}
	if err != nil {
		about = append(about, "error", legible.Printable(err.Error()))
	}
	e.config.Logger.Info("the consumer has ended", about...)
}
