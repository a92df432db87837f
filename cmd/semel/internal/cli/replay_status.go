package cli

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/assembly"
	"github.com/semel-go/semel/cmd/semel/internal/replay"
	"github.com/semel-go/semel/cmd/semel/internal/terminal"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
	"github.com/spf13/cobra"
)

// replayView is a replay as it is printed.
type replayView struct {
	Store      string               `json:"store"`
	Number     int64                `json:"number"`
	Consumer   string               `json:"consumer"`
	Kind       admin.ReplayKind     `json:"kind"`
	Generation int64                `json:"generation"`
	Effects    string               `json:"effects"`
	State      admin.ReplayState    `json:"state"`
	Run        bool                 `json:"run"`
	Who        string               `json:"who"`
	Why        string               `json:"why"`
	Started    time.Time            `json:"started"`
	StoppedBy  string               `json:"stopped_by,omitempty"`
	StoppedWhy string               `json:"stopped_why,omitempty"`
	Saved      time.Time            `json:"saved"`
	Ended      time.Time            `json:"ended,omitzero"`
	Progress   admin.ReplayProgress `json:"progress"`
}

func viewOfReplay(store string, r *admin.Replay) replayView {
	effects := effectsWord(r.Effects)
	return replayView{store, r.Number, r.Consumer, r.Kind, r.Generation, effects, r.State, r.Left > 0, r.Start.By, r.Start.Why, r.Start.At,
		r.Stop.By, r.Stop.Why, r.Saved, r.Ended, r.Progress}
}

// state says also whether somebody runs it.
func (v replayView) state() string {
	if !v.State.Ended() && !v.Run {
		return string(v.State) + ", nobody runs it"
	}
	return string(v.State)
}

func replayStatus(c *common) *cobra.Command {
	var store string
	l := &listing{}
	cmd := &cobra.Command{
		Use: "status", Short: "List replays and how far they have come", Args: nothing,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := l.check(c, cmd); err != nil {
				return err
			}
			return c.replays(cmd.Context(), store, l)
		},
	}
	l.add(c, cmd, 20, "replays")
	storeFlag(cmd, &store)
	refuseEmpty(cmd, "store", "consumer")
	return c.withConfig(c.withConsumer(cmd, "only those of this consumer"))
}

func (c *common) replays(ctx context.Context, store string, l *listing) error {
	a, err := c.openBoxes(ctx, store)
	if err != nil {
		return err
	}
	defer c.close(a)
	if err := c.refuseStranger(ctx, a, c.consumer); err != nil {
		return err
	}
	all := []replayView{}
	for _, s := range a.Stores {
		found, err := s.ReplaysOf(ctx, c.consumer, l.limit)
		if err != nil {
			return failed(err)
		}
		for i := range found {
			all = append(all, viewOfReplay(s.Name(), &found[i]))
		}
	}
	if c.json {
		return writeJSON(c.Out, struct {
			Replays []replayView `json:"replays"`
		}{all})
	}
	type view = replayView
	of := func(v view) string { return v.Store }
	err = show(c.Out, all, []column[view]{
		{terminal.Column{Title: "STORE"}, differ(all, of), of},
		{terminal.Column{Title: "NUMBER"}, true, func(v view) string { return fmt.Sprint(v.Number) }},
		{terminal.Column{Title: "CONSUMER", Flexible: true}, true, func(v view) string { return v.Consumer }},
		{terminal.Column{Title: "STATE"}, true, view.state},
		{terminal.Column{Title: "STARTED"}, true, func(v view) string { return moment(v.Started) }},
		{terminal.Column{Title: "BY", Flexible: true}, true, func(v view) string { return v.Who }},
		{terminal.Column{Title: "SO FAR", Flexible: true}, true, func(v view) string { return replay.Sum(v.Progress.Counts) }},
	}, l.columns(c))
	fmt.Fprintln(c.Err, counted(len(all), len(all), "replay"))
	return failed(err)
}

func replayStop(c *common) *cobra.Command {
	var st, who, why string
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "stop NUMBER --because TEXT",
		Short: "Stop a replay, whoever runs it",
		Long: `Stop ends a replay: what it has in hand comes to its end, and it may be resumed
(semel replay start --resume). Who runs it hears of it within 5 seconds.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage("give one number of a replay; semel replay status shows them")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			number, err := strconv.ParseInt(args[0], 10, 64)
			if err != nil || number < 1 {
				return usage("%q is no number of a replay; semel replay status shows them", args[0])
			}
			if err := recorded(&who, why, dryRun); err != nil {
				return err
			}
			a, err := c.openBox(cmd.Context(), st)
			if err != nil {
				return err
			}
			defer c.close(a)
			return c.stopReplay(cmd.Context(), a.Stores[0], number, store.Act{Verb: "replay stop", Who: who, Why: why}, dryRun)
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only say how far it has come")
	storeFlag(cmd, &st)
	recordFlags(cmd, &who, &why)
	return c.withConfig(cmd)
}

func (c *common) stopReplay(ctx context.Context, s *assembly.Store, number int64, a store.Act, dryRun bool) error {
	r, err := s.Replay(ctx, number)
	if err == nil && !dryRun {
		r, err = s.StopReplay(ctx, number, a)
	}
	if err != nil {
		return failed(err)
	}
	view := viewOfReplay(s.Name(), &r)
	if c.json {
		return writeJSON(c.Out, view)
	}
	_, err = fmt.Fprintf(c.Out, "replay %d of %s is %s: %s\n", number, terminal.Line(r.Consumer), view.state(), replay.Sum(r.Progress.Counts))
	return failed(err)
}
