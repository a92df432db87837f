package why

import (
	"fmt"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/operate"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

// remedies say of what was set aside for a reason what is to be done before a retry, or in
// place of one. A reason that a handler gave is none of these.
var remedies = map[semel.Reason]struct {
	says  string
	retry bool
}{
	semel.ReasonPermanent:        {"Waiting mends nothing; mend the cause, then retry it.", true},
	semel.ReasonExhausted:        {"Its attempts are used up; mend the cause, then retry it.", true},
	semel.ReasonPrecondition:     {"Its statement changed another number of rows than it must; mend the data, then retry it.", true},
	semel.ReasonMissingParameter: {"It lacks what its handler needs; mend the policy, or have the producer send it rightly.", true},
	semel.ReasonBadEffects:       {"The endpoint answered with effects that the policy does not allow; mend one of the two, then retry it.", true},
	semel.ReasonWaitTooLong:      {"Its handler asked for a longer wait than is kept anywhere; retry it when the time has come.", true},
	semel.ReasonUnknownType:      {"The policy has no handler for its type; add one, then retry it.", true},
	semel.ReasonMalformed:        {"It cannot be read; have the producer send it again rightly, and discard this one.", false},
	semel.ReasonTooLarge:         {"It is longer than is processed (max_body); have the producer send it otherwise, and discard this one.", false},
	semel.ReasonNoIdentity:       {"It has no identity, and never runs; have the producer send it again with one, and discard this one.", false},
	semel.ReasonBadIdentity:      {"Its identity is none that can be used; have the producer send it again rightly, and discard this one.", false},
	semel.ReasonIdentityTooLong:  {"Its identity is longer than is kept; have the producer send it again with a shorter one, and discard this one.", false},
	semel.ReasonFiltered:         {"The consumer's filter excludes it; correct filter in the policy and have it sent again, or discard this one.", false},
	semel.ReasonNoVersion:        {"Its stream or its version is not where the policy looks; mend the policy or the producer, then retry it.", true},
	semel.ReasonExpired:          {"It is older than what is kept, so nobody can tell whether it took effect before; find out, then retry it if not, and discard it if so.", true},
	semel.ReasonKills:            {"Processes that began it never came to its end; find in their last logs what it does, mend that, then retry it.", true},
	semel.ReasonSteps:            {"Steps of it took effect that are not the first ones of its consumer any more; put them back into the policy, then retry it.", true},
	semel.ReasonUnreadable:       {"It is encrypted, and its key was not given, or it was changed; give the key, then retry it.", true},
	semel.ReasonErased:           {"What it held was erased, and cannot be had back.", false},
	semel.ReasonBehind:           {"Its turn in its line has not come.", true},
}

func (f *Facts) parked(r *store.StoredRow) Answer {
	switch {
	case r.Reason == semel.ReasonGap:
		return f.gap(r, "It was not applied: it waited in vain, as version %d of its stream, for version %d, and was set aside. It is freed when that comes.", StageGap)
	case r.Reason == semel.ReasonSuppressed:
		return f.suppressed(r)
	case r.UnknownOutcome():
		says := fmt.Sprintf("Nobody knows whether it was applied: what became of a call for it is unknown, and it was set aside at %s%s.", moment(r.ChangedAt), because(r.LastError))
		return Answer{StageUnknown, Unknown, says + " Ask the other side, and record what is so.", []Command{f.resolve(r), f.show(r)}}
	case r.Reason == semel.ReasonConflict || r.Reason == semel.ReasonFormerConflict:
		return f.conflicting(r)
	}
	says := fmt.Sprintf("It was not applied: it was set aside at %s%s%s.", moment(r.ChangedAt), ofReason(r), because(r.LastError))
	remedy, semels := remedies[r.Reason]
	if !semels {
		remedy.says, remedy.retry = "Its handler gave that reason; mend the cause, then retry it.", true
	}
	a := Answer{StageParked, No, says + " " + remedy.says, nil}
	if remedy.retry {
		a.Do = append(a.Do, f.act(f.verb("parked retry", "intents send"), r))
	}
	a.Do = append(a.Do, f.act("parked discard", r))
	return f.copied(a, r)
}

func (f *Facts) suppressed(r *store.StoredRow) Answer {
	says := "It was not sent: the run that wrote it, or a replay, was to have no effects outside."
	if act := f.last(r.Number, string(admin.Suppress)); act != nil {
		says = fmt.Sprintf("It was not sent: %s suppressed it at %s: %s.", act.Who, moment(act.At), strings.TrimSuffix(act.Why, "."))
	}
	return Answer{StageSuppressed, No, says, []Command{
		f.act("intents send", r),
		f.act("inbox discard", r),
	}}
}

// conflicting is the answer about a row that is a conflict, and no other content of its
// identity has a row: as a version of its stream, or with a former identity.
func (f *Facts) conflicting(r *store.StoredRow) Answer {
	says := "another content has its identity"
	switch {
	case r.Reason == semel.ReasonFormerConflict:
		says = "under its former identity something with another content is marked, or with one that cannot be compared"
	case r.Version > 0:
		says = fmt.Sprintf("another content was there first as version %d of its stream", r.Version)
	}
	return Answer{StageConflict, No, fmt.Sprintf("It was not applied: %s. It was set aside at %s.", says, moment(r.ChangedAt)), []Command{
		f.show(r), f.act("parked discard", r),
	}}
}

func (f *Facts) resolve(r *store.StoredRow) Command {
	return f.command(f.verb("inbox", "intents"), "resolve", fmt.Sprint(r.Number), "--outcome", f.verb("done", "sent")).because()
}

// verb is the word of a command for rows, or of that for intents.
func (f *Facts) verb(row, intent string) string {
	if f.Sends {
		return intent
	}
	return row
}

// ofReason says why a row was set aside, in front of which stands what became of it.
func ofReason(r *store.StoredRow) string {
	if r.Reason == semel.ReasonNone {
		return ""
	}
	return " (" + string(r.Reason) + ")"
}

// because is an error behind what it made fail.
func because(text string) string {
	if text == "" {
		return ""
	}
	const most = 300
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return ": " + strings.TrimSuffix(text, ".")
}

func attempts(n int) string {
	if n == 1 {
		return "1 attempt"
	}
	return fmt.Sprintf("%d attempts", n)
}

// named are the outcomes as people read them.
func named(o store.Outcome) string { return strings.ReplaceAll(o.String(), "_", "-") }

func spans(all []operate.Span) string {
	var texts []string
	for _, s := range all {
		if s.From == s.To {
			texts = append(texts, fmt.Sprint(s.From))
		} else {
			texts = append(texts, fmt.Sprintf("%d to %d", s.From, s.To))
		}
	}
	return "version " + strings.Join(texts, ", ")
}
