package hook

import (
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Logger passes the client's warnings on. What it logs as errors the source
// returns from Fetch, where they are handled, so they are warnings here.
//
// The client warns of each try, several times a second while no broker
// answers; the log has a warning about one broker once, then once a minute with
// how often it came.
type Logger struct {
	To       *slog.Logger
	Warnings *Warnings
}

// Warnings are those of the client of late.
type Warnings struct {
	mu    sync.Mutex
	lines map[string]*repeated // guarded by mu; by text and broker
}

// repeated is a warning that comes again.
type repeated struct {
	logged time.Time
	since  int // how often it came since it was logged
}

const (
	// warnEvery is how often a warning of the client is logged that stays.
	warnEvery = time.Minute
	// mostWarnings bounds what is remembered; the client has few texts.
	mostWarnings = 1000
)

// Level implements kgo.Logger.
func (l Logger) Level() kgo.LogLevel { return kgo.LogLevelWarn }

// Log implements kgo.Logger.
func (l Logger) Log(_ kgo.LogLevel, text string, values ...any) {
	again, tell := l.Warnings.tell(text+"\x00"+about(values), time.Now())
	if !tell {
		return
	}
	if again > 0 {
		values = append(values[:len(values):len(values)], "again", again)
	}
	l.To.Warn("kafka client: "+text, values...)
}

// tell reports whether a warning is to be logged now, and how often it came
// since it was logged last.
func (s *Warnings) tell(what string, now time.Time) (again int, tell bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	line := s.lines[what]
	if line == nil {
		if s.lines == nil || len(s.lines) >= mostWarnings {
			s.lines = map[string]*repeated{}
		}
		s.lines[what] = &repeated{logged: now}
		return 0, true
	}
	if now.Sub(line.logged) < warnEvery {
		line.since++
		return 0, false
	}
	again, line.logged, line.since = line.since, now, 0
	return again, true
}

// about is which broker a warning is of, if of one.
func about(values []any) string {
	for i := 0; i+1 < len(values); i += 2 {
		if values[i] == "broker" {
			return fmt.Sprint(values[i+1])
		}
	}
	return ""
}
