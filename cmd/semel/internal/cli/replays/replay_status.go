package replays

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/assembly"
	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/semel-go/semel/cmd/semel/internal/cli/output"
	"github.com/semel-go/semel/cmd/semel/internal/replay"
	"github.com/semel-go/semel/cmd/semel/internal/running"
	"github.com/semel-go/semel/cmd/semel/internal/terminal"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
	"github.com/spf13/cobra"
)

// ReplayView shows a replay.
type ReplayView struct {
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

// ViewOfReplay returns the view of a recorded replay. The parameter store is the name of the store.
func ViewOfReplay(store string, r *admin.Replay) ReplayView {
	effects := effectsWord(r.Effects)
	return ReplayView{store, r.Number, r.Consumer, r.Kind, r.Generation, effects, r.State, r.Left > 0, r.Start.By, r.Start.Why, r.Start.At,
		r.Stop.By, r.Stop.Why, r.Saved, r.Ended, r.Progress}
}

// state returns the state of the replay. If a replay has not ended and no process runs the replay, the text
// says that no process runs it.
func (v ReplayView) state() string {
	if !v.State.Ended() && !v.Run {
		return string(v.State) + ", but no process runs it"
	}
	return string(v.State)
}

// nouns maps kinds of replays to their names in texts. The names of the command groups are the names in
// nouns.
var nouns = map[admin.ReplayKind]string{admin.ReplayAgain: "replay", admin.ReplayRebuild: "rebuild"}

func replayStatus(c *command.CLI, kind admin.ReplayKind) *cobra.Command {
	var store string
	l := &command.Listing{}
	noun := nouns[kind]
	cmd := &cobra.Command{
		Use: "status", Short: "List " + noun + "s and their progress", Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := l.Check(c, cmd); err != nil {
				return err
			}
			return replays(cmd.Context(), c, kind, store, l)
		},
	}
	l.Add(c, cmd, 20, noun+"s")
	command.StoreFlag(cmd, &store)
	command.RefuseEmpty(cmd, "store", "consumer")
	return c.WithConfig(c.WithConsumer(cmd, "only this consumer"))
}

func replays(ctx context.Context, c *command.CLI, kind admin.ReplayKind, store string, l *command.Listing) error {
	a, err := c.OpenBoxes(ctx, store)
	if err != nil {
		return err
	}
	defer c.Close(a)
	if err := c.RefuseUnknownConsumer(ctx, a, c.Consumer); err != nil {
		return err
	}
	all := []ReplayView{}
	for _, s := range a.Stores {
		found, err := s.ReplaysOf(ctx, c.Consumer, 0)
		if err != nil {
			return command.Failed(err)
		}
		n := 0
		for i := range found {
			if found[i].Kind == kind && !l.Full(n) {
				n++
				all = append(all, ViewOfReplay(s.Name(), &found[i]))
			}
		}
	}
	if c.JSON {
		return c.WriteJSON(struct {
			Replays []ReplayView `json:"replays"`
		}{all})
	}
	type view = ReplayView
	err = command.PrintTable(c, l, all, output.Fixed(
		output.Text("STORE", func(v view) string { return v.Store }).IfVaried(),
		output.Number("NUMBER", func(v view) int64 { return v.Number }),
		output.Flexible("CONSUMER", func(v view) string { return v.Consumer }),
		output.Text("STATE", view.state),
		output.Text("STARTED", func(v view) string { return output.Moment(v.Started) }),
		output.Flexible("BY", func(v view) string { return v.Who }),
		output.Flexible("SO FAR", func(v view) string { return replay.Sum(v.Progress.Counts) }),
	))
	fmt.Fprintln(c.Err, output.Counted(len(all), len(all), nouns[kind]))
	return err
}

func replayStop(c *command.CLI, kind admin.ReplayKind) *cobra.Command {
	var st, who, why string
	var dryRun bool
	noun := nouns[kind]
	cmd := &cobra.Command{
		Use:   "stop NUMBER --because TEXT",
		Short: "Stop a " + noun,
		Long: fmt.Sprintf(`Stop a %s after the messages in progress; its process ends in 5 seconds.
Continue it later with semel %s start --resume.`, noun, noun),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return command.UsageError("give one number of a %s; semel %s status shows them", noun, noun)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			number, err := strconv.ParseInt(args[0], 10, 64)
			if err != nil || number < 1 {
				return command.UsageError("%q is no number of a %s; semel %s status shows them", args[0], noun, noun)
			}
			if err := command.CheckRecord(&who, why, dryRun); err != nil {
				return err
			}
			a, err := c.OpenBox(cmd.Context(), st)
			if err != nil {
				return err
			}
			defer c.Close(a)
			return stopReplay(cmd.Context(), c, a.Stores[0], number, store.Act{Verb: "replay stop", Who: who, Why: why}, dryRun)
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only show the progress")
	command.StoreFlag(cmd, &st)
	command.RecordFlags(cmd, &who, &why)
	return c.WithConfig(cmd)
}

func stopReplay(ctx context.Context, c *command.CLI, s *assembly.Store, number int64, a store.Act, dryRun bool) error {
	r, err := s.Replay(ctx, number)
	if err == nil && !dryRun {
		r, err = s.StopReplay(ctx, number, a)
	}
	if err != nil {
		return command.Failed(err)
	}
	view := ViewOfReplay(s.Name(), &r)
	if c.JSON {
		return c.WriteJSON(view)
	}
	_, err = fmt.Fprintf(c.Out, "replay %d of %s is %s: %s\n", number, terminal.Line(r.Consumer), view.state(), replay.Sum(r.Progress.Counts))
	return command.Failed(err)
}

type planView struct {
	Consumer string              `json:"consumer"`
	Effects  string              `json:"effects"`
	Range    string              `json:"range"`
	Lanes    []admin.ReplayLane  `json:"lanes"`
	Would    *admin.ReplayCounts `json:"would,omitempty"`
	Resume   int64               `json:"resume,omitempty"`
	So       *admin.ReplayCounts `json:"so_far,omitempty"`
}

func (r *replayRun) printPlan() error {
	view := planView{Consumer: r.consumer.Name, Effects: effectsWord(r.consumer.Replay.Effects), Range: r.progress.Range, Lanes: r.progress.Lanes, Would: r.progress.Prediction, Resume: r.requested.resume}
	if r.requested.resume > 0 {
		view.So = &r.progress.Counts
	}
	if r.JSON {
		if view.Lanes == nil {
			view.Lanes = []admin.ReplayLane{}
		}
		return r.WriteJSON(view)
	}
	fmt.Fprintf(r.Out, "consumer %s, effects outside: %s\n", view.Consumer, view.Effects)
	fmt.Fprintf(r.Out, "range: %s\n", textOrNothing(view.Range))
	if view.So != nil {
		fmt.Fprintf(r.Out, "so far: %s\n", replay.Sum(*view.So))
	}
	if view.Would != nil {
		fmt.Fprintf(r.Out, "predicted: %s\n", replay.Sum(*view.Would))
	}
	return nil
}

func textOrNothing(text string) string {
	if text == "" {
		return "nothing"
	}
	return text
}

func effectsWord(real bool) string {
	if real {
		return "real"
	}
	return "none"
}

// everySoOften is the interval of progress reports on standard error if there is no live line.
const everySoOften = 10 * time.Second

// printReading returns a function that prints, at intervals, how much of the source the prediction has read.
func (r *replayRun) printReading(s *replay.Source) func(admin.ReplayCounts) {
	last := time.Now()
	return func(c admin.ReplayCounts) {
		if time.Since(last) < everySoOften {
			return
		}
		last = time.Now()
		r.Remark("looking up: %.0f %%, %d messages", 100*s.Part(), c.Read)
	}
}

// shownReplay is a replay as shown on the live line.
type shownReplay struct {
	assembly.Consumer
	source *replay.Source
}

// Source returns the completed part of the source as text.
func (s shownReplay) Source() string { return fmt.Sprintf("%.0f %% done", 100*s.source.Part()) }

// watch shows the progress of the replay: on a live line of the terminal or, without a terminal, at
// intervals on standard error.
func (r *replayRun) watch(c assembly.Consumer) {
	if r.ErrTerminal {
		r.live = running.NewLive(r.Raw.Err)
		r.live.Add(fmt.Sprintf("replay %d", r.runner.Number), shownReplay{c, r.runner.Source})
		return
	}
	last := time.Now()
	r.runner.Told = func() {
		if time.Since(last) < everySoOften {
			return
		}
		last = time.Now()
		_, counts := r.runner.Source.Progress()
		r.Remark("replay %d: %.0f %% done, %s", r.runner.Number, 100*r.runner.Source.Part(), replay.Sum(counts))
	}
}

// endView shows the result of a replay.
type endView struct {
	Number     int64               `json:"number"`
	State      admin.ReplayState   `json:"state"`
	Counts     admin.ReplayCounts  `json:"counts"`
	Prediction *admin.ReplayCounts `json:"predicted,omitempty"`
	// Inbox has the counts of inbox rows that this process has processed during the replay; nil if the process
	// has processed no rows.
	Inbox   *semel.InboxCounts `json:"inbox,omitempty"`
	Resumed bool               `json:"resumed"`
}

// end prints the result of the replay next to the prediction.
func (r *replayRun) end(inbox semel.InboxCounts, state admin.ReplayState, err error) error {
	_, counts := r.runner.Source.Progress()
	view := endView{Number: r.runner.Number, State: state, Counts: counts, Prediction: r.progress.Prediction, Resumed: r.requested.resume > 0}
	if inbox.Claimed > 0 {
		view.Inbox = &inbox
	}
	if r.JSON {
		if e := r.WriteJSON(view); e != nil {
			return errors.Join(err, e)
		}
	} else {
		fmt.Fprintf(r.Out, "replay %d %s: %s\n", view.Number, state, replay.Sum(counts))
		if f := view.Prediction; f != nil && state == admin.ReplayDone && *f != counts {
			fmt.Fprintf(r.Out, "predicted: %s\n", replay.Sum(*f))
		}
		if inbox.Claimed > 0 {
			fmt.Fprintf(r.Out, "of the inbox: %s\n", strings.Join(nonZeroCounts([]countOf{{inbox.Claimed, "claimed"}, {inbox.Applied, "applied"}, {inbox.Duplicates, "skipped"}, {inbox.Waiting, "waiting"},
				{inbox.Parked, "parked"}, {inbox.DeadLettered, "dead-lettered"}, {inbox.Discarded, "discarded"}}), ", "))
		}
	}
	if state != admin.ReplayDone {
		r.Remark("continue it: %s", r.Suggest("replay", "start", r.consumer.Name, "--resume", fmt.Sprint(view.Number), "--because", "WHY"))
	}
	if stop := r.stoppedBy(state, err); stop != nil {
		return stop
	}
	if aside := counts.Parked + counts.Conflicts + counts.DeadLettered; err == nil && aside > 0 {
		r.Remark("%d messages were parked; list them: %s", aside, r.Suggest("messages", "ls", "--consumer", r.consumer.Name))
	}
	return err
}

// If a person stopped the replay, stoppedBy returns an error with the name of the person and the reason,
// otherwise nil.
func (r *replayRun) stoppedBy(state admin.ReplayState, err error) error {
	if state != admin.ReplayStopped || !errors.Is(err, replay.ErrStopped) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), everySoOften)
	defer cancel()
	kept, e := r.runner.Store.Replay(ctx, r.runner.Number)
	if e != nil {
		return err
	}
	return fmt.Errorf("%s has stopped replay %d: %s", terminal.Line(kept.Stop.By), kept.Number, terminal.Line(kept.Stop.Why))
}
