package cli

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/semel-go/semel/cmd/semel/internal/terminal"
	"github.com/semel-go/semel/internal/legible"
)

// fieldWidth is how many columns the names of fields take.
const fieldWidth = 20

// printWhy prints what is known of a message: what became of it and what changes that first.
func (c *common) printWhy(v whyView) error {
	var b strings.Builder
	for i, found := range v.Found {
		if i > 0 {
			b.WriteString("\n")
		}
		c.writeFound(&b, found)
	}
	if len(v.Found) == 0 {
		c.writeLooked(&b, v)
	}
	for _, s := range v.NotAsked {
		fmt.Fprintf(&b, "\nstore %s\n", legible.Printable(s.Store))
		c.writeField(&b, "cannot be known", legible.Printable("whether it is there: "+s.Why))
	}
	if lines := strings.Count(b.String(), "\n"); c.OutTerminal && c.Height > 0 && lines >= c.Height { // the answer has left the screen
		for _, found := range v.Found {
			b.WriteString("\n")
			c.writeAnswerOf(&b, found)
		}
	}
	_, err := io.WriteString(c.Out, b.String())
	return failed(err)
}

// writeAnswerOf prints what became of a message, and what changes that.
func (c *common) writeAnswerOf(b *strings.Builder, v foundView) {
	name := "consumer " + legible.Printable(v.Consumer)
	if v.Source != "" {
		name += ", source " + legible.Printable(v.Source)
	}
	fmt.Fprintln(b, c.wrapped(name+": "+legible.Printable(v.Says), 0))
	for _, command := range v.Commands {
		fmt.Fprintln(b, "  "+terminal.Line(command))
	}
}

func (c *common) writeFound(b *strings.Builder, v foundView) {
	c.writeAnswerOf(b, v)
	fmt.Fprintln(b)
	for _, m := range v.Markers {
		c.writeField(b, "marker", markerOf(m))
	}
	if len(v.Markers) == 0 && !v.noMarkers {
		c.writeField(b, "marker", "none")
	}
	for _, unread := range v.Unread {
		c.writeField(b, "cannot be known", legible.Printable(unread))
	}
	c.writeAround(b, v)
	for _, r := range v.Rows {
		fmt.Fprintf(b, "\nrow %d\n", r.Number)
		c.writeField(b, "content", r.Fingerprint)
		for _, f := range fieldsOf(r.Detail) {
			if f.name != "number" && f.name != "consumer" && f.name != "source" {
				c.writeField(b, f.name, f.value)
			}
		}
		_ = writePayload(b, r.Detail) // a builder does not fail
	}
	if v.MoreRows > 0 {
		fmt.Fprintf(b, "\nand %d further rows; semel inbox ls --state ANY --id ID lists them\n", v.MoreRows)
	}
}

// writeAround prints what is known around the message.
func (c *common) writeAround(b *strings.Builder, v foundView) {
	field := func(name, format string, args ...any) {
		c.writeField(b, name, legible.Printable(fmt.Sprintf(format, args...)))
	}
	if k := v.Leased; k != nil {
		field("leased key", "%s; first claimed %s, leased until %s, kept until %s; %d claims, of %d the end is known", cmp.Or(k.Ended, "not ended"), moment(k.First), moment(k.Until), moment(k.Kept), k.Started, k.Finished)
	}
	if v.Generation != "" {
		field("generation", "%s", v.Generation)
	}
	if p := v.Paused; p != nil {
		field("paused", "%s by %s: %s", moment(p.At), p.By, p.Why)
	}
	if v.Progress != nil {
		field("consumer told last", "%s", moment(*v.Progress))
	}
	if s := v.Stream; s != nil {
		field("stream", "%s is at version %d, and %d rows wait", s.Name(), s.Last, s.Blocked)
	}
	for _, m := range v.Missing {
		field("missing", "versions %d to %d", m.From, m.To)
	}
	if by := v.CausedBy; by != nil {
		if by.Consumer != "" {
			field("caused by", "%s, of consumer %s", by.ID, by.Consumer)
		} else {
			field("caused by", "%s", by.ID)
		}
		if by.Correlation != "" && by.Correlation != by.ID {
			field("began with", "%s", by.Correlation)
		}
	}
	for _, r := range v.Caused {
		field("caused", "row %d of %s, %s: %s", r.Number, r.Consumer, r.State, idOf(r))
	}
	if v.MoreCaused {
		field("caused", "and more")
	}
	if v.NoCaused != "" {
		field("caused", "not known: %s", v.NoCaused)
	}
	for _, r := range v.Replays {
		field("in range of replay", "%d (%s, %s) by %s, %s: %s", r.Number, r.Kind, r.State, r.Who, moment(r.Started), r.Why)
	}
	for _, e := range v.Erasures {
		field("erased", "%s by %s: %s", moment(e.At), e.Who, e.Why)
	}
}

func markerOf(m markerView) string {
	text := fmt.Sprintf("%s, %s", m.Outcome, moment(m.At))
	if m.Fingerprint != "" {
		text += ", content " + m.Fingerprint
	}
	if m.Generation > 0 {
		text += fmt.Sprintf(", identity of generation %d", m.Generation)
	}
	if m.Result {
		text += ", with a result"
	}
	return text
}

// writeLooked says where a message was looked for that nobody knows, and what cannot be known.
func (c *common) writeLooked(b *strings.Builder, v whyView) {
	fmt.Fprintln(b, c.wrapped(v.name()+" is not known: no consumer that was asked has a marker or a row of it, so that it has not come here, unless one of the things below is so, or its id is another: semel identity ls says where consumers find ids.", 0))
	for _, l := range v.Looked {
		fmt.Fprintf(b, "\n%s\n", legible.Printable(fmt.Sprintf("consumer %s in store %s", l.Consumer, l.Store)))
		for _, cannot := range l.Cannot {
			c.writeField(b, "cannot be known", legible.Printable(cannot))
		}
	}
	if len(v.Looked) == 0 && len(v.NotAsked) == 0 {
		fmt.Fprintln(b, "no consumer has met any message here")
	}
}

// writeField prints a field, whose value goes on below itself where it is long.
func (c *common) writeField(b *strings.Builder, name, value string) {
	if value != "" {
		fmt.Fprintf(b, "%-*s  %s\n", fieldWidth, name, c.wrapped(value, fieldWidth+2))
	}
}

// wrapped is a text that fits the terminal behind so many columns, whole where nobody reads
// it on one.
func (c *common) wrapped(text string, behind int) string {
	if !c.OutTerminal || c.Width-behind < fieldWidth {
		return text
	}
	return strings.ReplaceAll(terminal.Wrap(text, c.Width-behind), "\n  ", "\n"+strings.Repeat(" ", behind))
}
