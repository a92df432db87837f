package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/operate"
	"github.com/semel-go/semel/cmd/semel/internal/terminal"
	"github.com/semel-go/semel/internal/legible"
)

// carry carries out an order and prints what became of each row.
func (c *common) carry(ctx context.Context, o operate.Order, store string) error {
	a, err := c.openBox(ctx, store)
	if err != nil {
		return err
	}
	defer c.close(a)
	box := boxOf(a.Stores[0])
	if err := c.refuseStranger(ctx, a, o.Filter.Consumer); err != nil {
		return err
	}
	if o.Verb == operate.Retry {
		if o.Handlers, err = a.Retriers(ctx, box.Store); err != nil {
			return failed(err)
		}
	}
	var done []operate.Result
	var stopped error
	for r, err := range box.Carry(ctx, o) {
		if err != nil {
			stopped = err
			break
		}
		done = append(done, r)
		if !c.json {
			fmt.Fprintln(c.Out, c.resultLine(r))
		}
	}
	if len(done) == 0 && stopped == nil {
		fmt.Fprintln(c.Err, "0 rows match")
		if err := c.pointAtReasons(ctx, a, o.Filter, "with-reason"); err != nil {
			return err
		}
	}
	return c.concludeActs(o, done, stopped)
}

func (c *common) concludeActs(o operate.Order, done []operate.Result, stopped error) error {
	bad := 0
	for _, r := range done {
		if !r.OK() {
			bad++
		}
	}
	if c.json {
		document := struct {
			Verb    operate.Verb     `json:"verb"`
			DryRun  bool             `json:"dry_run"`
			Results []operate.Result `json:"results"`
			Failed  int              `json:"failed"`
		}{o.Verb, o.DryRun, append([]operate.Result{}, done...), bad}
		if err := writeJSON(c.Out, document); err != nil {
			return err
		}
	}
	if o.DryRun && !c.json && len(done) > 0 {
		fmt.Fprintln(c.Err, foreseen(done))
	}
	switch {
	case stopped != nil:
		return failed(stopped)
	case bad > 0 && o.DryRun:
		return failed(fmt.Errorf("%s: %d of %d messages would be refused", o.Verb, bad, len(done)))
	case bad > 0:
		return failed(fmt.Errorf("%s: %d of %d messages were not done", o.Verb, bad, len(done)))
	}
	return nil
}

// foreseen counts by reason what a dry run found.
func foreseen(all []operate.Result) string {
	var parts []string
	for _, result := range []string{operate.Would, operate.Refused} {
		counts, n := map[semel.Reason]int{}, 0
		for _, r := range all {
			if r.Result == result {
				counts[r.Reason]++
				n++
			}
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s: %s", n, result, byReason(counts)))
		}
	}
	return strings.Join(parts, "; ")
}

// byReason lists counts, the most first; a row that is not there has no reason.
func byReason(counts map[semel.Reason]int) string {
	reasons := slices.SortedFunc(maps.Keys(counts), func(a, b semel.Reason) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	var parts []string
	for _, r := range reasons {
		parts = append(parts, fmt.Sprintf("%d %s", counts[r], cmp.Or(legible.Printable(string(r)), "without a row")))
	}
	return strings.Join(parts, ", ")
}

// longestID is how many columns an identity takes on a terminal.
const longestID = 40

func (c *common) resultLine(r operate.Result) string {
	id := legible.Printable(r.ID)
	if c.OutTerminal {
		id = terminal.Cut(id, longestID)
	}
	line := fmt.Sprintf("%d %s %s: %s", r.Number, legible.Printable(r.Consumer), id, r.Result)
	if r.Error != "" {
		line += ": " + legible.Printable(r.Error)
	}
	return line
}
