package cli

import (
	"context"
	"fmt"

	"github.com/semel-go/semel/cmd/semel/internal/assembly"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/cmd/semel/internal/replay"
	"github.com/semel-go/semel/cmd/semel/internal/terminal"
	"github.com/semel-go/semel/contract"
	"github.com/semel-go/semel/file"
)

// beginReplay writes a replay down, or takes one up, and opens what it reads.
func (c *common) beginReplay(ctx context.Context, a *assembly.Assembly, of *policy.Consumer, r *replaying, run *replay.Runner) (*replay.File, error) {
	source := a.Policy().Source(of.From)
	if source.File == nil || source.File.Path == policy.Stdin {
		return nil, fmt.Errorf("source %s cannot be read again", source.Name)
	}
	act := contract.Act{Verb: "replay start", Who: r.who, Why: r.why}
	if r.resume > 0 {
		return c.resumeReplay(ctx, a, of, act, run)
	}
	part, err := replay.OpenFile(source.File.Path, a.Lane(source.File.Path), 0, -1)
	if err != nil {
		return nil, err
	}
	l := part.Lane()
	run.Progress = contract.ReplayProgress{Range: fmt.Sprintf("%s, bytes %d to %d", l.Lane, l.From, l.To), Lanes: []contract.ReplayLane{l}}
	run.Number, err = run.Store.NewReplay(ctx, contract.Replay{Consumer: of.Name, Kind: contract.ReplayAgain, Effects: of.Replay.Effects, Progress: run.Progress}, run.Token, replay.Lease, act)
	return part, err
}

// resumeReplay takes up one that was stopped or killed.
func (c *common) resumeReplay(ctx context.Context, a *assembly.Assembly, of *policy.Consumer, act contract.Act, run *replay.Runner) (*replay.File, error) {
	kept, err := run.Store.Replay(ctx, run.Number)
	switch {
	case err != nil:
		return nil, err
	case kept.Consumer != of.Name:
		return nil, usage("replay %d is of consumer %s, not of %s", kept.Number, kept.Consumer, of.Name)
	case kept.Effects && !of.Replay.Effects:
		return nil, usage("replay %d was begun with effects: real, and the policy says none now: start another", kept.Number)
	case len(kept.Progress.Lanes) != 1:
		return nil, fmt.Errorf("replay %d is of %d lanes, and a file has one", kept.Number, len(kept.Progress.Lanes))
	}
	part, err := replay.ReopenFile(a.Policy().Source(of.From).File.Path, kept.Progress.Lanes[0])
	if err != nil {
		return nil, err
	}
	act.Verb = "replay resume"
	taken, err := run.Store.TakeReplay(ctx, run.Number, run.Token, replay.Lease, act)
	run.Progress = taken.Progress
	return part, err
}

// sectionOf is how a consumer's file is read.
func (c *common) sectionOf(p *policy.Policy, of *policy.Consumer, format file.Format) file.Options {
	return file.Options{Format: format, MaxLine: int(p.Source(of.From).File.MaxLine), Notice: func(what string) { fmt.Fprintln(c.Err, terminal.Line(what)) }}
}
