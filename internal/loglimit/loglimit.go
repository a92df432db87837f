// Package loglimit bounds what goes into a log: of one name (the text of a line) at most Most
// lines a minute, and at most MostOfReason of one name and reason. The last line before that
// says that further ones are not logged, and the next one after it how many there were. Lines of
// the level debug are not bounded: who asks for them wants them all.
package loglimit

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// The bounds.
const (
	// Most is how many lines of a name there are in Window.
	Most = 30
	// MostOfReason is how many of them may have the same reason, if they have one: the first
	// of each reason is worth more than many of one.
	MostOfReason = 10
	Window       = time.Minute
	// mostNames bounds the memory; names beyond that share one count.
	mostNames = 1000
)

// The attributes that it adds.
const (
	// Further stands in the last line before lines are left out.
	Further = "further"
	// Unlogged stands in the next one: how many were left out.
	Unlogged = "unlogged"
	reason   = "reason"
)

// Handler is a slog.Handler that leaves lines out.
type Handler struct {
	next  slog.Handler
	gates *gates
}

// New bounds what goes to next. One that is bounded already is returned as it is, so that the
// bound is that of all who log there.
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
		r = r.Clone() // its attributes may be shared
	}
	if unlogged > 0 {
		r.AddAttrs(slog.Int(Unlogged, unlogged))
	}
	if last {
		r.AddAttrs(slog.String(Further, "not logged for a minute; they are counted, and the next line says how many there were"))
	}
	return h.next.Handle(ctx, r)
}

// gates count the lines of a log.
type gates struct {
	mutex sync.Mutex
	of    map[string]*gate // by name; guarded by mutex
}

// gate counts the lines of one name.
type gate struct {
	began    time.Time
	lines    int
	reasons  map[string]int // of those lines, so at most Most
	unlogged int            // since the last line
}

// pass reports whether a line may pass, whether it is the last for now, and how many of its name
// were left out before it.
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

// gate is that of a name.
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
