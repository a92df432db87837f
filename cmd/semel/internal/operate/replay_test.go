package operate

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
	_ "modernc.org/sqlite"
)

// replayOrder tells a child process to replay all dead letters of a database until the child dies.
type replayOrder struct {
	Path string
	// Death is the crash point at which the child kills itself. The child process first passes the crash point
	// After times.
	Death ReplayPoint
	After int
	Lease time.Duration
	// Body is the new body of row 1; if Body is not empty, the child edits the row and replays nothing.
	Body string
}

// replayOrderVariable is the environment variable that passes the replayOrder to the child process.
const replayOrderVariable = "SEMEL_REPLAY_ORDER"

func TestMain(m *testing.M) {
	text, child := os.LookupEnv(replayOrderVariable)
	if !child {
		os.Exit(m.Run())
	}
	var o replayOrder
	err := json.Unmarshal([]byte(text), &o)
	if err == nil {
		err = o.execute()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// execute executes the replayOrder in this process.
func (o replayOrder) execute() error {
	s, err := openLetters(o.Path)
	if err != nil {
		return err
	}
	defer s.db.Close()
	if o.Body != "" {
		return s.edit(context.Background(), o)
	}
	_, err = s.replayAll(context.Background(), o)
	return err
}

// edit edits row 1, unless the row already has the new body.
func (s *letterStore) edit(ctx context.Context, o replayOrder) error {
	r, err := s.box.Editable(ctx, 1)
	if err != nil || string(r.Message.Body) == o.Body {
		return err
	}
	return s.box.Edit(ctx, r, Editing{Body: []byte(o.Body), Who: "ann", Why: "wrong", At: o.killFunc()})
}

// start starts a child process with this replayOrder.
func (o replayOrder) start(t *testing.T) *exec.Cmd {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), os.Args[0])
	c.Env, c.Stderr = append(os.Environ(), replayOrderVariable+"="+string(text)), os.Stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	return c
}

// letterStore is a test database with a consumer. The consumer's messages fail until the cause is fixed.
type letterStore struct {
	path  string
	db    *sql.DB
	store *sqlstore.Store
	box   Box
	// worker processes due rows instead of work; nil for work.
	worker func(ctx context.Context, numbers []int64) error
}

func openLetters(path string) (*letterStore, error) {
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)&_pragma=foreign_keys(1)&_txlock=immediate&_pragma=journal_mode(wal)")
	if err != nil {
		return nil, err
	}
	store, err := sqlstore.SQLite(db, sqlstore.Options{})
	if err != nil {
		return nil, err
	}
	box := Box{Store: "shop", Inbox: store, Requeuer: store, Editor: store, Markers: store, Lines: store}
	return &letterStore{path: path, db: db, store: store, box: box}, nil
}

func newLetters(t *testing.T) *letterStore {
	t.Helper()
	s, err := openLetters(filepath.Join(t.TempDir(), "shop.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.db.Close() })
	if _, err := s.store.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"create table effects (number integer primary key, id text, key text, body text)", "create table mended (yes integer)"} {
		if _, err := s.db.Exec(text); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// consumer returns a consumer that uses the test database.
func (s *letterStore) consumer() (*consumer.Consumer[*sql.Tx], error) { return s.consumerOf(nil) }

func (s *letterStore) consumerOf(src source.Source) (*consumer.Consumer[*sql.Tx], error) {
	outputs, err := consumer.NewIntents(s.store)
	if err != nil {
		return nil, err
	}
	return consumer.New(s.store, func(ctx context.Context, tx *sql.Tx, m *semel.Message) error {
		mended := 0
		if err := tx.QueryRowContext(ctx, "select count(*) from mended").Scan(&mended); err != nil {
			return err
		}
		if mended == 0 {
			return semel.Permanent(errors.New("no account " + string(m.Key)))
		}
		if m.Type() == "invoiced" {
			if err := outputs.Write(ctx, tx, m, semel.Intent{To: "mailer", Purpose: "mail", Type: "mail", Body: []byte("{}")}); err != nil {
				return err
			}
		}
		_, err := tx.ExecContext(ctx, "insert into effects (id, key, body) values (?, ?, ?)", m.ID(), string(m.Key), string(m.Body))
		return err
	}, consumer.Config{Name: "billing", Source: src, Identity: identity.CloudEvents(), OnParked: consumer.OnParkedSkip, Logger: slog.New(slog.DiscardHandler)})
}

func message(id, key, body string) *semel.Message {
	m := &semel.Message{Key: []byte(key), Body: []byte(body)}
	m.Attributes.ID, m.Attributes.Source, m.Attributes.Type = id, "shop", "payment"
	return m
}

// deliver delivers messages to the consumer, one after the other.
func (s *letterStore) deliver(t *testing.T, all ...*semel.Message) {
	t.Helper()
	c, err := s.consumer()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		if _, err := c.Process(t.Context(), m); err != nil && !errors.Is(err, semel.ErrConflict) {
			t.Fatal(err)
		}
	}
}

func (s *letterStore) repairHandler(t *testing.T) {
	t.Helper()
	if _, err := s.db.Exec("insert into mended values (1)"); err != nil {
		t.Fatal(err)
	}
}

// predict returns the predicted fates of all dead letters.
func (s *letterStore) predict(ctx context.Context) ([]Letter, error) {
	numbers, err := s.box.Letters(ctx, store.RowFilter{States: []store.RowState{store.StateParked, store.StateDeadLettered}}, "")
	if err != nil {
		return nil, err
	}
	return s.box.Preview(ctx, admin.Retry, numbers, nil)
}

// replayAll calls TakeTurn, and then replays all dead letters in this process.
func (s *letterStore) replayAll(ctx context.Context, o replayOrder) (letters []Letter, err error) {
	ctx, turn, err := TakeTurn(ctx, s.store, []string{"billing"}, o.Lease, func(string) {})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, turn.End()) }()
	if letters, err = s.predict(ctx); err != nil {
		return nil, err
	}
	work := s.work
	if s.worker != nil {
		work = func(ctx context.Context, _ string, numbers []int64) error { return s.worker(ctx, numbers) }
	}
	return s.box.Replay(ctx, letters, Replay{Who: "ann", Why: "mended", Work: work, At: o.killFunc()})
}

func (s *letterStore) work(ctx context.Context, _ string, numbers []int64) error {
	c, err := s.consumer()
	if err != nil {
		return err
	}
	return c.Work(ctx, numbers...)
}

func (s *letterStore) effects(t *testing.T, where string) (ids []string) {
	t.Helper()
	rows, err := s.db.Query("select id from effects where " + where + " order by number")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	return ids
}

// wantOnce checks that each of n messages has exactly one effect and one recorded retry.
func (s *letterStore) wantOnce(t *testing.T, n int) {
	t.Helper()
	ids := s.effects(t, "true")
	if distinct := slices.Compact(slices.Sorted(slices.Values(ids))); len(ids) != n || len(distinct) != n {
		t.Errorf("%d effects of %d messages, want each of %d once", len(ids), len(distinct), n)
	}
	var acts, rows int
	if err := s.db.QueryRow("select count(*), count(distinct row) from semel_acts where verb = 'retry'").Scan(&acts, &rows); err != nil || acts != n || rows != n {
		t.Errorf("%d acts of %d rows, want each of %d once: %v", acts, rows, n, err)
	}
}

// letters delivers and parks n messages that share the given number of keys.
func (s *letterStore) letters(t *testing.T, n, keys int) {
	t.Helper()
	for i := range n {
		s.deliver(t, message(fmt.Sprint("m", i), fmt.Sprint("k", i%keys), fmt.Sprintf(`{"n":%d}`, i)))
	}
}

// tally returns, as text, the number of dead letters by fate.
func tally(letters []Letter, of func(Letter) Fate) string {
	counts := map[Fate]int{}
	for _, l := range letters {
		counts[of(l)]++
	}
	var parts []string
	for _, f := range Fates() {
		if counts[f] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[f], f))
		}
	}
	return strings.Join(parts, ", ")
}

func predictedFate(l Letter) Fate { return l.Prediction }
func actualFate(l Letter) Fate    { return l.Happened }

const lease = 30 * time.Second

func TestAReplayMatchesItsPrediction(t *testing.T) {
	t.Run("trap_19_replayed_twice_it_has_one_effect_under_its_identity", func(t *testing.T) {
		s := newLetters(t)
		s.letters(t, 5, 2)
		s.repairHandler(t)
		first, err := s.replayAll(t.Context(), replayOrder{Lease: lease})
		if err != nil || tally(first, predictedFate) != "5 applied" || tally(first, actualFate) != "5 applied" {
			t.Errorf("first: %s, %s, %v", tally(first, predictedFate), tally(first, actualFate), err)
		}
		again, err := s.box.Preview(t.Context(), admin.Retry, []int64{1, 2, 3, 4, 5}, nil)
		if err != nil || tally(again, predictedFate) != "5 skipped as applied" {
			t.Errorf("again: %s, %v", tally(again, predictedFate), err)
		}
		s.letters(t, 5, 2) // deliver copies of the messages
		s.wantOnce(t, 5)
	})
	t.Run("G4_of_one_identity_the_first_content_is_applied_and_the_other_is_in_conflict", func(t *testing.T) {
		s := newLetters(t)
		s.deliver(t, message("m0", "k", "first"), message("m0", "k", "other"), message("m1", "k", "x"))
		s.repairHandler(t)
		done, err := s.replayAll(t.Context(), replayOrder{Lease: lease})
		if want := "2 applied, 1 conflict"; err != nil || tally(done, predictedFate) != want || tally(done, actualFate) != want {
			t.Errorf("%s; %s; %v", tally(done, predictedFate), tally(done, actualFate), err)
		}
		if ids := s.effects(t, "body in ('first', 'x')"); !slices.Equal(ids, []string{"m0", "m1"}) {
			t.Errorf("the effects are of %q", ids)
		}
	})
	t.Run("law_8_of_one_key_the_oldest_is_replayed_first_and_the_next_behind_it", func(t *testing.T) {
		s := newLetters(t)
		s.letters(t, 40, 4)
		s.repairHandler(t)
		s.worker = func(ctx context.Context, numbers []int64) error { // the worker processes rows in reverse order
			for _, n := range slices.Backward(numbers) {
				if err := s.work(ctx, "", []int64{n}); err != nil {
					return err
				}
			}
			return nil
		}
		if done, err := s.replayAll(t.Context(), replayOrder{Lease: lease}); err != nil || tally(done, actualFate) != "40 applied" {
			t.Fatal(tally(done, actualFate), err)
		}
		for k := range 4 {
			var want []string
			for i := k; i < 40; i += 4 {
				want = append(want, fmt.Sprint("m", i))
			}
			if ids := s.effects(t, fmt.Sprintf("key = 'k%d'", k)); !slices.Equal(ids, want) {
				t.Errorf("of k%d: %q", k, ids)
			}
		}
	})
	t.Run("law_8_what_waits_for_long_is_overtaken_by_none_of_its_key", func(t *testing.T) {
		s := newLetters(t)
		s.letters(t, 3, 2) // the third message has the same key as the first message
		s.repairHandler(t)
		s.worker = func(ctx context.Context, numbers []int64) error {
			const later = "update semel_inbox set due_at = due_at + 3600000 where number = 1 and due_at <= changed_at + 1000"
			if _, err := s.db.ExecContext(ctx, later); err != nil {
				return err
			}
			if others := slices.DeleteFunc(slices.Clone(numbers), func(n int64) bool { return n == 1 }); len(others) > 0 {
				return s.work(ctx, "", others) // an empty list of numbers would mean all rows
			}
			return nil
		}
		done, err := s.replayAll(t.Context(), replayOrder{Lease: lease})
		if err != nil || tally(done, actualFate) != "1 applied, 2 waits" || !strings.Contains(done[2].Why, "row 1 of the same key") {
			t.Errorf("%s, %+v, %v", tally(done, actualFate), done, err)
		}
		if ids := s.effects(t, "true"); !slices.Equal(ids, []string{"m1"}) {
			t.Errorf("the effects are of %q", ids)
		}
	})
	t.Run("G4_what_fails_again_is_told_and_stays_where_it_was", func(t *testing.T) {
		s := newLetters(t)
		s.letters(t, 3, 1)
		done, err := s.replayAll(t.Context(), replayOrder{Lease: lease})
		if err != nil || tally(done, actualFate) != "3 failed again" || !done[0].Changed() || done[0].OK() {
			t.Errorf("%s, %v", tally(done, actualFate), err)
		}
		if left, err := s.predict(t.Context()); err != nil || len(left) != 3 {
			t.Errorf("%d letters are left: %v", len(left), err)
		}
	})
	t.Run("G4_no_more_become_due_in_a_second_than_were_asked_for", func(t *testing.T) {
		s := newLetters(t)
		s.letters(t, 6, 6)
		s.repairHandler(t)
		letters, err := s.predict(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if _, err := s.box.Replay(t.Context(), letters, Replay{Who: "ann", Why: "x", Work: s.work, Rate: 10}); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < 300*time.Millisecond {
			t.Errorf("6 letters at 10/s took %v", took)
		}
		s.wantOnce(t, 6)
	})
}
