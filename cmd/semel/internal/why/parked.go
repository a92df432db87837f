package why

import (
	"fmt"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/operate"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/store"
)

// remedies maps the reasons for which Semel parks messages to a remedy. The field retry means that the
// message should be retried after the remedy. Reasons that handlers choose are not included.
var remedies = map[semel.Reason]struct {
	says  string
	retry bool
}{
	semel.ReasonPermanent:       {"Waiting does not help; correct the cause, then retry the message.", true},
	semel.ReasonExhausted:       {"All attempts failed; correct the cause, then retry the message.", true},
	semel.ReasonPrecondition:    {"A statement changed another number of rows than required; correct the data, then retry the message.", true},
	reasonname.MissingParameter: {"A value that the handler needs is missing; correct the policy, or the producer.", true},
	reasonname.BadEffects:       {"The endpoint answered with effects that the policy does not allow; correct one of them, then retry the message.", true},
	reasonname.WaitTooLong:      {"The handler asked for a longer wait than is possible; retry the message at that time.", true},
	reasonname.UnknownType:      {"The policy has no handler for its type; add one, then retry the message.", true},
	semel.ReasonMalformed:       {"The message, or a value in it, cannot be read. Correct the policy, or the payload (semel messages edit), then retry the message. If only the producer can correct it, discard this one.", true},
	semel.ReasonTooLarge:        {"The message is longer than max_body; let the producer send a shorter one, and discard this one.", false},
	semel.ReasonNoIdentity:      {"The message has no identity and cannot be processed; let the producer send one with an identity, and discard this one.", false},
	semel.ReasonBadIdentity:     {"The identity is not usable; let the producer send a correct message, and discard this one.", false},
	reasonname.IdentityTooLong:  {"The identity is too long; let the producer send a message with a shorter one, and discard this one.", false},
	reasonname.Filtered:         {"The consumer's filter excludes it; correct filter in the policy and have it sent again, or discard this one.", false},
	reasonname.NoVersion:        {"The stream or version is missing; correct the policy or the producer, then retry the message.", true},
	reasonname.Expired:          {"The message is older than the retention, so it is unknown whether it took effect before. Find out; then retry it if not, and discard it if so.", true},
	reasonname.Kills:            {"Processes died while handling it; find the cause in their last logs, correct it, then retry the message.", true},
	reasonname.Steps:            {"Its completed steps are no longer the first steps of the consumer; restore them in the policy, then retry the message.", true},
	reasonname.Unreadable:       {"The content is encrypted and its key is missing or wrong; configure the key, then retry the message.", true},
	reasonname.Erased:           {"The content was erased and cannot be restored.", false},
	reasonname.Behind:           {"An earlier message of its order has not ended.", true},
}

func (f *Facts) explainParked(r *store.StoredRow) Answer {
	switch {
	case r.Reason == semel.ReasonGap:
		return f.explainGap(r, "It was not applied: as version %d of its stream it waited for version %d, and was then parked. It is processed if that version arrives.", StageGap)
	case r.Reason == reasonname.Suppressed:
		return f.explainSuppressed(r)
	case r.UnknownOutcome():
		says := fmt.Sprintf("It is unknown whether it was applied: a call has an unknown outcome, and the message was parked %s%s.", f.changeTime(r, "at"), colonText(r.LastError))
		return Answer{StageUnknown, Unknown, says + " Ask the other side, and record the outcome.", []Command{f.resolve(r), f.showCommand(r)}}
	case r.Reason == semel.ReasonConflict || r.Reason == reasonname.FormerConflict:
		return f.explainConflictWithoutRow(r)
	}
	says := fmt.Sprintf("It was not applied: it was parked %s%s.", f.changeTime(r, "at"), cause(r))
	remedy, semels := remedies[r.Reason]
	if !semels {
		remedy.says, remedy.retry = "The handler gave this reason; correct the cause, then retry the message.", true
	}
	a := Answer{StageParked, No, says + " " + remedy.says, nil}
	if remedy.retry {
		a.Do = append(a.Do, change(f.verb("messages retry", "intents retry"), r))
	}
	a.Do = append(a.Do, change("messages discard", r))
	return f.addDuplicates(a, r)
}

func (f *Facts) explainSuppressed(r *store.StoredRow) Answer {
	says := "It was not sent: a run or replay without external effects wrote it."
	if act := f.lastAct(r.Number, string(admin.Suppress)); act != nil {
		says = fmt.Sprintf("It was not sent: %s suppressed it at %s: %s.", act.Who, moment(act.At), strings.TrimSuffix(act.Why, "."))
	}
	return Answer{StageSuppressed, No, says, []Command{
		change("intents retry", r),
		change("messages discard", r),
	}}
}

// explainConflictWithoutRow returns the answer about a conflict if the other content has no row. The other content of a
// conflict has the same version of the stream, or the same previous identity.
func (f *Facts) explainConflictWithoutRow(r *store.StoredRow) Answer {
	says := "its identity was used with other content"
	switch {
	case r.Reason == reasonname.FormerConflict:
		says = "its previous identity has a marker with other content, or with content that cannot be compared"
	case r.Version > 0:
		says = fmt.Sprintf("other content was processed first as version %d of its stream", r.Version)
	}
	return Answer{StageConflict, No, fmt.Sprintf("It was not applied: %s. It was parked %s.", says, f.changeTime(r, "at")), []Command{
		f.showCommand(r), change("messages discard", r),
	}}
}

func (f *Facts) resolve(r *store.StoredRow) Command {
	return Command{f.verb("messages", "intents"), "resolve", fmt.Sprint(r.Number), "--outcome", f.verb("done", "sent")}.withReason()
}

// changeTime returns the time at which a row got its state, as text. The parameter in is the word before
// the time: "at" or "since". The marker of the row contains the time of the change of state. The row itself
// only has the time at which it was last written, for example because a copy was counted.
func (f *Facts) changeTime(r *store.StoredRow, in string) string {
	m, owner := f.marker(), f.owner()
	switch {
	case m != nil && !m.At.IsZero() && m.Outcome == r.State.Outcome() && owner != nil && owner.Number == r.Number:
		return in + " " + moment(m.At)
	case r.Repeated > 0:
		return in + " or before " + moment(r.ChangedAt)
	}
	return in + " " + moment(r.ChangedAt)
}

// verb returns the parameter intent if the consumer sends intents, otherwise the parameter row.
func (f *Facts) verb(row, intent string) string {
	if f.Sends {
		return intent
	}
	return row
}

// ofReason returns the row's reason in parentheses, or "" if the row has no reason.
func ofReason(r *store.StoredRow) string {
	if r.Reason == reasonname.None {
		return ""
	}
	return " (" + string(r.Reason) + ")"
}

// cause returns the reason and the last error of a row. If the error begins with the reason, cause returns
// the reason only once.
func cause(r *store.StoredRow) string {
	return ofReason(r) + colonText(operate.WithoutReason(r.Reason, r.LastError))
}

// colonText returns the text of an error after a colon, or "" for an empty text.
func colonText(text string) string {
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

// outcomeText returns the text of an outcome for people.
func outcomeText(o store.Outcome) string { return strings.ReplaceAll(o.String(), "_", "-") }

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
