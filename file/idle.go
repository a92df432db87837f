package file

import (
	"context"
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/source"
)

// isIdle is the source's source.Info.Idle: everything was read, also what came since, and
// nothing that was handed back waits. A Fetch that was slow and brought nothing
// does not say that: it may have ended before it could read. What a paused lane
// has is no reason to go on.
func (l *lane) isIdle(context.Context) (idle bool, left []semel.Unfinished, err error) {
	paused, _ := l.flags()
	switch {
	case !l.begun, l.waitsBack():
		return false, nil, nil
	case paused && l.over:
		return true, nil, nil
	case paused:
		return true, []semel.Unfinished{{Lane: l.id.ID, Messages: -1, Reason: "its lane is paused, and what follows was not read"}}, nil
	case l.held != nil, !l.caughtUp:
		return false, nil, nil
	}
	more, err := l.look()
	return !more && l.caughtUp, l.torn(), err
}

// Info implements source.Source.
func (l *lane) Info() source.Info {
	return source.Info{Idle: l.isIdle, Bounded: l.bounded(), AtEnd: l.atEnd}
}

// torn is the line without its end that a followed file ends in: its writer may
// still be at it.
func (l *lane) torn() []semel.Unfinished {
	rest, some := l.scan.rest()
	if !some || !l.options.Follow {
		return nil
	}
	return []semel.Unfinished{{Lane: l.id.ID, Messages: 1, Reason: fmt.Sprintf("the last line, from byte %d, has no line end yet", rest.start)}}
}

// bounded reports whether the source ends by itself. Standard input counts as endless, because its end cannot
// be known.
func (l *lane) bounded() bool { return !l.options.Follow && !l.endless }

// atEnd is the source's source.Info.AtEnd: a file that is not followed is at its end when
// it was read, or when its lane is paused.
func (l *lane) atEnd() bool {
	paused, _ := l.flags()
	return !l.options.Follow && l.over || paused && l.bounded()
}
