//go:build unix

package replay

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel/itest/proof"
)

// replay makes an operator replay the dead letters that match a filter. For these dead letters, replay compares the
// preview with the result. Other messages may arrive during the replay. A second operator runs the same command at the
// same time. The first operator's command is killed while it works, as often as the parameter shots says, and run again
// each time.
func (r *run) replay(ctx context.Context, name string, shots int, filter ...string) (applied int) {
	var said retryOutput
	args := slices.Concat([]string{"messages", "retry", "--wait"}, filter)
	r.semel(ctx, &said, []int{0, 1}, append(slices.Clone(args), "--dry-run")...)
	before := r.look(ctx)
	if r.Plant == "new-ids" {
		r.resend(ctx, said)
	} else {
		r.carry(ctx, shots, append(args, "--because", name))
	}
	after := r.look(ctx)
	happened := func(l letter) string { return became(l, before, after) }
	for _, l := range said.Results {
		if happened(l) == fateApplied {
			applied++
		}
	}
	r.forecast(name, tally(said.Results, func(l letter) string { return l.Predicted }), tally(said.Results, happened))
	return applied
}

// carry makes two operators run the command at the same time. The command that is retrying dead letters is killed in
// the middle of its work, as often as the parameter shots says, and run again each time.
func (r *run) carry(ctx context.Context, shots int, args []string) {
	if shots > 0 { // replay slowly, so that the command can be killed in the middle
		args = append(args, "--rate", fmt.Sprint(max(20, r.Messages/500)))
	}
	operators := map[string]*operator{}
	call := func(who string) { operators[who] = r.call(who, append(slices.Clone(args), "--as", who)...) }
	call("ann")
	call("ben")
	for range shots {
		who := r.atWork(ctx, operators)
		r.killCommand(operators[who])
		call(who)
	}
	r.waitEnded(ctx, operators["ann"], 0, 1)
	r.waitEnded(ctx, operators["ben"], 0, 1)
}

// atWork waits until further dead letters are retried, and returns the operator whose command retried them.
func (r *run) atWork(ctx context.Context, operators map[string]*operator) (who string) {
	const newest = `select count(*), coalesce((array_agg(who order by number desc))[1], '') from semel_acts where verb = 'retry'`
	first, looked := -1, time.Time{}
	r.Until(ctx, func() bool {
		if time.Since(looked) < 20*time.Millisecond {
			return false
		}
		looked = time.Now()
		acts := 0
		proof.Check(r.Activity.DB.QueryRowContext(ctx, newest).Scan(&acts, &who))
		if first < 0 {
			first = acts
		}
		return acts >= first+5 || !operators["ann"].isRunning() && !operators["ben"].isRunning()
	})
	if operators[who] == nil {
		proof.Check(fmt.Errorf("%q replays dead letters without being asked to", who))
	}
	return who
}

// repair repairs the first cause and replays dead letters by a filter. No messages arrive while repair runs.
func (r *run) repair(ctx context.Context) {
	r.mend(ctx, noAccount)
	r.ledger.ByFilter += r.replay(ctx, "the accounts are there", r.Shots.Filter, "--all", "--type", closing, "--reason", "permanent failure")
	r.replay(ctx, "two contents, one identity", 0, "--all", "--reason", "conflict")
}

// repairLive repairs the other causes and replays dead letters by group, beginning with the dead letters that must be
// edited. At the same time, messages and copies arrive and members are killed.
func (r *run) repairLive(ctx context.Context) {
	r.publish(ctx, untilRepair, untilRebuild, r.Publish/3)
	r.killMembers(ctx)
	r.replayGroup(ctx, tooMuch, "violates check constraint", r.Shots.Group)
	r.edit(ctx)
	r.replayGroup(ctx, unreadable, "invalid input syntax", 0)
	r.waitPublished(ctx)
	// Dead letters that arrived during other replays are replayed. Dead letters that cannot be repaired are closed.
	r.replay(ctx, "what is left", 0, "--all", "--yes")
	r.discard(ctx)
}

// killMembers kills members: half of the kills that are left after the first part.
func (r *run) killMembers(ctx context.Context) {
	for range r.Kills / 2 {
		r.killMember(ctx)
	}
}

// failureGroup returns the group of dead letters whose error contains the given words.
func (r *run) failureGroup(ctx context.Context, words string) string {
	var listed struct {
		Groups []struct {
			Group string
			Error string `json:"last_error"`
		}
	}
	r.semel(ctx, &listed, []int{0}, "messages", "summary")
	for _, g := range listed.Groups {
		if strings.Contains(g.Error, words) {
			return g.Group
		}
	}
	proof.Check(fmt.Errorf("no failure group contains %q: %+v", words, listed.Groups))
	return ""
}

func (r *run) replayGroup(ctx context.Context, c cause, words string, shots int) {
	group := r.failureGroup(ctx, words)
	r.mend(ctx, c)
	r.ledger.ByGroup += r.replay(ctx, "mended: "+words, shots, "--all", "--group", group)
}

// edit corrects dead letters with an unreadable amount, and replays them.
func (r *run) edit(ctx context.Context) {
	group := r.failureGroup(ctx, "invalid input syntax")
	var listed retryOutput
	r.semel(ctx, &listed, []int{0}, "messages", "ls", "--group", group, "--limit", fmt.Sprint(r.Edited))
	var numbers []string
	for _, l := range listed.Rows {
		var transfer int
		proof.During("dead letter of "+l.ID, func() { proof.Must(fmt.Sscanf(l.ID, "transfer-%d", &transfer)) })
		r.Write("edited.json", editedBody(transfer))
		number := fmt.Sprint(l.Number)
		r.semel(ctx, nil, []int{0}, "messages", "edit", number, "--payload", "edited.json", "--yes", "--because", "a comma", "--as", "proof")
		numbers = append(numbers, number)
	}
	r.ledger.Edited = r.replay(ctx, "edited by hand", 0, numbers...)
}

// discard discards the conflicts, because only the producer knows which content is right.
func (r *run) discard(ctx context.Context) {
	r.semel(ctx, nil, []int{0}, "messages", "discard", "--all", "--reason", "conflict", "--because", "the first stands", "--as", "proof")
}

// resend is the fault "new-ids", which the run must detect: resend publishes the dead letters again as new messages, as
// people do without a tool.
func (r *run) resend(ctx context.Context, said retryOutput) {
	feed := proof.Publish(ctx, 1, func(ctx context.Context, p *proof.Publisher) {
		for _, l := range said.Results {
			var transfer int
			if _, err := fmt.Sscanf(l.ID, "transfer-%d", &transfer); err != nil {
				continue
			}
			record := r.record(place{transfer: transfer}, r.random)
			record.Topic, record.Headers[1].Value = topic, []byte("again-"+l.ID)
			p.Send(ctx, 0, record)
		}
	}, r.ProducerOptions(topic)...)
	defer feed.Stop()
	r.Until(ctx, func() bool {
		proof.Check(feed.Err())
		return feed.Over()
	})
}
