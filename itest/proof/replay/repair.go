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
	"time"

	"github.com/semel-go/semel/itest/proof"
)

// replay makes an operator replay the dead letters that match a filter. replay compares the preview with the
// result for these dead letters. Other messages may arrive meanwhile. A second operator does the same at the
// same time. The first command is killed `shots` times while it works, and run again each time.
func (r *run) replay(ctx context.Context, name string, shots int, filter ...string) (applied int, err error) {
	var said letters
	args := slices.Concat([]string{"messages", "retry", "--wait"}, filter)
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
		err = r.carry(ctx, shots, append(args, "--because", name))
	}
	if err != nil {
		return 0, err
	}
	after, err := r.look(ctx)
	if err != nil {
		return 0, err
	}
	happened := func(l letter) string { return became(l, before, after) }
	for _, l := range said.Results {
		if happened(l) == fateApplied {
			applied++
		}
	}
	r.forecast(name, tally(said.Results, func(l letter) string { return l.Predicted }), tally(said.Results, happened))
	return applied, nil
}

// carry makes two operators run the command at the same time. The command that is retrying dead letters is
// killed `shots` times in the middle of its work and run again.
func (r *run) carry(ctx context.Context, shots int, args []string) error {
	if shots > 0 { // replay slowly, so that the command can be killed in the middle
		args = append(args, "--rate", fmt.Sprint(max(20, r.Messages/500)))
	}
	operators := map[string]*operator{}
	call := func(who string) (err error) {
		operators[who], err = r.call(who, append(slices.Clone(args), "--as", who)...)
		return err
	}
	if err := cmp.Or(call("ann"), call("ben")); err != nil {
		return err
	}
	for range shots {
		who, err := r.atWork(ctx, operators)
		if err != nil {
			return err
		}
		if err := cmp.Or(r.shot(operators[who]), call(who)); err != nil {
			return err
		}
	}
	return cmp.Or(r.ended(ctx, operators["ann"], 0, 1), r.ended(ctx, operators["ben"], 0, 1))
}

// atWork waits until further dead letters are retried, and returns the operator whose command retried them.
func (r *run) atWork(ctx context.Context, operators map[string]*operator) (who string, err error) {
	const newest = `select count(*), coalesce((array_agg(who order by number desc))[1], '') from semel_acts where verb = 'retry'`
	first, looked := -1, time.Time{}
	err = r.Until(ctx, func() (bool, error) {
		if time.Since(looked) < 20*time.Millisecond {
			return false, nil
		}
		looked = time.Now()
		acts := 0
		if err := r.Activity.DB.QueryRowContext(ctx, newest).Scan(&acts, &who); err != nil {
			return false, err
		}
		if first < 0 {
			first = acts
		}
		return acts >= first+5 || !anybody(operators), nil
	})
	if err != nil || operators[who] != nil {
		return who, err
	}
	return "", fmt.Errorf("%q replays dead letters without being asked to", who)
}

// anybody reports whether one of the operators is running.
func anybody(operators map[string]*operator) bool {
	for _, o := range operators {
		if alive, err := o.Running(); alive && err == nil {
			return true
		}
	}
	return false
}

// repair repairs the first cause and replays dead letters by a filter. No messages arrive meanwhile.
func (r *run) repair(ctx context.Context) error {
	if err := r.mend(ctx, noAccount); err != nil {
		return err
	}
	applied, err := r.replay(ctx, "the accounts are there", r.Shots.Filter, "--all", "--type", closing, "--reason", "permanent failure")
	if err != nil {
		return err
	}
	r.ledger.ByFilter += applied
	_, err = r.replay(ctx, "two contents, one identity", 0, "--all", "--reason", "conflict")
	return err
}

// repairLive repairs the other causes and replays dead letters by group, those to be edited first. Meanwhile
// messages and copies arrive and members are killed.
func (r *run) repairLive(ctx context.Context) error {
	if err := r.publish(ctx, untilRepair, untilRebuild, r.Publish/3); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{
		r.killMembers,
		func(ctx context.Context) error {
			return r.replayGroup(ctx, tooMuch, "violates check constraint", r.Shots.Group)
		},
		r.edit,
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

// killMembers kills members. It makes half of the kills that are left after the first part.
func (r *run) killMembers(ctx context.Context) error {
	for range r.Kills / 2 {
		if err := r.killMember(ctx); err != nil {
			return err
		}
	}
	return nil
}

// failureGroup returns the group of dead letters whose error contains these words.
func (r *run) failureGroup(ctx context.Context, words string) (string, error) {
	var listed struct {
		Groups []struct {
			Group string
			Error string `json:"last_error"`
		}
	}
	if err := r.semel(ctx, &listed, []int{0}, "messages", "summary"); err != nil {
		return "", err
	}
	for _, g := range listed.Groups {
		if strings.Contains(g.Error, words) {
			return g.Group, nil
		}
	}
	return "", fmt.Errorf("no failure group contains %q: %+v", words, listed.Groups)
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

// edit corrects dead letters with an unreadable amount, and replays them.
func (r *run) edit(ctx context.Context) error {
	group, err := r.failureGroup(ctx, "invalid input syntax")
	if err != nil {
		return err
	}
	var listed letters
	if err := r.semel(ctx, &listed, []int{0}, "messages", "ls", "--group", group, "--limit", fmt.Sprint(r.Edited)); err != nil {
		return err
	}
	var numbers []string
	for _, l := range listed.Rows {
		var transfer int
		if _, err := fmt.Sscanf(l.ID, "transfer-%d", &transfer); err != nil {
			return fmt.Errorf("dead letter %d of %q: %w", l.Number, l.ID, err)
		}
		if err := os.WriteFile(filepath.Join(r.Folder, "edited.json"), []byte(edited(transfer)), 0o644); err != nil {
			return err
		}
		number := fmt.Sprint(l.Number)
		var told any
		if err := r.semel(ctx, &told, []int{0}, "messages", "edit", number, "--payload", "edited.json", "--yes", "--because", "a comma", "--as", "proof"); err != nil {
			return err
		}
		numbers = append(numbers, number)
	}
	r.ledger.Edited, err = r.replay(ctx, "edited by hand", 0, numbers...)
	return err
}

// sweep replays the dead letters that arrived during the other replays, and discards those that cannot be
// repaired.
func (r *run) sweep(ctx context.Context) error {
	if _, err := r.replay(ctx, "what is left", 0, "--all", "--yes"); err != nil {
		return err
	}
	return r.discard(ctx)
}

// discard discards the conflicts, because only the producer knows which content is right.
func (r *run) discard(ctx context.Context) error {
	var told any
	return r.semel(ctx, &told, []int{0}, "messages", "discard", "--all", "--reason", "conflict", "--because", "the first stands", "--as", "proof")
}

// resend plants a fault: it publishes the dead letters again as new messages, as people do without a tool.
func (r *run) resend(ctx context.Context, said letters) error {
	feed, err := proof.Publish(ctx, 1, func(ctx context.Context, p *proof.Publisher) {
		for _, l := range said.Results {
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
