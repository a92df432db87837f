// Package loglimit limits the number of log lines: at most Most lines a minute have the same message, and at most
// MostOfReason of these lines have the same reason. The last log line before lines are suppressed announces the
// suppression. The first log line after the suppression has the number of suppressed lines. Lines of level debug are
// not limited.
package loglimit

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	// Most is the maximum number of log lines with the same message in Window.
	Most = 30
	// MostOfReason is the maximum number of log lines with the same message and the same reason in Window. Because of
	// this limit, log lines with other reasons are not crowded out.
	MostOfReason = 10
	Window       = time.Minute
	// mostNames is the maximum number of messages that are counted separately. Messages above this number share one
	// count.
	mostNames = 1000
)

// The attributes that the Handler adds to log lines.
const (
	// SuppressedFor is an attribute of the last log line before lines are suppressed.
	SuppressedFor = "suppressed_for"
	// Suppressed is an attribute of the first log line after lines were suppressed: the number of suppressed lines.
	Suppressed = "suppressed"
	reason     = "reason"
)

// Handler is a slog.Handler that limits the number of log lines.
type Handler struct {
	next  slog.Handler
	gates *counters
}

// New returns a handler that passes a limited number of log lines to the handler next. If next is already a Handler of
// this package, New returns next itself, so that all loggers share one limit.
func New(next slog.Handler) slog.Handler {
	if _, bounded := next.(*Handler); bounded {
		return next
	}
	return &Handler{next, &counters{byName: map[string]*counter{}}}
}

// Enabled implements slog.Handler.
func (h *Handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

// WithAttrs implements slog.Handler.
func (h *Handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &Handler{h.next.WithAttrs(attrs), h.gates}
}

// WithGroup implements slog.Handler.
func (h *Handler) WithGroup(name string) slog.Handler {
	return &Handler{h.next.WithGroup(name), h.gates}
}

// Handle implements slog.Handler.
func (h *Handler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level <= slog.LevelDebug {
		return h.next.Handle(ctx, r)
	}
	why := ""
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == reason {
			why = a.Value.String()
		}
		return a.Key != reason
	})
	passes, last, unlogged := h.gates.pass(time.Now(), r.Message, why)
	if !passes {
		return nil
	}
	if last || unlogged > 0 {
		r = r.Clone() // attributes of a record may be shared
	}
	if unlogged > 0 {
		r.AddAttrs(slog.Int(Suppressed, unlogged))
	}
	if last {
		r.AddAttrs(slog.String(SuppressedFor, "1m"))
	}
	return h.next.Handle(ctx, r)
}

// counters limits the number of lines of a log.
type counters struct {
	mutex  sync.Mutex
	byName map[string]*counter // by name; guarded by mutex
}

// counter counts the log lines with the same message.
type counter struct {
	began      time.Time
	lines      int
	reasons    map[string]int // lines by reason
	suppressed int            // suppressed lines since the last logged line
}

// pass reports whether a log line may be written. The result last means that the next lines will be suppressed. The
// result unlogged is the number of earlier lines with the same message that were suppressed.
func (g *counters) pass(now time.Time, name, why string) (passes, last bool, unlogged int) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	of := g.counterOf(now, name)
	if now.Sub(of.began) >= Window {
		of.began, of.lines, of.reasons = now, 0, map[string]int{}
	}
	if of.lines >= Most || why != "" && of.reasons[why] >= MostOfReason {
		of.suppressed++
		return false, false, 0
	}
	of.lines++
	of.reasons[why]++
	unlogged, of.suppressed = of.suppressed, 0
	return true, of.lines == Most || why != "" && of.reasons[why] == MostOfReason, unlogged
}

// counterOf returns the counter for the log lines with a message.
func (g *counters) counterOf(now time.Time, name string) *counter {
	if of := g.byName[name]; of != nil {
		return of
	}
	if len(g.byName) >= mostNames {
		for known, of := range g.byName {
			if now.Sub(of.began) >= Window && of.suppressed == 0 {
				delete(g.byName, known)
			}
		}
	}
	if len(g.byName) >= mostNames {
		name = ""
		if of := g.byName[name]; of != nil {
			return of
		}
	}
	of := &counter{began: now, reasons: map[string]int{}}
	g.byName[name] = of
	return of
}
