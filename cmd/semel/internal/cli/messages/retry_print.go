package messages

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/semel-go/semel/cmd/semel/internal/cli/output"
	"github.com/semel-go/semel/cmd/semel/internal/operate"
	"github.com/semel-go/semel/cmd/semel/internal/terminal"
	"github.com/semel-go/semel/internal/legible"
)

// retried is the JSON output of the commands retry and send.
type retried struct {
	Verb   string `json:"verb"`
	DryRun bool   `json:"dry_run"`
	// Prediction is the number of messages by predicted result, and Happened the number by actual result.
	Prediction map[operate.Fate]int `json:"predicted"`
	Happened   map[operate.Fate]int `json:"happened,omitempty"`
	// Changed is the number of messages whose actual result differs from the predicted result.
	Changed int              `json:"changed"`
	Results []operate.Letter `json:"results"`
	Failed  int              `json:"failed"`
}

// conclude prints the predictions, the results and the differences, and returns the error for the exit code.
func (d *retry) conclude(all []operate.Letter, stopped error) error {
	done := retried{Verb: d.verb.Recorded(), DryRun: d.dryRun, Prediction: map[operate.Fate]int{}, Results: append([]operate.Letter{}, all...)}
	for _, l := range all {
		done.Prediction[l.Prediction]++
		if l.Happened != "" {
			if done.Happened == nil {
				done.Happened = map[operate.Fate]int{}
			}
			done.Happened[l.Happened]++
		}
		if l.Changed() {
			done.Changed++
		}
		if !l.OK() {
			done.Failed++
		}
	}
	if d.JSON {
		if err := d.WriteJSON(done); err != nil {
			return err
		}
	} else {
		d.print(done)
	}
	switch {
	case stopped != nil:
		return command.Failed(stopped)
	case done.Failed > 0 && d.dryRun:
		return command.Failed(fmt.Errorf("retry: %d of %d messages would not be applied", done.Failed, len(all)))
	case done.Failed > 0:
		return command.Failed(fmt.Errorf("retry: %d of %d messages were not applied", done.Failed, len(all)))
	}
	return nil
}

// print prints one line for each message that the user named and for each message whose result differs from
// the prediction. After these lines, print prints the sums.
func (d *retry) print(done retried) {
	if len(done.Results) == 0 {
		return
	}
	for _, l := range done.Results {
		if len(d.chosen.Numbers) > 0 || !l.OK() || l.Changed() {
			fmt.Fprintln(d.Out, retriedLine(d.CLI, l))
		}
	}
	if done.DryRun {
		fmt.Fprintln(d.Out, "predicted: "+countsOf(done.Prediction, done.Results, func(l operate.Letter) operate.Fate { return l.Prediction }))
	}
	if done.Happened != nil {
		fmt.Fprintln(d.Out, "happened: "+countsOf(done.Happened, nil, nil))
		if done.Changed == 0 {
			fmt.Fprintln(d.Out, "all as predicted")
		} else {
			fmt.Fprintf(d.Out, "%s not as predicted\n", output.WithVerb(done.Changed, "message", "is", "are"))
		}
	}
}

func retriedLine(c *command.CLI, l operate.Letter) string {
	id := legible.Printable(cmp.Or(l.ID, output.Base64Named(l.IDBase64), "-"))
	if c.OutTerminal {
		id = terminal.Cut(id, longestID)
	}
	line := fmt.Sprintf("%s %s %s: ", cmp.Or(legible.Printable(l.Place), fmt.Sprint(l.Number)), cmp.Or(legible.Printable(l.Consumer), "-"), id)
	if l.Happened == "" {
		line += "would be " + string(l.Prediction)
	} else {
		line += string(l.Happened)
	}
	if l.Changed() {
		line += fmt.Sprintf(" (predicted: %s)", l.Prediction)
	}
	if l.Why != "" {
		line += ": " + legible.Printable(l.Why)
	}
	return line
}

// fatesOf lists the number of messages by result.
func fatesOf(all []operate.Letter, of func(operate.Letter) operate.Fate) string {
	counts := map[operate.Fate]int{}
	for _, l := range all {
		counts[of(l)]++
	}
	return countsOf(counts, all, of)
}

// countsOf lists numbers by result, in a fixed order. For refused messages, countsOf adds the causes.
func countsOf(counts map[operate.Fate]int, all []operate.Letter, of func(operate.Letter) operate.Fate) string {
	var parts []string
	for _, fate := range operate.Fates() {
		if n := counts[fate]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, fate)+refusals(fate, all, of))
		}
	}
	return cmp.Or(strings.Join(parts, ", "), "nothing")
}

// refusals lists the number of refused messages by cause.
func refusals(fate operate.Fate, all []operate.Letter, of func(operate.Letter) operate.Fate) string {
	if fate != operate.FateRefused || of == nil {
		return ""
	}
	whys := map[string]int{}
	for _, l := range all {
		if of(l) == fate {
			why, _, _ := strings.Cut(l.Why, ";")
			whys[why]++
		}
	}
	var parts []string
	for _, why := range slices.Sorted(maps.Keys(whys)) {
		parts = append(parts, fmt.Sprintf("%d because %s", whys[why], legible.Printable(why)))
	}
	return " (" + strings.Join(parts, "; ") + ")"
}
