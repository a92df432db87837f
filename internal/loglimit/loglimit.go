// Package loglimit limits the number of log lines: at most Most lines a minute with the same message, and of
// these at most MostOfReason lines with the same reason. The last line before lines are suppressed says that
// lines will be suppressed. The next line after that has the number of suppressed lines. Lines of level debug
// are not limited.
package loglimit

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	// Most is the maximum number of lines with one message in Window.
	Most = 30
	// MostOfReason is the maximum number of lines with the same message and the same reason in Window. So
	// lines with other reasons are logged too.
	MostOfReason = 10
	Window       = time.Minute
	// mostNames is the maximum number of messages that are counted separately. All further messages share one
	// count.
	mostNames = 1000
)

// The attributes that the handler adds.
const (
	// SuppressedFor is in the last line before lines are suppressed.
	SuppressedFor = "suppressed_for"
	// Suppressed is in the first line after lines were suppressed. Its value is the number of suppressed
	// lines.
	Suppressed = "suppressed"
	reason     = "reason"
)

// Handler is a slog.Handler that limits the number of lines.
type Handler struct {
	next  slog.Handler
	gates *gates
}

// New returns a handler that limits the lines for next. If next is already a Handler, New returns next, so
// that all loggers share one limit.
func New(next slog.Handler) slog.Handler {
	if _, bounded := next.(*Handler); bounded {
		return next
	}
	return &Handler{next, &gates{of: map[string]*gate{}}}
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

// gates limit the lines of a log.
type gates struct {
	mutex sync.Mutex
	of    map[string]*gate // by name; guarded by mutex
}

// gate counts the lines with one message.
type gate struct {
	began    time.Time
	lines    int
	reasons  map[string]int // lines by reason
	unlogged int            // suppressed lines since the last logged line
}

// pass reports whether a line may be logged. last means that further lines will be suppressed. unlogged is the
// number of lines with the same message that were suppressed before this line.
func (g *gates) pass(now time.Time, name, why string) (passes, last bool, unlogged int) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	of := g.gate(now, name)
	if now.Sub(of.began) >= Window {
		of.began, of.lines, of.reasons = now, 0, map[string]int{}
	}
	if of.lines >= Most || why != "" && of.reasons[why] >= MostOfReason {
		of.unlogged++
		return false, false, 0
	}
	of.lines++
	of.reasons[why]++
	unlogged, of.unlogged = of.unlogged, 0
	return true, of.lines == Most || why != "" && of.reasons[why] == MostOfReason, unlogged
}

// gate returns the gate for a message.
func (g *gates) gate(now time.Time, name string) *gate {
	if of := g.of[name]; of != nil {
		return of
	}
	if len(g.of) >= mostNames {
		for known, of := range g.of {
			if now.Sub(of.began) >= Window && of.unlogged == 0 {
				delete(g.of, known)
			}
		}
	}
	if len(g.of) >= mostNames {
		name = ""
		if of := g.of[name]; of != nil {
			return of
		}
	}
	of := &gate{began: now, reasons: map[string]int{}}
	g.of[name] = of
	return of
}
