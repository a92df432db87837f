package file

import (
	"context"
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/source"
)

var (
	_ source.IdleReporter = (*lane)(nil)
	_ source.EndOfSource  = (*lane)(nil)
)

// Idle implements source.IdleReporter: everything was read, also what came since, and
// nothing that was handed back waits. A Fetch that was slow and brought nothing
// does not say that: it may have ended before it could read. What a paused lane
// has is no reason to go on.
func (l *lane) Idle(context.Context) (idle bool, left []semel.Unfinished, err error) {
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

// torn is the line without its end that a followed file ends in: its writer may
// still be at it.
func (l *lane) torn() []semel.Unfinished {
	rest, some := l.scan.rest()
	if !some || !l.options.Follow {
		return nil
	}
	return []semel.Unfinished{{Lane: l.id.ID, Messages: 1, Reason: fmt.Sprintf("the last line, from byte %d, has no line end yet", rest.start)}}
}

// Bounded implements source.EndOfSource. Standard input counts as endless, because its end cannot
// be known.
func (l *lane) Bounded() bool { return !l.options.Follow && !l.endless }

// AtEnd implements source.EndOfSource: a file that is not followed is at its end when
// it was read, or when its lane is paused.
func (l *lane) AtEnd() bool {
	paused, _ := l.flags()
	return !l.options.Follow && l.over || paused && l.Bounded()
}
