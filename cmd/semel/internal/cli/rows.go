package cli

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/operate"
)

func (c *common) printRows(views []operate.View) error {
	if c.json {
		return writeJSON(c.Out, struct {
			Rows []operate.View `json:"rows"`
		}{append([]operate.View{}, views...)})
	}
	table := tabwriter.NewWriter(c.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NUMBER\tSTATE\tREASON\tCONSUMER\tID\tATTEMPTS\tREPEATED\tRECEIVED\tLAST ERROR")
	for _, v := range views {
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\t%d\t%d\t%s\t%s\n", v.Number, v.State, cell(string(v.Reason), 40),
			cell(v.Consumer, 40), cell(idOf(v), 40), v.Attempts, v.Repeated, moment(v.Received), cell(v.Last, 100))
	}
	return failed(table.Flush())
}

func writeDetail(w io.Writer, d operate.Detail) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, field := range []struct{ name, value string }{
		{"number", fmt.Sprint(d.Number)},
		{"state", string(d.State)},
		{"reason", string(d.Reason)},
		{"consumer", d.Consumer},
		{"source", d.Source},
		{"id", idOf(d.View)},
		{"type", d.Type},
		{"conflict", fmt.Sprint(d.Conflict)},
		{"attempts", fmt.Sprint(d.Attempts)},
		{"repeated", fmt.Sprint(d.Repeated)},
		{"first error", d.First},
		{"last error", d.Last},
		{"received", moment(d.Received)},
		{"changed", moment(d.Changed)},
		{"from", fmt.Sprintf("%s, partition %d, offset %d", d.Topic, d.Partition, d.Offset)},
		{"payload", fmt.Sprintf("%d bytes", d.Size)},
	} {
		fmt.Fprintf(table, "%s\t%s\n", field.name, semel.Printable(field.value))
	}
	for _, h := range d.Headers {
		fmt.Fprintf(table, "header\t%s: %s\n", semel.Printable(h.Name), semel.Printable(h.Value+h.ValueBase64))
	}
	for _, a := range d.Acts {
		fmt.Fprintf(table, "act\t%s %s by %s: %s (%s)\n", moment(a.At), a.Verb, semel.Printable(a.Who), semel.Printable(a.Why), semel.Printable(a.Result))
	}
	if err := table.Flush(); err != nil || d.Payload == nil && d.PayloadBase64 == "" {
		return err
	}
	payload := d.PayloadBase64
	if d.Payload != nil {
		payload = semel.Printable(*d.Payload)
	}
	_, err := fmt.Fprintf(w, "\n%s\n", payload)
	return err
}

// idOf is the identity, in base64 if it is no text.
func idOf(v operate.View) string {
	if v.IDBase64 != "" {
		return "base64:" + v.IDBase64
	}
	return v.ID
}

// cell is a text that fits into a table.
func cell(s string, most int) string {
	text := []rune(semel.Printable(s))
	if len(text) > most {
		return string(text[:most-1]) + "…"
	}
	return string(text)
}

func moment(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.DateTime + "Z")
}
