package running

import (
	"context"
	"log/slog"
	"slices"

	"github.com/semel-go/semel"
)

// single are the events of single messages that the log tells of. A message
// that halts its consumer is not among them: that is the consumer's end.
var single = []semel.EventKind{semel.EventDuplicate, semel.EventConflict, semel.EventParked, semel.EventDeadLettered,
	semel.EventDiscarded, semel.EventRetry, semel.EventBackstop, semel.EventSameContent, semel.EventWithoutKey}

// shown are log lines that repeat what the live line and the summary show: they stand in the log
// of package consumer under these texts.
var shown = []string{"the consumer starts", "the consumer has ended"}

// SumUp leaves single messages out of a log that a person reads while the run
// goes on: there may be millions, and what was set aside is summed up at the
// end.
func SumUp(log slog.Handler) slog.Handler { return sumUp{log} }

type sumUp struct{ slog.Handler }

func (s sumUp) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < slog.LevelError && (slices.Contains(single, semel.EventKind(r.Message)) || slices.Contains(shown, r.Message)) {
		return nil
	}
	return s.Handler.Handle(ctx, r)
}

func (s sumUp) WithAttrs(attrs []slog.Attr) slog.Handler { return sumUp{s.Handler.WithAttrs(attrs)} }

func (s sumUp) WithGroup(name string) slog.Handler { return sumUp{s.Handler.WithGroup(name)} }
