package running

import (
	"context"
	"log/slog"
	"slices"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/eventkind"
)

// single are the log events about single messages. A message
// that halts its consumer is not among them, because it ends the consumer.
var single = []semel.EventKind{eventkind.Duplicate, semel.EventConflict, semel.EventParked, semel.EventDeadLettered,
	semel.EventDiscarded, eventkind.Retry, eventkind.Backstop, eventkind.SameContent, eventkind.WithoutKey}

// shown are log lines that repeat the live line and the summary; package consumer logs
// them with these texts.
var shown = []string{"the consumer starts", "the consumer has ended"}

// SumUp removes the lines about single messages from a log that a person reads during
// the run: there may be millions, and the summary counts parked messages at the
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
