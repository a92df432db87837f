//go:build unix

package replay

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/proof/ledger"
	"github.com/semel-go/semel/itest/services/topics"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Ledger counts messages, effects, dead letters and replayed dead letters in one run of the fault test. The numbers of
// lost, doubled and stuck messages come only from the database and the broker.
type Ledger struct {
	// Messages is the number of published messages, each with its own identity. Records is the number of all
	// records.
	Messages int `json:"messages"`
	Records  int `json:"records"`
	// Failed is the number of messages that failed permanently. Letters is the number of records in the
	// dead-letter topic. Contradicted is the number of messages whose identity was used with other content.
	Failed       int `json:"failed_for_good"`
	Letters      int `json:"records_in_the_topic_of_dead_letters"`
	Contradicted int `json:"conflicts"`
	proof.Tally
	proof.Offsets
	// CommandKills is the number of kills of replay and rebuild commands.
	CommandKills int `json:"kills_of_commands"`
	// ByFilter and ByGroup are the numbers of dead letters that took effect when they were replayed. Edited is the
	// number of dead letters that were edited and then took effect.
	ByFilter int `json:"replayed_by_filter"`
	ByGroup  int `json:"replayed_by_group"`
	Edited   int `json:"edited"`
	// FromTopic is the number of dead letters that the store had lost and that took effect when they were
	// replayed from the dead-letter topic.
	FromTopic int `json:"replayed_from_the_topic_of_dead_letters"`
	// Recovered is the number of messages that the database had lost and that a replay of the topic
	// restored.
	Recovered int `json:"recovered"`
	// Twice is the number of dead letters that were retried more than once: by two operators, or by one
	// operator who ran a killed command again.
	Twice int `json:"letters_made_due_twice"`
	// Forecasts is the number of previews that were compared with the result. Mistaken is the number of
	// previews that were wrong.
	Forecasts int      `json:"predictions"`
	Mistaken  []string `json:"predictions_that_did_not_come_true,omitempty"`
	// AtSwitch is the number of accounts whose balance differed between the old and the new projection when the new one
	// became active. Unlike is the number of accounts whose final balance differs from the balance that the fault test
	// computes itself. Unbuilt is the number of messages that only the old projection has.
	AtSwitch int `json:"balances_unlike_at_the_switch"`
	Unlike   int `json:"balances_unlike_the_reference"`
	Unbuilt  int `json:"in_the_old_projection_alone"`
	// Afterwards is the number of records that were published after the switch.
	Afterwards int    `json:"published_after_the_switch"`
	Planted    string `json:"planted,omitempty"`
	least      Proof
}

// forecast compares a preview with the result, and counts the comparison.
func (r *run) forecast(of string, said, happened any) {
	r.ledger.Forecasts++
	if a, b := fmt.Sprint(said), fmt.Sprint(happened); a != b {
		r.ledger.Mistaken = append(r.ledger.Mistaken, fmt.Sprintf("%s: predicted %s, happened %s", of, a, b))
	}
	r.Say("%s: predicted %v, happened %v", of, said, happened)
}

// audit computes the ledger from the broker and the database.
func (r *run) audit(ctx context.Context) {
	l := r.ledger
	l.Offsets = r.Watch.Audit(ctx)
	failed, contradicted := map[string]bool{}, map[string]bool{}
	r.Kafka.Each(dead, func(record *kgo.Record) {
		l.Letters++
		if topics.Header(record, "semel-reason") == "conflict" {
			contradicted[topics.Header(record, "ce_id")] = true
		} else {
			failed[topics.Header(record, "ce_id")] = true
		}
	})
	l.Failed, l.Contradicted = len(failed), len(contradicted)
	effects := r.readGenerations(ctx)
	stuck := r.Count(ctx, `select count(*) from semel_inbox where state not in ('COMPLETED', 'DISCARDED')`)
	l.Balance = ledger.Weigh(effects[r.active], func(yield func(string) bool) {
		for i := range r.sent {
			if !yield(id(i)) {
				return
			}
		}
	}, stuck)
	l.Guards = r.Count(ctx, `select count(*) from semel_guard`)
	l.Twice = r.Count(ctx, `select count(*) from (select from semel_acts where verb = 'retry' group by "row" having count(*) > 1) as twice`)
	live := queryLines(ctx, r.Activity.DB, projection, 0)
	if r.active == 0 {
		l.Unlike = countDifferences(live, reference(r.sent))
		return
	}
	// The projections are compared byte by byte.
	l.AtSwitch = countDifferences(live, queryLines(ctx, r.Activity.DB, folded))
	l.Unlike = countDifferences(queryLines(ctx, r.Activity.DB, projection, 1), reference(r.sent))
	for delivery, n := range effects[0] {
		l.Doubled += n - 1
		if effects[1][delivery] == 0 {
			l.Unbuilt++
		}
	}
}

// The query for the balances of a generation, one text line for each account.
const projection = `select format('%s %s %s %s %s', account, cents, transfers, digest, last)
from balances where generation = $1 order by account collate "C"`

func queryLines(ctx context.Context, db ledger.Reader, query string, args ...any) (all []string) {
	line := ""
	proof.Check(ledger.Each(ctx, db, query, args, []any{&line}, func() { all = append(all, line) }))
	return all
}

// reference computes the expected balances after the first transfers, as lines in the format of projection.
func reference(transfers int) (lines []string) {
	type balance struct {
		cents, transfers, digest int64
		last                     string
	}
	all := map[string]balance{}
	for i := range transfers {
		b := all[account(i)]
		all[account(i)] = balance{b.cents + amountOf(i), b.transfers + 1, b.digest + amountOf(i)*int64(i), id(i)}
	}
	for name, b := range all {
		lines = append(lines, fmt.Sprintf("%s %d %d %d %s", name, b.cents, b.transfers, b.digest, b.last))
	}
	slices.Sort(lines)
	return lines
}

// countDifferences counts the lines that differ between two lists. A changed line counts once.
func countDifferences(a, b []string) int { return max(countAbsent(a, b), countAbsent(b, a)) }

// countAbsent counts the lines of a that are not in b.
func countAbsent(a, b []string) (n int) {
	there := map[string]bool{}
	for _, line := range b {
		there[line] = true
	}
	for _, line := range a {
		if !there[line] {
			n++
		}
	}
	return n
}

// Wrong implements proof.Ledger.
func (l Ledger) Wrong() error {
	return cmp.Or(l.Tally.Wrong(), l.Offsets.Wrong(),
		ledger.None(l.Twice, "dead letters were replayed twice"),
		ledger.None(len(l.Mistaken), fmt.Sprintf("previews were wrong: %q", l.Mistaken)),
		ledger.None(l.AtSwitch, "balances differed at the switch"),
		ledger.None(l.Unbuilt, "messages were only in the old projection at the switch"),
		ledger.None(l.Unlike, "balances differ from the sum of the transfers"))
}

// Fault implements proof.Ledger.
func (l Ledger) Fault() error {
	least := l.least
	return cmp.Or(
		l.Wrong(),
		ledger.AtLeast(least.Messages/51, l.Failed, "messages that failed for good"),
		ledger.AtLeast(l.Failed, l.Letters, "records in the topic of dead letters"),
		ledger.AtLeast(least.Messages/250, l.Contradicted, "conflicts"),
		ledger.AtLeast(2*least.Kills, l.Kills, "kills of members"),
		ledger.AtLeast(least.Kills, l.Open, "kills in an open transaction"),
		ledger.AtLeast(least.Shots.total(), l.CommandKills, "kills of commands"),
		ledger.AtLeast(least.Messages/400, l.ByFilter, "dead letters replayed by filter"),
		ledger.AtLeast(least.Messages/400, l.ByGroup, "dead letters replayed by group"),
		ledger.AtLeast(least.Edited, l.Edited, "dead letters edited"),
		ledger.AtLeast(least.Messages*untilRepair/100/900, l.FromTopic, "letters replayed from their topic"),
		ledger.AtLeast(least.Messages*untilRebuild/100/450, l.Recovered, "messages recovered"),
		ledger.AtLeast(20, l.Afterwards, "records published after the switch"),
		ledger.AtLeast(8, l.Forecasts, "predictions"),
		ledger.AtLeast(int(l.Seconds), l.Samples, "samples of the group's offsets"),
	)
}
