package consumer

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/store"
)

// outage is the time in which the store, the source or the broker does not work.
type outage struct {
	began, logged time.Time
	tries         int
	// told are the causes that were logged, without what differs each time.
	told map[string]bool
}

// mostCauses is how many causes of an outage are remembered.
const mostCauses = 100

// outageEvery is how often an outage that goes on is logged.
const outageEvery = time.Minute

// meanwhile is what stands still while one of the parts does not work.
var meanwhile = map[string]string{
	"store":  "nothing is settled",
	"source": "nothing is fetched",
	"inbox":  "nothing that waits there is worked on",
	"broker": "what was committed stays unsettled",
}

// down tells of a try that failed. Observers hear each; the log has the first,
// each further cause once, and one a minute, as errors if waiting cannot mend it. It is
// called by the loop's goroutine only, as up is.
func (n *reporter) down(r machine.Report) {
	why := cause(r.Err)
	n.setReady(r.Part, why)
	n.tell(semel.Event{Kind: semel.EventNotReady, Reason: semel.Reason(r.Part), Wait: r.Wait, Err: r.Err})
	now, o := time.Now(), n.outages[r.Part]
	if o == nil {
		o = &outage{began: now, told: map[string]bool{}}
		n.outages[r.Part] = o
	}
	o.tries++
	level := slog.LevelWarn
	if decided := (*semel.HandlerError)(nil); errors.As(r.Err, &decided) && decided.Decision == semel.DecidePermanent {
		level = slog.LevelError
	}
	log := func(text string, more ...any) {
		n.logger.Log(context.Background(), level, text, append([]any{"consumer", n.consumer}, append(more, "error", why)...)...)
	}
	switch changed := o.learns(kindOf(why)); {
	case o.tries == 1 && errors.Is(r.Err, store.ErrGeneration): // nothing is wrong, unless it lasts
		o.logged = now
		n.logger.Info("its generation is switched, or is about to be: nothing is applied before that is over", "consumer", n.consumer, "wait", rounded(r.Wait), "error", why)
	case o.tries == 1 && n.seldom(r.Part):
		o.logged = now
		log(r.Part+" does not work; "+meanwhile[r.Part]+", next try after a pause", "wait", rounded(r.Wait))
	case o.logged.IsZero() && o.tries == 1: // one of many in a minute: told only if it lasts
	case now.Sub(maxTime(o.logged, o.began)) >= outageEvery:
		o.logged = now
		log(r.Part+" still does not work; "+meanwhile[r.Part], "for", rounded(now.Sub(o.began)), "tries", o.tries)
	case changed && !o.logged.IsZero() && n.seldom(r.Part+"\x00cause"):
		log(r.Part+" does not work for another cause; "+meanwhile[r.Part], "for", rounded(now.Sub(o.began)), "tries", o.tries)
	}
}

// learns reports whether a cause is new to the outage. Where there are too many
// they are forgotten; the log's own bound holds all the same.
func (o *outage) learns(kind string) bool {
	if o.told[kind] {
		return false
	}
	if len(o.told) >= mostCauses {
		clear(o.told)
	}
	o.told[kind] = true
	return true
}

// kindOf is an error's text without what differs from one try to the next: the
// words that hold a digit, such as ports, process ids and durations. What stands
// behind the word SQLSTATE names the cause and stays.
func kindOf(why string) string {
	words := strings.Fields(why)
	for i, word := range words {
		state := i > 0 && strings.HasSuffix(words[i-1], "SQLSTATE")
		if strings.ContainsAny(word, "0123456789") && !state {
			words[i] = "#"
		}
	}
	return strings.Join(words, " ")
}

// up tells that a part works again.
func (n *reporter) up(what string) {
	n.setReady(what, "")
	n.tell(semel.Event{Kind: semel.EventReady, Reason: semel.Reason(what)})
	o := n.outages[what]
	delete(n.outages, what)
	switch {
	case what == machine.PartBreaker && o != nil:
		n.logger.Info("the circuit breaker is closed: a message has succeeded, and all are tried again", "consumer", n.consumer, "after", rounded(time.Since(o.began)), "tries", o.tries)
	case o == nil:
		n.logger.Info(what+" works again", "consumer", n.consumer)
	case !o.logged.IsZero():
		n.logger.Info(what+" works again", "consumer", n.consumer, "after", rounded(time.Since(o.began)), "tries", o.tries)
	}
}

// seldom reports whether the beginning of an outage may be logged: one part
// that comes and goes would flood the log.
func (n *reporter) seldom(what string) bool {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return n.flood.count("outage\x00"+what) <= floodMost
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// cause is the text of an error for one line: what it joins is separated by
// semicolons, and what another part says already is left out.
func cause(err error) string {
	if err == nil {
		return ""
	}
	var said []string
	for line := range strings.Lines(legible.Text(err)) {
		line = strings.TrimSpace(line)
		if slices.ContainsFunc(said, func(s string) bool { return strings.Contains(s, line) }) {
			continue // an empty line, too
		}
		said = slices.DeleteFunc(said, func(s string) bool { return strings.Contains(line, s) })
		said = append(said, line)
	}
	return strings.Join(said, "; ")
}

// rounded is a duration with as many digits as somebody reads.
func rounded(d time.Duration) time.Duration {
	for _, unit := range []time.Duration{time.Second, time.Millisecond, time.Microsecond} {
		switch {
		case d >= 10*unit:
			return d.Round(unit)
		case d >= unit:
			return d.Round(unit / 10)
		}
	}
	return d
}
