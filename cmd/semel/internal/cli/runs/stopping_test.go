package runs

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"
)

// slowLog needs one second to write a line.
type slowLog struct {
	slog.Handler
	lines int
}

func (l *slowLog) Handle(context.Context, slog.Record) error {
	written, stop := context.WithTimeout(context.Background(), time.Second)
	defer stop()
	<-written.Done()
	l.lines++
	return nil
}

func TestThatARunStopsIsSaidBeforeItsSummary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &slowLog{Handler: slog.NewTextHandler(t.Output(), nil)}
		ctx, cancel := context.WithCancel(t.Context())
		said := logStopping(ctx, slog.New(log), nil)
		cancel()
		synctest.Wait()
		if said(); log.lines != 1 {
			t.Errorf("%d lines are written when the run has ended, not 1", log.lines)
		}
		synctest.Wait()
	})
}

func TestARunThatEndsByItselfSaysNothingOfAStop(t *testing.T) {
	log := &slowLog{Handler: slog.NewTextHandler(t.Output(), nil)}
	logStopping(t.Context(), slog.New(log), nil)()
	if log.lines != 0 {
		t.Errorf("%d lines", log.lines)
	}
}
