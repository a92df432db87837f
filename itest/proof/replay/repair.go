//go:build unix

package replay

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/semel-go/semel/itest/proof"
)

// replay has an operator replay the letters that the filter chooses, and compares what was
// said in advance with what happened: of those letters, whatever comes meanwhile. A second
// operator does the same at once, and the first is killed in the middle so often, and called
// again.
func (r *run) replay(ctx context.Context, name string, shots int, filter ...string) (applied int, err error) {
	var said letters
	args := slices.Concat([]string{"dead", "replay"}, filter)
	if err := r.semel(ctx, &said, []int{0, 1}, append(slices.Clone(args), "--dry-run")...); err != nil {
		return 0, err
	}
	before, err := r.look(ctx)
	if err != nil {
		return 0, err
	}
	if r.Plant == "new-ids" {
		err = r.resend(ctx, said)
	} else {
		err = r.carry(ctx, shots, append(args, "--reason", name, "--as", "proof"))
	}
	if err != nil {
		return 0, err
	}
	after, err := r.look(ctx)
	if err != nil {
		return 0, err
	}
	happened := func(l letter) string { return became(l, before, after) }
	for _, l := range said.Letters {
		if happened(l) == fateApplied {
			applied++
		}
	}
	r.forecast(name, tally(said.Letters, func(l letter) string { return l.Foretold }), tally(said.Letters, happened))
	return applied, nil
}

// carry calls the command for two operators, and kills that of the first so often.
func (r *run) carry(ctx context.Context, shots int, args []string) error {
	slow := append(slices.Clone(args), "--rate", fmt.Sprint(max(20, r.Messages/100)))
	var second *operator
	for n := 0; ; n++ {
		if n == shots {
			slow = args
		}
		first, err := r.call("first", slow...)
		if err != nil {
			return err
		}
		if second == nil {
			if second, err = r.call("second", args...); err != nil {
				return err
			}
		}
		if n == shots {
			return cmp.Or(r.ended(ctx, first, 0, 1), r.ended(ctx, second, 0, 1))
		}
		if err := r.counted(ctx, first, r.acts(ctx)+5, `select count(*) from semel_acts where verb = 'retry'`); err != nil {
			return err
		}
		if err := r.shot(first); err != nil {
			return err
		}
	}
}

// acts is how many letters have been made due so far.
func (r *run) acts(ctx context.Context) (n int) {
	_ = r.Activity.DB.QueryRowContext(ctx, `select count(*) from semel_acts where verb = 'retry'`).Scan(&n)
	return n
}

// repair mends the first cause and replays by a filter while nothing else comes.
func (r *run) repair(ctx context.Context) error {
	if err := r.mend(ctx, noAccount); err != nil {
		return err
	}
	applied, err := r.replay(ctx, "the accounts are there", r.Shots.Filter, "--all", "--type", closing, "--with-reason", "permanent failure")
	if err != nil {
		return err
	}
	r.ledger.ByFilter += applied
	_, err = r.replay(ctx, "two contents, one identity", 0, "--all", "--with-reason", "conflict")
	return err
}

// repairLive mends the other causes and replays by group, edited letters first, while
// messages and copies come and members are killed.
func (r *run) repairLive(ctx context.Context) error {
	if err := r.publish(ctx, untilRepair, untilRebuild, r.Publish/3); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{
		r.killMembers,
		func(ctx context.Context) error {
			return r.replayGroup(ctx, tooMuch, "violates check constraint", r.Shots.Group)
		},
		func(ctx context.Context) error { return r.replayGroup(ctx, unreadable, "invalid input syntax", 0) },
		r.published,
		r.sweep,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// killMembers kills half of those that are to be killed after the first part.
func (r *run) killMembers(ctx context.Context) error {
	for range r.Kills / 2 {
		if err := r.killMember(ctx); err != nil {
			return err
		}
	}
	return nil
}

// failureGroup finds the group of letters whose error has these words.
func (r *run) failureGroup(ctx context.Context, words string) (string, error) {
	var listed struct {
		Groups []struct {
			Group string
			Error string `json:"last_error"`
		}
	}
	if err := r.semel(ctx, &listed, []int{0}, "dead", "ls"); err != nil {
		return "", err
	}
	for _, g := range listed.Groups {
		if strings.Contains(g.Error, words) {
			return g.Group, nil
		}
	}
	return "", fmt.Errorf("no failure group says %q: %+v", words, listed.Groups)
}

func (r *run) replayGroup(ctx context.Context, c cause, words string, shots int) error {
	group, err := r.failureGroup(ctx, words)
	if err == nil {
		err = r.mend(ctx, c)
	}
	if err != nil {
		return err
	}
	applied, err := r.replay(ctx, "mended: "+words, shots, "--all", "--group", group)
	r.ledger.ByGroup += applied
	return err
}

// edit corrects letters whose amount cannot be read, and replays them.
func (r *run) edit(ctx context.Context) error {
	group, err := r.failureGroup(ctx, "invalid input syntax")
	if err != nil {
		return err
	}
	var listed letters
	if err := r.semel(ctx, &listed, []int{0}, "dead", "ls", "--group", group, "--limit", fmt.Sprint(r.Edited)); err != nil {
		return err
	}
	var numbers []string
	for _, l := range listed.Letters {
		var transfer int
		if _, err := fmt.Sscanf(l.ID, "transfer-%d", &transfer); err != nil {
			return fmt.Errorf("letter %d is of %q: %w", l.Number, l.ID, err)
		}
		if err := os.WriteFile(filepath.Join(r.Folder, "edited.json"), []byte(edited(transfer)), 0o644); err != nil {
			return err
		}
		number := fmt.Sprint(l.Number)
		var told any
		if err := r.semel(ctx, &told, []int{0}, "dead", "edit", number, "--payload", "edited.json", "--yes", "--reason", "a comma", "--as", "proof"); err != nil {
			return err
		}
		numbers = append(numbers, number)
	}
	r.ledger.Edited, err = r.replay(ctx, "edited by hand", 0, numbers...)
	return err
}

// sweep replays what came in while others were replayed, and closes what nobody can.
func (r *run) sweep(ctx context.Context) error {
	if _, err := r.replay(ctx, "what is left", 0, "--all"); err != nil {
		return err
	}
	var told any
	return r.semel(ctx, &told, []int{0}, "dead", "discard", "--all", "--with-reason", "conflict", "--reason", "the first stands", "--as", "proof")
}

// resend is what people do without a tool: they send the letters again, as new messages.
func (r *run) resend(ctx context.Context, said letters) error {
	feed, err := proof.Publish(ctx, 1, func(ctx context.Context, p *proof.Publisher) {
		for _, l := range said.Letters {
			var transfer int
			if _, err := fmt.Sscanf(l.ID, "transfer-%d", &transfer); err != nil {
				continue
			}
			record := r.record(place{transfer: transfer}, r.random)
			record.Topic, record.Headers[1].Value = topic, []byte("again-"+l.ID)
			p.Send(ctx, 0, record)
		}
	}, r.toBrokers()...)
	if err != nil {
		return err
	}
	defer feed.Stop()
	return r.Until(ctx, func() (bool, error) { return feed.Over(), feed.Err() })
}
