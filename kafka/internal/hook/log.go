package hook

import (
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Logger logs the messages of the client. Fetch also returns the errors that the client logs, so Logger writes
// them as warnings.
//
// While no broker answers, the client logs each attempt, several times a second. Logger writes a repeated
// warning about the same broker at most once a minute, with the number of repetitions.
type Logger struct {
	To       *slog.Logger
	Warnings *Warnings
}

// Warnings stores the client's recent warnings.
type Warnings struct {
	mu    sync.Mutex
	lines map[string]*repeatedWarning // guarded by mu; the key is the text with the broker
}

// repeatedWarning is a warning that may occur again.
type repeatedWarning struct {
	logged time.Time
	since  int // repetitions since the last log line
}

const (
	// The interval at which a repeated warning is logged.
	warnEvery = time.Minute
	// The maximum number of stored warnings. The client has few different texts.
	mostWarnings = 1000
)

// Level implements kgo.Logger.
func (l Logger) Level() kgo.LogLevel { return kgo.LogLevelWarn }

// Log implements kgo.Logger.
func (l Logger) Log(_ kgo.LogLevel, text string, values ...any) {
	again, tell := l.Warnings.tell(text+"\x00"+brokerOf(values), time.Now())
	if !tell {
		return
	}
	if again > 0 {
		values = append(values[:len(values):len(values)], "again", again)
	}
	l.To.Warn("kafka client: "+text, values...)
}

// tell reports whether a warning must be logged now. The result again is the number of repetitions since the last log
// line.
func (s *Warnings) tell(what string, now time.Time) (again int, tell bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	line := s.lines[what]
	if line == nil {
		if s.lines == nil || len(s.lines) >= mostWarnings {
			s.lines = map[string]*repeatedWarning{}
		}
		s.lines[what] = &repeatedWarning{logged: now}
		return 0, true
	}
	if now.Sub(line.logged) < warnEvery {
		line.since++
		return 0, false
	}
	again, line.logged, line.since = line.since, now, 0
	return again, true
}

// brokerOf finds the broker in the values of a warning, and returns "" if the values contain no broker.
func brokerOf(values []any) string {
	for i := 0; i+1 < len(values); i += 2 {
		if values[i] == "broker" {
			return fmt.Sprint(values[i+1])
		}
	}
	return ""
}
