package hook

import (
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func TestAWarningOfTheClientIsLoggedOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text strings.Builder
		var once Warnings
		log := Logger{slog.New(slog.NewTextHandler(&text, nil)), &once}
		for began := time.Now(); time.Since(began) < 3*time.Minute; <-time.After(200 * time.Millisecond) {
			log.Log(kgo.LogLevelWarn, "unable to open connection to broker", "addr", "a:1", "broker", "seed_0", "err", io.EOF)
			log.Log(kgo.LogLevelWarn, "unable to open connection to broker", "addr", "b:1", "broker", "seed_1", "err", io.EOF)
		}
		log.Log(kgo.LogLevelWarn, "group session ended")
		if got := strings.Count(text.String(), "\n"); got != 2*3+1 {
			t.Errorf("%d lines, want 7:\n%s", got, text.String())
		}
		if got := strings.Count(text.String(), "broker=seed_0 err=EOF again=299"); got != 2 {
			t.Errorf("%d lines say how often, want 2:\n%s", got, text.String())
		}
	})
}
