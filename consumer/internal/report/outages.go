package report

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/generations"
	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/internal/machine"
)

// outage is a period in which the store, the source or the broker does not work.
type outage struct {
	began, logged time.Time
	tries         int
	// causes contains the logged causes, without the words that differ each time.
	causes map[string]bool
}

// mostCauses is the maximum number of causes of an outage that are remembered.
const mostCauses = 100

// outageEvery is the interval at which a continuing outage is logged.
const outageEvery = time.Minute

// consequences contains, for each part, the consequence of an outage of that part, as a text for the log.
var consequences = map[string]string{
	"store":  "nothing is settled",
	"source": "nothing is fetched",
	"inbox":  "nothing that waits there is worked on",
	"broker": "what was committed stays unsettled",
}

// reportFailure reports an attempt that failed. Observers get every failure. The log gets the first failure, the first
// failure of each further cause, and one failure a minute. The log level is error if waiting cannot help. Only the
// loop's goroutine calls reportFailure and reportRecovery.
func (n *Reporter) reportFailure(r machine.Report) {
	why := Cause(r.Err)
	n.SetReady(r.Part, why)
	n.Notify(semel.Event{Kind: semel.EventNotReady, Reason: semel.Reason(r.Part), Wait: r.Wait, Err: r.Err})
	now, o := time.Now(), n.outages[r.Part]
	if o == nil {
		o = &outage{began: now, causes: map[string]bool{}}
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
	switch changed := o.addCause(kindOf(why)); {
	case o.tries == 1 && errors.Is(r.Err, generations.ErrNotUsable): // a short switch of generations is no fault
		o.logged = now
		n.logger.Info("its generation is switched, or is about to be: nothing is applied before that is over", "consumer", n.consumer, "wait", Rounded(r.Wait), "error", why)
	case o.tries == 1 && n.mayLogOutage(r.Part):
		o.logged = now
		log(r.Part+" does not work; "+consequences[r.Part]+", next try after a pause", "wait", Rounded(r.Wait))
	case o.logged.IsZero() && o.tries == 1: // there were many outages in this minute: this outage is logged only if it lasts
	case now.Sub(maxTime(o.logged, o.began)) >= outageEvery:
		o.logged = now
		log(r.Part+" still does not work; "+consequences[r.Part], "for", Rounded(now.Sub(o.began)), "tries", o.tries)
	case changed && !o.logged.IsZero() && n.mayLogOutage(r.Part+"\x00cause"):
		log(r.Part+" does not work for another cause; "+consequences[r.Part], "for", Rounded(now.Sub(o.began)), "tries", o.tries)
	}
}

// addCause reports whether a cause is new in this outage, and remembers the cause. If there are too many causes,
// addCause forgets all of them; the limit of log lines still applies.
func (o *outage) addCause(kind string) bool {
	if o.causes[kind] {
		return false
	}
	if len(o.causes) >= mostCauses {
		clear(o.causes)
	}
	o.causes[kind] = true
	return true
}

// kindOf returns an error's text without the words that differ between attempts. The words that differ contain a digit,
// such as ports, process ids and durations. The word after SQLSTATE also has digits but is not removed, because it
// names the cause.
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

// reportRecovery reports that a part works again.
func (n *Reporter) reportRecovery(what string) {
	n.SetReady(what, "")
	n.Notify(semel.Event{Kind: semel.EventReady, Reason: semel.Reason(what)})
	o := n.outages[what]
	delete(n.outages, what)
	switch {
	case what == machine.PartBreaker && o != nil:
		n.logger.Info("the circuit breaker is closed: a message has succeeded, and all are tried again", "consumer", n.consumer, "after", Rounded(time.Since(o.began)), "tries", o.tries)
	case o == nil:
		n.logger.Info(what+" works again", "consumer", n.consumer)
	case !o.logged.IsZero():
		n.logger.Info(what+" works again", "consumer", n.consumer, "after", Rounded(time.Since(o.began)), "tries", o.tries)
	}
}

// mayLogOutage reports whether the beginning of an outage may be logged. Without a limit, a part that fails and
// recovers repeatedly would flood the log.
func (n *Reporter) mayLogOutage(what string) bool {
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

// Cause returns the text of an error without line breaks. Joined errors are separated by semicolons. If the text of one
// error contains the text of another, only the longer text is used.
func Cause(err error) string {
	if err == nil {
		return ""
	}
	var said []string
	for line := range strings.Lines(legible.Text(err)) {
		line = strings.TrimSpace(line)
		if slices.ContainsFunc(said, func(s string) bool { return strings.Contains(s, line) }) {
			continue // also skips an empty line
		}
		said = slices.DeleteFunc(said, func(s string) bool { return strings.Contains(line, s) })
		said = append(said, line)
	}
	return strings.Join(said, "; ")
}

// Rounded returns a duration with two or three digits.
func Rounded(d time.Duration) time.Duration {
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

// breakerOpen reports a message that failed permanently and opened the circuit breaker, or that failed while
// the breaker was open. Observers get an event for each message. The log gets the first message and then one
// message a minute. The reason in Ready does not contain the handler's error, because that error may quote a
// payload.
func (n *Reporter) breakerOpen(r machine.Report) {
	n.SetReady(r.Part, fmt.Sprintf("%d tries in a row failed for good: nothing more is fetched, and one message is tried at a time until one succeeds; the log names the error", r.N))
	e := n.describeItem(r.Item, semel.Event{Kind: semel.EventNotReady, Reason: semel.Reason(r.Part), Messages: r.N, Wait: r.Wait, Err: r.Err})
	n.Notify(e)
	now, o := time.Now(), n.outages[r.Part]
	if o == nil {
		o = &outage{began: now, logged: now}
		n.outages[r.Part] = o
		n.logger.Error("the circuit breaker is open: messages fail for good one after the other; nothing more is fetched, and one is tried at a time until one succeeds",
			"consumer", n.consumer, "failed", r.N, "id", e.Key.ID, "lane", e.Lane, "wait", Rounded(r.Wait), "error", Cause(r.Err))
	}
	o.tries++
	if now.Sub(o.logged) >= outageEvery {
		o.logged = now
		n.logger.Error("the circuit breaker is still open", "consumer", n.consumer, "for", Rounded(now.Sub(o.began)), "tries", o.tries, "id", e.Key.ID, "error", Cause(r.Err))
	}
}
