package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/storetest"
)

// encryptingOn returns a store with a cipher on a given database.
func encryptingOn(t testing.TB, db *sql.DB, c store.Cipher, since time.Time) *sqlstore.Store {
	t.Helper()
	s, err := sqlstore.SQLite(db, sqlstore.Options{Cipher: c, EncryptedSince: since})
	if err == nil {
		_, err = s.Migrate(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAFileIsEncrypted(t *testing.T) {
	path := newFile(t)
	db := openFile(t, path, pragmas+foreignKeys)
	sqlsuite.Encrypted(t, sqlsuite.Encrypting[*sql.Tx]{
		Open: func(t testing.TB, c store.Cipher, since time.Time) sqlsuite.EncryptingStore[*sql.Tx] {
			return encryptingOn(t, db, c, since)
		},
		Where: func(t testing.TB, forms [][]byte) []string { return filesContaining(t, path, forms) },
		Exec: func(t testing.TB, text string) {
			if _, err := db.ExecContext(t.Context(), strings.ReplaceAll(text, "{prefix}", "semel_")); err != nil {
				t.Fatal(err)
			}
		},
	})
}

// runRefusing runs a consumer of an encrypted store until the consumer is idle. Before the run, a user
// without the encryption key has inserted a row in plain text that seems to be years old.
func runRefusing(t *testing.T, since time.Time) (s *sqlstore.Store, handled []string, rows []store.StoredRow) {
	t.Helper()
	db := openFile(t, newFile(t), pragmas+foreignKeys)
	consumers := func(o sqlstore.Options) (*sqlstore.Store, *consumer.Consumer[*sql.Tx]) {
		s, err := sqlstore.SQLite(db, o)
		if err == nil {
			_, err = s.Migrate(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		c, err := consumer.New(s, func(_ context.Context, _ *sql.Tx, m *semel.Message) error {
			handled = append(handled, m.Identity.ID)
			return nil
		}, consumer.Config{Name: "billing", Identity: identity.CloudEvents(), Strategy: consumer.StrategyInbox, IdleExit: 300 * time.Millisecond,
			Workers: 1, Logger: slog.New(slog.DiscardHandler), Inbox: consumer.InboxPolicy{Poll: 20 * time.Millisecond}})
		if err != nil {
			t.Fatal(err)
		}
		return s, c
	}
	accept := func(c *consumer.Consumer[*sql.Tx], id string) {
		tx, err := db.BeginTx(t.Context(), nil)
		if err == nil {
			_, err = c.Accept(t.Context(), tx, &semel.Message{Body: []byte("1,000,000"), Attributes: semel.Attributes{ID: id, Source: "shop"}})
		}
		if err == nil {
			err = tx.Commit()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	_, forger := consumers(sqlstore.Options{})
	accept(forger, "forged")
	exec(t, db, "update semel_inbox set received_at = 1577836800000, changed_at = 1577836800000")
	s, c := consumers(sqlstore.Options{Cipher: sqlsuite.CipherOf(t, 1), EncryptedSince: since})
	accept(c, "own")
	if err := c.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	rows, err := s.Rows(t.Context(), store.RowFilter{Bodies: true})
	if err != nil || len(rows) != 2 {
		t.Fatalf("%+v, %v", rows, err)
	}
	slices.Sort(handled)
	return s, handled, rows
}

func TestARowInPlainText(t *testing.T) {
	t.Run("P4_is_parked_and_not_handled_once_encryption_is_required", func(t *testing.T) {
		s, handled, rows := runRefusing(t, time.Now().Add(-time.Hour))
		if !slices.Equal(handled, []string{"own"}) {
			t.Errorf("%q were handled", handled)
		}
		if r := rows[0]; r.State != store.StateParked || r.Reason != reasonname.Unreadable ||
			!strings.Contains(r.LastError, "it is in plain text, and the store requires encryption since") || string(r.Message.Body) != "1,000,000" {
			t.Errorf("it is %+v with %q", r, r.Message.Body)
		}
		if err := errors.Join(s.Discard(t.Context(), store.Act{Verb: "discard", Who: "ana", Why: "forged"}, rows[0].Seen())...); err != nil {
			t.Fatal(err)
		}
		closed, err := s.Rows(t.Context(), store.RowFilter{States: []store.RowState{store.StateDiscarded}})
		if err != nil || len(closed) != 1 || closed[0].Unreadable != "" || rows[0].Unreadable == "" {
			t.Errorf("discarded, it is %+v, %v; before, it was unreadable because %q", closed, err, rows[0].Unreadable)
		}
	})
	for name, since := range map[string]time.Time{"before_that_time": time.Now().Add(time.Hour), "where_no_time_is_given": {}} {
		t.Run("P4_is_handled_"+name, func(t *testing.T) {
			if _, handled, rows := runRefusing(t, since); !slices.Equal(handled, []string{"forged", "own"}) {
				t.Errorf("%q were handled: %+v", handled, rows)
			}
		})
	}
}

// The suite runs on encrypted data, with keyed hashes as fingerprints.
func TestSQLiteKeepsTheLawsEncrypted(t *testing.T) {
	if sqlsuite.OneWay() { // in this mode, the cases run only without encryption
		return
	}
	storetest.Run(t, storetest.Harness[*sql.Tx]{
		Open: func(t testing.TB) storetest.Instance[*sql.Tx] {
			db := openMigrated(t, pragmas+foreignKeys)
			t.Cleanup(func() { sound(t, db) })
			return instanceOn(t, encryptingOn(t, db, sqlsuite.CipherOf(t, 1), time.Now().Add(-time.Hour)), db)
		},
		Can: storetest.Abilities{Inbox: true, Leases: true, Calls: true, Steps: true, Intents: true, Emission: true, Results: true, Audit: true, Erasure: true, Streams: true, Lines: true, Retention: true, MarkIn: true, Positions: true, OneWriter: true, Controls: true, Derivations: true, Offsets: true, Replays: true, Edits: true, Generations: true},
	})
}

func TestLeasedKeysAreEncrypted(t *testing.T) {
	storetest.Keys(t, storetest.KeyHarness{Open: func(t testing.TB) storetest.KeyInstance {
		return storetest.KeyInstance{Store: encryptingOn(t, openFile(t, newFile(t), pragmas+foreignKeys), sqlsuite.CipherOf(t, 1), time.Now().Add(-time.Hour)), Pass: storetest.RealTime}
	}})
}
