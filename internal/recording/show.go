package recording

import (
	"fmt"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// describe says in words what a machine is told.
func describe(e machine.Event, k *known, ids bool) string {
	switch e := e.(type) {
	case machine.Given:
		return "lane " + lane(e.Lane) + " is given"
	case machine.Revoking:
		return "lane " + lane(e.Lane) + " is to be left"
	case machine.Lost:
		return "lane " + lane(e.Lane) + " is lost"
	case machine.Fetched:
		return "fetched " + many(e.Items, ids) + flags("end", e.End, "failed", e.Failed, "not answered", e.Unanswered, "there is more", e.More)
	case machine.Claimed:
		return "claimed " + many(e.Items, ids) + flags("failed", e.Failed, fmt.Sprintf("not before %v", e.Later), e.Later > 0)
	case machine.Marked:
		return describeMarked(e)
	case machine.Ran:
		text := fmt.Sprintf("flight %d ran %d handlers", e.Flight.Number, e.Done) + flags("of all at once", e.Whole, "more steps are left", len(e.Stepped) > 0)
		if e.Failed {
			text += fmt.Sprintf(", then it failed: %s, %s", e.Class, e.Decision) + flags("nobody ran", e.Free, "by others' doing", e.Outside)
		}
		return text
	case machine.Stuck:
		return fmt.Sprintf("flight %d: a handler goes on after its timeout", e.Flight.Number) + flags("of all at once", e.Item == nil, "in its commit", e.Committing)
	case machine.Ended:
		text := fmt.Sprintf("flight %d ended: %s", e.Flight.Number, e.Outcome)
		if e.Class != store.ClassNone {
			text += fmt.Sprintf(", %s, entry %d is to blame", e.Class, e.Culprit)
		}
		return text + flags("rows are freed", e.Freed)
	case machine.Settled:
		return fmt.Sprintf("settled %d", len(e.Settle.Items)) + flags(fmt.Sprintf("%d are left", len(e.Left)), len(e.Left) > 0)
	case machine.Due:
		return "something in the inbox may be due"
	case machine.Timer:
		return "the time has come"
	}
	return "stop"
}

func describeMarked(e machine.Marked) string {
	if e.Class != store.ClassNone {
		return fmt.Sprintf("flight %d did not begin: %s", e.Flight.Number, e.Class) + flags("a copy is in flight elsewhere", e.CopyBusy)
	}
	var all []string
	for _, v := range e.Verdicts {
		all = append(all, v.Kind.String())
	}
	return fmt.Sprintf("flight %d is marked: %s", e.Flight.Number, repeated(all))
}

// repeated joins words, equal neighbours with their number.
func repeated(all []string) string {
	var out []string
	for i := 0; i < len(all); {
		n := 1
		for i+n < len(all) && all[i+n] == all[i] {
			n++
		}
		if n > 1 {
			out = append(out, fmt.Sprintf("%d × %s", n, all[i]))
		} else {
			out = append(out, all[i])
		}
		i += n
	}
	return strings.Join(out, ", ")
}

func lane(l source.Lane) string { return fmt.Sprintf("%q/%d", l.ID, l.Epoch) }

func many(all []*machine.Item, ids bool) string {
	if !ids || len(all) == 0 {
		return fmt.Sprintf("%d messages", len(all))
	}
	text := fmt.Sprintf("%d messages:", len(all))
	for _, it := range all {
		text += fmt.Sprintf(" %q", it.Identity)
	}
	return text
}

// flags joins the words that hold, each given with whether it does.
func flags(all ...any) (text string) {
	for i := 0; i+1 < len(all); i += 2 {
		if all[i+1].(bool) {
			text += ", " + all[i].(string)
		}
	}
	return text
}

// shower turns written actions into words. What it cannot read it says.
type shower struct {
	reader
	at uint64
}

// show returns the actions of one step, as they are written.
func show(actions []byte) []string {
	s := shower{reader: reader{in: actions}}
	var all []string
	for n := s.count(); n > 0; n-- {
		text := s.action()
		if s.err != nil {
			return append(all, "(it cannot be read further)")
		}
		all = append(all, text)
	}
	return all
}

func (s *shower) item() string {
	s.at += uint64(s.int())
	if s.at == 0 {
		return "nobody"
	}
	return fmt.Sprintf("message %d", s.at)
}

func (s *shower) lane() string {
	id := s.string()
	return lane(source.Lane{ID: id, Epoch: s.uint()})
}

func (s *shower) action() string {
	switch kind := s.byte(); kind {
	case kindFetch:
		return fmt.Sprintf("fetch %d of %d bytes", s.int(), s.int())
	case kindCancelFetch:
		return "cancel the fetch" + flags("to end", has(s.uint(), 0))
	case kindBegin:
		return s.begin()
	case kindRun:
		return fmt.Sprintf("run flight %d: entries %v for %v", s.uint(), s.list(), s.time())
	case kindStopRun:
		return fmt.Sprintf("stop flight %d", s.uint()) + flags("at once", has(s.uint(), 0))
	case kindCommit:
		return s.commit()
	case kindRollback:
		return fmt.Sprintf("roll flight %d back", s.uint())
	case kindKill:
		return fmt.Sprintf("cut the connection of flight %d", s.uint())
	case kindSettle:
		var all []string
		for n := s.count(); n > 0; n-- {
			all = append(all, s.settlement())
		}
		return "settle " + strings.Join(all, "; ")
	case kindOver:
		return "a claim is over: " + s.settlement()
	default:
		return s.quiet(kind)
	}
}

func (s *shower) quiet(kind byte) string {
	switch kind {
	case kindClaimRows:
		return fmt.Sprintf("claim %d rows of %d bytes", s.int(), s.int())
	case kindUnclaim:
		text := "give back"
		for n := s.count(); n > 0; n-- {
			text += " " + s.item()
		}
		halted := s.item()
		return text + flags("halted by "+halted, halted != "nobody", "with an error", s.uint() == 1)
	case kindFlow:
		return "lane " + s.lane() + map[bool]string{true: " goes on", false: " pauses"}[s.uint() == 1]
	case kindRelease:
		return "lane " + s.lane() + " is left"
	case kindWake:
		return fmt.Sprintf("wake at %v", s.time())
	case kindReport:
		return fmt.Sprintf("report %s of %s, wait %v, %q, %d", report(machine.ReportKind(s.uint())), s.item(), s.time(), s.string(), s.int()) + flags("with an error", s.uint() == 1)
	case kindDone:
		return s.done()
	}
	s.fail(errCut)
	return ""
}

func (s *shower) begin() string {
	text := fmt.Sprintf("begin flight %d of worker %d", s.uint(), s.uint()) + flags("alone", s.uint() == 1) + ":"
	for n := s.count(); n > 0; n-- {
		who, how := s.item(), s.uint()
		text += fmt.Sprintf(" %s as %s", who, as(machine.As(how>>2))) + flags("without a mark", has(how, 0), "its outcome unknown", has(how, 1)) + ";"
	}
	return text
}

func (s *shower) commit() string {
	text := fmt.Sprintf("commit flight %d", s.uint())
	if trim := s.list(); len(trim) > 0 {
		text += fmt.Sprintf(" without the marks %v", trim)
	}
	for n := s.count(); n > 0; n-- {
		entry, bits, how, reason, attempts, after := s.int(), s.uint(), machine.As(s.uint()), s.string(), s.int(), s.time()
		text += fmt.Sprintf("; row of entry %d", entry) + flags("a copy", has(bits, 0), "a conflict", has(bits, 1), as(how), how != 0, reason, reason != "", fmt.Sprintf("attempt %d", attempts), attempts > 0, fmt.Sprintf("due in %v", after), after > 0)
	}
	return text
}

func (s *shower) settlement() string {
	who, kind, ending, bits := s.item(), semel.SettleKind(s.uint()), source.End(s.uint()), s.uint()
	text := fmt.Sprintf("%s %s as %s", who, kind, ending)
	if bits&hasAfter != 0 {
		text += fmt.Sprintf(", after %v", s.time())
	}
	if bits&hasReason != 0 {
		text += ", " + s.string()
	}
	if bits&hasAttempts != 0 {
		text += fmt.Sprintf(", attempt %d", s.int())
	}
	return text + flags("with an error", bits&hasError != 0, "charged", bits&isCharged != 0, "again", bits&isAgain != 0)
}

func (s *shower) done() string {
	bits := s.uint()
	text := "done" + flags("halted", has(bits, 0), "idle", has(bits, 2), "full", has(bits, 3)) + " by " + s.item()
	if reason := s.string(); reason != "" {
		text += ", " + reason
	}
	for n := s.count(); n > 0; n-- {
		text += fmt.Sprintf("; lane %s has %d left", s.lane(), s.int())
		s.item()
	}
	return text
}

func as(a machine.As) string {
	names := []string{"", "applied", "duplicate", "parked", "discarded", "dead-lettered", "received", "waiting", "blocked", "overdue", "stepped"}
	if int(a) < len(names) {
		return names[a]
	}
	return fmt.Sprintf("As(%d)", a)
}

func report(k machine.ReportKind) string {
	names := []string{
		"", "retry", "ready", "not ready", "unknown", "stuck", "backstop", "committed", "contended", "serial", "parallel", "budget", "trial", "trial ends",
		"busy", "waits", "newer", "newer ends", "full", "full ends", "claim lost",
	}
	if int(k) < len(names) {
		return names[k]
	}
	return fmt.Sprintf("ReportKind(%d)", k)
}

// Hands says in words what a machine has in hand at a moment.
func Hands(l machine.Load, now time.Duration) string {
	if l.Messages == 0 {
		return "it has nothing in hand"
	}
	text := fmt.Sprintf("it has %d messages in hand, the oldest for %v: %d queued, %d in flight, %d held, %d riding, %d settling; %d of %d lanes wait, %d of %d workers stick",
		l.Messages, (now - l.Since).Round(time.Millisecond), l.Queued, l.Flying, l.Held, l.Riding, l.Settling, l.Paused, l.Lanes, l.Stuck, l.Workers)
	if l.Serial {
		text += "; batches run one at a time"
	}
	return text
}
