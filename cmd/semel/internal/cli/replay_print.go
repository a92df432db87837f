package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/assembly"
	"github.com/semel-go/semel/cmd/semel/internal/replay"
	"github.com/semel-go/semel/cmd/semel/internal/running"
	"github.com/semel-go/semel/cmd/semel/internal/terminal"
	"github.com/semel-go/semel/internal/admin"
)

// planView is what a replay would do, as it is printed.
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
	view := planView{Consumer: r.of.Name, Effects: effectsWord(r.of.Replay.Effects), Range: r.progress.Range, Lanes: r.progress.Lanes, Would: r.progress.Prediction, Resume: r.wanted.resume}
	if r.wanted.resume > 0 {
		view.So = &r.progress.Counts
	}
	if r.json {
		if view.Lanes == nil {
			view.Lanes = []admin.ReplayLane{}
		}
		return writeJSON(r.Out, view)
	}
	fmt.Fprintf(r.Out, "consumer %s, effects outside: %s\n", view.Consumer, view.Effects)
	fmt.Fprintf(r.Out, "range: %s\n", orNothing(view.Range))
	if view.So != nil {
		fmt.Fprintf(r.Out, "so far: %s\n", replay.Sum(*view.So))
	}
	if view.Would != nil {
		fmt.Fprintf(r.Out, "it would be: %s\n", replay.Sum(*view.Would))
	}
	return nil
}

func orNothing(text string) string {
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

// everySoOften is how often it is told how far a replay has come, where no line shows it.
const everySoOften = 10 * time.Second

// tellReading tells now and then how far what is foretold has come.
func (r *replayRun) tellReading(s *replay.Source) func(admin.ReplayCounts) {
	last := time.Now()
	return func(c admin.ReplayCounts) {
		if time.Since(last) < everySoOften {
			return
		}
		last = time.Now()
		r.remark("looking up: %.0f %%, %d messages", 100*s.Part(), c.Read)
	}
}

// shownReplay is a replay as its line shows it.
type shownReplay struct {
	assembly.Consumer
	source *replay.Source
}

// Source says how much is done.
func (s shownReplay) Source() string { return fmt.Sprintf("%.0f %% done", 100*s.source.Part()) }

// watch shows how far the replay has come: on a terminal on a line, otherwise now and then.
func (r *replayRun) watch(c assembly.Consumer) {
	if r.ErrTerminal {
		r.live = running.NewLive(r.raw.Err)
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
		r.remark("replay %d: %.0f %% done, %s", r.runner.Number, 100*r.runner.Source.Part(), replay.Sum(counts))
	}
}

// endView is how a replay ended, as it is printed.
type endView struct {
	Number     int64               `json:"number"`
	State      admin.ReplayState   `json:"state"`
	Counts     admin.ReplayCounts  `json:"counts"`
	Prediction *admin.ReplayCounts `json:"foretold,omitempty"`
	// Inbox is what this process did of the inbox meanwhile, where it had any of it.
	Inbox   *semel.InboxCounts `json:"inbox,omitempty"`
	Resumed bool               `json:"resumed"`
}

// end prints how the replay ended, beside what was foretold.
func (r *replayRun) end(inbox semel.InboxCounts, state admin.ReplayState, err error) error {
	_, counts := r.runner.Source.Progress()
	view := endView{Number: r.runner.Number, State: state, Counts: counts, Prediction: r.progress.Prediction, Resumed: r.wanted.resume > 0}
	if inbox.Claimed > 0 {
		view.Inbox = &inbox
	}
	if r.json {
		if e := writeJSON(r.Out, view); e != nil {
			return errors.Join(err, e)
		}
	} else {
		fmt.Fprintf(r.Out, "replay %d %s: %s\n", view.Number, state, replay.Sum(counts))
		if f := view.Prediction; f != nil && state == admin.ReplayDone && *f != counts {
			fmt.Fprintf(r.Out, "foretold was: %s\n", replay.Sum(*f))
		}
		if inbox.Claimed > 0 {
			fmt.Fprintf(r.Out, "of the inbox: %s\n", strings.Join(some([]tallied{{inbox.Claimed, "claimed"}, {inbox.Applied, "applied"}, {inbox.Duplicates, "skipped"}, {inbox.Waiting, "waiting"},
				{inbox.Parked, "parked"}, {inbox.DeadLettered, "dead-lettered"}, {inbox.Discarded, "discarded"}}), ", "))
		}
	}
	if state != admin.ReplayDone {
		r.remark("go on with it: %s", shell("semel", "replay", "start", "--config", r.config, "--consumer", r.of.Name, "--resume", fmt.Sprint(view.Number), "--because", "..."))
	}
	if stop := r.stoppedBy(state, err); stop != nil {
		return stop
	}
	if aside := counts.Parked + counts.Conflicts + counts.DeadLettered; err == nil && aside > 0 {
		r.remark("%d messages were set aside; list them: %s", aside, shell("semel", "inbox", "ls", "--config", r.config, "--consumer", r.of.Name))
	}
	return err
}

// stoppedBy says who has stopped the replay, if somebody did.
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
