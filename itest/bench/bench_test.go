package bench

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/itest/must"
	"github.com/semel-go/semel/itest/services"
)

// readEffects returns the rows that a run left in the database, as text by table.
func readEffects(ctx context.Context, d *database) (map[string]string, error) {
	found := map[string]string{}
	for table, query := range map[string]string{
		"payments": "select account, sum(amount)::bigint || ' in ' || count(*) from payments group by account order by account",
		"accounts": "select id, balance::text from accounts where balance <> 0 order by id",
		"counters": "select id, balance::text from counters where balance <> 0 order by id",
	} {
		rows, err := d.pool.Query(ctx, query)
		if err != nil {
			return nil, err
		}
		var account int64
		var text string
		if _, err := pgx.ForEachRow(rows, []any{&account, &text}, func() error {
			found[table] += fmt.Sprintf("%d: %s\n", account, text)
			return nil
		}); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// expectedEffects computes the expected effects without a database: each message takes effect once.
func expectedEffects(t *testing.T, c Conditions, messages []*semel.Message) string {
	t.Helper()
	sums, counts := map[int64]int64{}, map[int64]int{}
	for _, m := range messages {
		p := must.Get(semel.JSON[payment](m))(t)
		sums[p.Account] += p.Amount
		counts[p.Account]++
	}
	var text strings.Builder
	for _, account := range slices.Sorted(maps.Keys(sums)) {
		fmt.Fprintf(&text, "%d: %d", account, sums[account])
		if c.Effect == Insert {
			fmt.Fprintf(&text, " in %d", counts[account])
		}
		text.WriteString("\n")
	}
	return text.String()
}

// wantEffects applies n deliveries with one implementation and checks the effects. If some of the n deliveries are
// duplicates, wantEffects first applies their messages once.
func wantEffects(t *testing.T, d *database, who Contestant, c Conditions, n int) {
	t.Helper()
	must.OK(t, d.reset(t.Context()))
	all := c.makeDeliveries(n)
	for _, messages := range [][]*semel.Message{all.before, all.timed} {
		must.Get(d.apply(t.Context(), who, c, messages, 0))(t)
	}
	found := must.Get(readEffects(t.Context(), d))(t)
	table := map[Effect]string{Insert: "payments", Accounts: "accounts", Counters: "counters"}[c.Effect]
	if len(found) != 1 || found[table] != expectedEffects(t, c, all.timed) {
		t.Errorf("%s has other effects than its messages once each", who)
	}
}

func TestEveryContestantAppliesEachMessageOnce(t *testing.T) {
	w := must.Get(NewWorld(t.Context(), services.Postgres(t)))(t)
	t.Cleanup(func() {
		if err := w.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	d := must.Get(w.database(t.Context(), 0))(t)
	long := must.Get(SizedBody("1KiB"))(t)
	for _, form := range Forms() {
		for n, effect := range []Effect{Insert, Accounts, Counters} {
			c := Conditions{Form: form, Effect: effect, Workers: 1, Duplicates: 50, IDs: []IDs{Text, UUIDv4, UUIDv7}[n], Body: []Body{{}, long, {}}[n]}
			t.Run(c.String(), func(t *testing.T) {
				wantEffects(t, d, Semel, c, 600)
				wantEffects(t, d, Keys, c, 600)
				wantEffects(t, d, Hand, c, 600)
				wantEffects(t, d, Textbook, c, 30)
			})
		}
	}
}

// TestABatchWrittenByHandIsShort counts the lines of code of each kind of hand-written handler. Imports and the lines
// between functions do not count.
func TestABatchWrittenByHandIsShort(t *testing.T) {
	for form, files := range map[Form][]string{
		Handle:    {"hand.go", "hand_begin.go", "hand_handle.go"},
		Queue:     {"hand.go", "hand_begin.go", "hand_queue.go"},
		HandleAll: {"hand.go", "hand_begin.go", "hand_all.go"},
		HandleSQL: {"hand.go", "hand_sql.go"},
	} {
		lines := 0
		for _, file := range files {
			lines += countDeclarations(t, file)
		}
		if lines > 80 {
			t.Errorf("%s has %d lines, of at most 80", form, lines)
		}
	}
}

func countDeclarations(t *testing.T, file string) (lines int) {
	t.Helper()
	set := token.NewFileSet()
	f := must.Get(parser.ParseFile(set, file, nil, 0))(t)
	for _, d := range f.Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.IMPORT {
			continue
		}
		lines += set.Position(d.End()).Line - set.Position(d.Pos()).Line + 1
	}
	return lines
}
