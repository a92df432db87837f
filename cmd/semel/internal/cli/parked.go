package cli

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/operate"
)

func parkedCommand(c *common) *cobra.Command {
	return group("parked", "List, show, retry and discard messages that were set aside",
		parkedList(c), parkedShow(c), parkedAct(c, operate.Retry), parkedAct(c, operate.Discard))
}

func parkedList(c *common) *cobra.Command {
	f := &filter{}
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List what was set aside and is not done",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			chosen, err := f.rows(c, time.Now)
			if err != nil {
				return err
			}
			a, err := c.openBoxes(cmd.Context(), f.store)
			if err != nil {
				return err
			}
			defer c.close(a)
			var views []operate.View
			for _, s := range a.Stores {
				box := boxOf(s)
				for row, err := range box.Rows(cmd.Context(), chosen) {
					if err != nil {
						return failed(err)
					}
					views = append(views, operate.NewView(box.Store, row))
				}
			}
			return c.printRows(views)
		},
	}
	return c.withConfig(f.add(c, cmd, "reason"))
}

// parkedShow shows one row with its history.
func parkedShow(c *common) *cobra.Command {
	var store string
	var payload bool
	cmd := &cobra.Command{
		Use:   "show NUMBER",
		Short: "Show one message and what was done to it",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			numbers, err := parseNumbers(args)
			if err != nil {
				return err
			}
			a, err := c.openBox(cmd.Context(), store)
			if err != nil {
				return err
			}
			defer c.close(a)
			detail, err := boxOf(a.Stores[0]).Show(cmd.Context(), numbers[0], payload)
			if err != nil {
				return failed(err)
			}
			if c.json {
				return writeJSON(c.Out, detail)
			}
			return failed(writeDetail(c.Out, detail))
		},
	}
	cmd.Flags().BoolVar(&payload, "payload", false, "show headers and payload too; they may hold secrets")
	cmd.Flags().StringVar(&store, "store", "", "the store, where the policy has several")
	return c.withConfig(cmd)
}

// parkedAct is retry or discard.
func parkedAct(c *common, verb operate.Verb) *cobra.Command {
	f := &filter{}
	var all, dryRun bool
	var why, who string
	shorts := map[operate.Verb]string{
		operate.Retry:   "Run the handler of set-aside messages again, one transaction a message",
		operate.Discard: "Close set-aside messages: no effect will ever happen",
	}
	cmd := &cobra.Command{
		Use:   string(verb) + " [NUMBER...] --reason TEXT",
		Short: shorts[verb],
		RunE: func(cmd *cobra.Command, args []string) error {
			chosen, err := f.targets(c, all, args)
			if err != nil {
				return err
			}
			order := operate.Order{Verb: verb, Filter: chosen, Why: why, DryRun: dryRun}
			if order.Who, err = operator(who); err != nil {
				return err
			}
			if why == "" && !dryRun {
				return usage("--reason is missing: say why, it is recorded with the act")
			}
			return c.carry(cmd.Context(), order, f.store)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "all that the filters choose, instead of numbers")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only say what would be done")
	cmd.Flags().StringVar(&why, "reason", "", "why, for the record")
	cmd.Flags().StringVar(&who, "as", "", "who does it, for the record (default: the user of the operating system)")
	return c.withConfig(f.add(c, cmd, "with-reason"))
}

// carry carries out an order and prints what became of each row.
func (c *common) carry(ctx context.Context, o operate.Order, store string) error {
	a, err := c.openBox(ctx, store)
	if err != nil {
		return err
	}
	defer c.close(a)
	box := boxOf(a.Stores[0])
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
			fmt.Fprintln(c.Out, resultLine(r))
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
	switch {
	case stopped != nil:
		return failed(stopped)
	case bad > 0:
		return failed(fmt.Errorf("%s: %d of %d messages were not done", o.Verb, bad, len(done)))
	}
	return nil
}

func resultLine(r operate.Result) string {
	line := fmt.Sprintf("%d %s %s: %s", r.Number, semel.Printable(r.Consumer), semel.Printable(r.ID), r.Result)
	if r.Error != "" {
		line += ": " + semel.Printable(r.Error)
	}
	return line
}

func parseNumbers(args []string) ([]int64, error) {
	var numbers []int64
	for _, a := range args {
		n, err := strconv.ParseInt(a, 10, 64)
		if err != nil || n < 1 {
			return nil, usage("%q is no row number; 'semel parked ls' shows them", a)
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}

// states are the words of --state.
func states() []semel.RowState {
	return []semel.RowState{semel.StateReceived, semel.StateInProgress, semel.StateCompleted, semel.StateFailedRetryable,
		semel.StateFailedTerminal, semel.StateParked, semel.StateBlocked, semel.StateDeadLettered, semel.StateDiscarded}
}
