package sqlite

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/semel-go/semel/contract"
	"github.com/semel-go/semel/itest/sqlsuite"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/storetest"
)

// encryptingOn is a store with a cipher.
func encryptingOn(t testing.TB, db *sql.DB, c contract.Cipher) *sqlstore.Store {
	t.Helper()
	s, err := sqlstore.SQLite(db, sqlstore.Options{Cipher: c})
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
		Open:  func(t testing.TB, c contract.Cipher) sqlsuite.EncryptingStore[*sql.Tx] { return encryptingOn(t, db, c) },
		Where: func(t testing.TB, forms [][]byte) []string { return left(t, path, forms) },
		Exec: func(t testing.TB, text string) {
			if _, err := db.ExecContext(t.Context(), strings.ReplaceAll(text, "{prefix}", "semel_")); err != nil {
				t.Fatal(err)
			}
		},
	})
}

// Whatever a store does, it does with what is encrypted.
func TestSQLiteKeepsTheLawsEncrypted(t *testing.T) {
	if raced { // there they run where nothing is encrypted
		return
	}
	storetest.Run(t, storetest.Harness[*sql.Tx]{
		Open: func(t testing.TB) storetest.Instance[*sql.Tx] {
			db := openFile(t, newFile(t), pragmas+foreignKeys)
			t.Cleanup(func() { sound(t, db) })
			return instanceOn(t, encryptingOn(t, db, sqlsuite.CipherOf(t, 1)), db)
		},
		Can: storetest.Abilities{Inbox: true, Leases: true, Calls: true, Steps: true, Intents: true, Emission: true, Results: true, Audit: true, Erasure: true, Streams: true, Lines: true, Retention: true, MarkIn: true, Positions: true, OneWriter: true, Controls: true, Derivations: true, Offsets: true, Look: true, Replays: true, Edits: true, Generations: true},
	})
}

func TestLeasedKeysAreEncrypted(t *testing.T) {
	storetest.Keys(t, storetest.KeyHarness{Open: func(t testing.TB) storetest.KeyInstance {
		return storetest.KeyInstance{Store: encryptingOn(t, openFile(t, newFile(t), pragmas+foreignKeys), sqlsuite.CipherOf(t, 1)), Pass: storetest.RealTime}
	}})
}
