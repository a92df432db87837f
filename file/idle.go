package file

import (
	"context"
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/source"
)

// isIdle implements source.Info.Idle: it reports whether all lines were read, including lines that were added lately,
// and no nacked line waits. A slow Fetch without a result does not prove that the source is idle, because such a Fetch
// may have ended before it could read. Lines of a paused lane do not count.
func (l *lane) isIdle(context.Context) (idle bool, left []semel.Unfinished, err error) {
	paused, _ := l.flags()
	switch {
	case !l.begun, l.hasNacked():
		return false, nil, nil
	case paused && l.finished:
		return true, nil, nil
	case paused:
		return true, []semel.Unfinished{{Lane: l.id.ID, Messages: -1, Reason: "its lane is paused, and what follows was not read"}}, nil
	case l.held != nil, !l.caughtUp:
		return false, nil, nil
	}
	more, err := l.checkForMore()
	return !more && l.caughtUp, l.incompleteLine(), err
}

// Info implements source.Source.
func (l *lane) Info() source.Info {
	return source.Info{Idle: l.isIdle, Bounded: l.isBounded(), AtEnd: l.atEnd}
}

// incompleteLine returns the last line of a followed file if the line has no line end. The writer of the file may not
// have finished its last line.
func (l *lane) incompleteLine() []semel.Unfinished {
	rest, some := l.scan.rest()
	if !some || !l.options.Follow {
		return nil
	}
	return []semel.Unfinished{{Lane: l.id.ID, Messages: 1, Reason: fmt.Sprintf("the last line, from byte %d, has no line end yet", rest.start)}}
}

// isBounded reports whether the source has an end. Standard input counts as endless, because its end cannot be
// known in advance.
func (l *lane) isBounded() bool { return !l.options.Follow && !l.endless }

// atEnd implements source.Info.AtEnd. A file that is not followed is at its end when it was read completely,
// or while its lane is paused.
func (l *lane) atEnd() bool {
	paused, _ := l.flags()
	return !l.options.Follow && l.finished || paused && l.isBounded()
}
