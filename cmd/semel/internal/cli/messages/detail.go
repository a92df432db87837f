package messages

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/semel-go/semel/cmd/semel/internal/cli/output"
	"github.com/semel-go/semel/cmd/semel/internal/operate"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/legible"
)

// labelUnlessEmpty returns the parameter name, or "" if the parameter value is empty.
func labelUnlessEmpty(name, value string) string {
	if value == "" {
		return ""
	}
	return name
}

// ofVersion returns the parameter name, or "" if the message has no version.
func ofVersion(v operate.View, name string) string {
	if v.Version == 0 {
		return ""
	}
	return name
}

// versionOf returns the message's version, or "" if the message has none.
func versionOf(v operate.View) string {
	if v.Version == 0 {
		return ""
	}
	return fmt.Sprint(v.Version)
}

// longestKey is the maximum length of a printed key.
const longestKey = 200

// keyOf returns the key that orders the message, or "" if the message waits in no lane.
func keyOf(v operate.View) string {
	if !v.Lined {
		return ""
	}
	key := v.KeyName()
	if len(key) > longestKey {
		key = strings.ToValidUTF8(key[:longestKey], "") + "…"
	}
	return key
}

// lineOf describes the earlier row that blocks the message, or returns "" if the message waits in no lane.
func lineOf(d operate.Detail) string {
	switch {
	case !d.Lined:
		return ""
	case d.Behind > 0:
		return fmt.Sprintf("behind row %d", d.Behind)
	case d.State == admin.Blocked:
		return "first, because the row before it was removed by hand: it is processed within an hour, or when the consumer starts"
	}
	return "first: the rows behind it wait until it is finished"
}

// callsOf describes the calls to another system for the message.
func callsOf(v operate.View) string {
	switch {
	case v.Calls == 0:
		return ""
	case v.UnknownCalls == 0:
		return fmt.Sprintf("%d, all outcomes known; the first at %s", v.Calls, whenGiven(v.Called))
	case v.State == admin.Running:
		return fmt.Sprintf("%d, %d with an unknown outcome, and one may be in progress; the first at %s", v.Calls, v.UnknownCalls, whenGiven(v.Called))
	}
	return fmt.Sprintf("%d, %d with an unknown outcome; the first at %s", v.Calls, v.UnknownCalls, whenGiven(v.Called))
}

// earlierError is the label for an error of a message that was applied later.
const earlierError = "earlier error"

func firstError(v operate.View) string {
	if v.State == admin.Applied {
		return earlierError
	}
	return "first error"
}

// lastError returns the label for the last error, or "" if the last error of an applied message is also the first.
func lastError(v operate.View) string {
	switch {
	case v.State != admin.Applied:
		return "last error"
	case v.First == v.Last:
		return ""
	}
	return earlierError
}

// detailField is a line of the printed details of a message.
type detailField struct{ Name, Value string }

// FieldsOf returns the lines about a message, without the payload.
func FieldsOf(d operate.Detail) (all []detailField) {
	for _, field := range []detailField{
		{"number", fmt.Sprint(d.Number)},
		{"state", string(d.State)},
		{"reason", reasonOf(d.View)},
		{"consumer", d.Consumer},
		{"source", d.Source},
		{"id", IDOf(d.View)},
		{labelUnlessEmpty("idempotency key", d.CallKey), d.CallKey},
		{"type", d.Type},
		{labelUnlessEmpty("recipient", d.Recipient), d.Recipient},
		{labelUnlessEmpty("subject", d.Subject), d.Subject},
		{ofVersion(d.View, "stream"), d.StreamName()},
		{ofVersion(d.View, "version"), versionOf(d.View)},
		{"key", keyOf(d.View)},
		{"in line", lineOf(d)},
		{"conflict", conflictOf(d)},
		{ofSteps(d.View), d.LastStep},
		{"attempts", fmt.Sprint(d.Attempts)},
		{"repeated", fmt.Sprint(d.Repeated)},
		{firstError(d.View), d.First},
		{lastError(d.View), d.Last},
		{"waits until", whenGiven(d.Due)},
		{"claimed until", whenGiven(d.Claimed)},
		{"calls", callsOf(d.View)},
		{"unfinished attempts", fmt.Sprint(d.Started)},
		{"received", output.Moment(d.Received)},
		{"changed", output.Moment(d.Changed)},
		{"from", recordPosition(d.Topic, d.Partition, d.Offset)},
		{"payload", fmt.Sprintf("%d bytes", d.Size)},
	} {
		if field.Name != "" && field.Value != "" {
			all = append(all, detailField{field.Name, legible.Printable(field.Value)})
		}
	}
	return append(all, listsOf(d)...)
}

func writeDetail(c *command.CLI, w io.Writer, d operate.Detail) error {
	if err := writeFields(c, w, FieldsOf(d)); err != nil {
		return err
	}
	return WritePayload(w, d)
}

// writeFields prints fields, with all values in one column. A long value continues on the next lines.
func writeFields(c *command.CLI, w io.Writer, fields []detailField) error {
	width := 0
	for _, field := range fields {
		width = max(width, len(field.Name))
	}
	for _, field := range fields {
		if _, err := fmt.Fprintf(w, "%-*s  %s\n", width, field.Name, c.Wrapped(field.Value, width+2)); err != nil {
			return err
		}
	}
	return nil
}

// WritePayload prints the payload of a message and its edits, if the view contains the payload.
func WritePayload(w io.Writer, d operate.Detail) error {
	if d.Payload == nil && d.PayloadBase64 == "" {
		return nil
	}
	for _, e := range d.Edits {
		if e.Diff == "" {
			continue
		}
		fmt.Fprintf(w, "\nedit %d\n", e.Edit)
		writeDiff(w, e.Diff)
	}
	payload := d.PayloadBase64
	if d.Payload != nil {
		payload = legible.Printable(*d.Payload)
	}
	_, err := fmt.Fprintf(w, "\n%s\n", payload)
	return err
}

// listsOf returns the lines about steps, headers, edits and recorded commands.
func listsOf(d operate.Detail) (all []detailField) {
	add := func(name, format string, args ...any) {
		all = append(all, detailField{name, fmt.Sprintf(format, args...)})
	}
	for _, s := range d.Steps {
		add("step done", "%s", legible.Printable(stepOf(s)))
	}
	for _, h := range d.Headers {
		add("header", "%s: %s", legible.Printable(h.Name), legible.Printable(h.Value+h.ValueBase64))
	}
	for _, e := range d.Edits {
		add(fmt.Sprintf("edit %d", e.Edit), "%s by %s: sha256 %.16s… (%d bytes) to %.16s… (%d bytes)", output.Moment(*e.At), legible.Printable(e.Who), e.Before, e.SizeBefore, e.After, e.SizeAfter)
	}
	for _, a := range d.Changes {
		add("history", "%s %s by %s: %s (%s)", output.Moment(a.At), a.Verb, legible.Printable(a.Who), legible.Printable(a.Why), legible.Printable(a.Result))
	}
	return all
}

// ofSteps returns the label for the last completed step, or "" if no step is completed.
func ofSteps(v operate.View) string {
	if v.LastStep == "" {
		return ""
	}
	return "last step done"
}

// stepOf returns the name of a completed step. If the step has an output, stepOf adds the output's size.
func stepOf(s operate.StepView) string {
	if s.OutputSize == 0 {
		return s.Name
	}
	return fmt.Sprintf("%s (output of %d bytes)", s.Name, s.OutputSize)
}

// conflictOf describes the content that arrived first with the identity of a conflict.
func conflictOf(d operate.Detail) string {
	first := d.FirstContent
	switch {
	case !d.Conflict && d.Reason == semel.ReasonConflict && d.Version > 0:
		return "yes; another content came first with its version"
	case !d.Conflict:
		return "no"
	case first == nil:
		return "yes; the outcome of the first content is unknown"
	case first.Row == 0:
		return fmt.Sprintf("yes; the first content was %s at %s (a marker does not keep where it came from)", first.Outcome, output.Moment(first.At))
	}
	return fmt.Sprintf("yes; the first content was %s at %s: row %d, received %s from %s",
		first.Outcome, output.Moment(first.At), first.Row, output.Moment(first.Received), recordPosition(first.Topic, first.Partition, first.Offset))
}

func recordPosition(topic string, partition int32, offset int64) string {
	if offset < 0 {
		return "-"
	}
	if partition < 0 { // files have no partition
		return fmt.Sprintf("%s, offset %d", topic, offset)
	}
	return fmt.Sprintf("%s, partition %d, offset %d", topic, partition, offset)
}

// IDOf returns the message's id. An id that is not printable is returned in base64.
func IDOf(v operate.View) string {
	if v.IDBase64 != "" {
		return "base64:" + v.IDBase64
	}
	return v.ID
}

// whenGiven formats a time, or returns "" for nil.
func whenGiven(t *time.Time) string {
	if t == nil {
		return ""
	}
	return output.Moment(*t)
}
