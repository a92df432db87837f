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

// retryOutput is the JSON output of the commands retry and send.
type retryOutput struct {
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
	done := retryOutput{Verb: d.verb.Recorded(), DryRun: d.dryRun, Prediction: map[operate.Fate]int{}, Results: append([]operate.Letter{}, all...)}
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
// the prediction. The numbers of messages by result are printed last.
func (d *retry) print(done retryOutput) {
	if len(done.Results) == 0 {
		return
	}
	for _, l := range done.Results {
		if len(d.chosen.Numbers) > 0 || !l.OK() || l.Changed() {
			fmt.Fprintln(d.Out, d.Wrapped(retriedLine(d.CLI, l), textIndent))
		}
	}
	if done.DryRun {
		fmt.Fprintln(d.Out, d.Wrapped(predictions(done.Results), textIndent))
	}
	if done.Happened != nil {
		fmt.Fprintln(d.Out, "happened: "+countsOf(done.Happened, func(f operate.Fate) string { return string(f) }))
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
	switch {
	case l.Happened != "":
		line += string(l.Happened)
	case l.Prediction == operate.FateApplied:
		line += "its handler would run"
	default:
		line += "would be " + string(l.Prediction)
	}
	if l.Changed() {
		line += fmt.Sprintf(" (predicted: %s)", predictionText(l.Prediction))
	}
	if l.Why != "" {
		line += ": " + legible.Printable(l.Why)
	}
	return line
}

// predictionText returns the printed text for a predicted result. Whether a handler will succeed
// cannot be predicted.
func predictionText(f operate.Fate) string {
	if f == operate.FateApplied {
		return "applied if the handler succeeds"
	}
	return string(f)
}

// predictions returns the line about the predicted results. Refused messages are listed with the
// cause.
func predictions(all []operate.Letter) string {
	counts := map[operate.Fate]int{}
	for _, l := range all {
		counts[l.Prediction]++
	}
	return "predicted: " + countsOf(counts, func(f operate.Fate) string { return predictionText(f) + refusals(f, all) })
}

// countsOf returns the counts as text, in the order of operate.Fates.
func countsOf(counts map[operate.Fate]int, name func(operate.Fate) string) string {
	var parts []string
	for _, fate := range operate.Fates() {
		if n := counts[fate]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, name(fate)))
		}
	}
	return cmp.Or(strings.Join(parts, ", "), "nothing")
}

// refusals lists the number of messages by cause of the predicted refusal.
func refusals(fate operate.Fate, all []operate.Letter) string {
	if fate != operate.FateRefused {
		return ""
	}
	whys := map[string]int{}
	for _, l := range all {
		if l.Prediction == fate {
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
