package pgxstore

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/pgxstore"
	"github.com/semel-go/semel/store"
)

func TestTablesAreEncrypted(t *testing.T) {
	pool := openPool(t, services.Postgres(t), func(*pgxpool.Config) {})
	opened := func(t testing.TB, in *fixture, c store.Cipher, since time.Time) *pgxstore.Store {
		t.Helper()
		s, err := pgxstore.New(pool, pgxstore.Options{Schema: in.schema, Cipher: c, EncryptedSince: since})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	where := func(in *fixture) func(testing.TB, [][]byte) []string {
		return func(t testing.TB, forms [][]byte) []string {
			t.Helper()
			return sqlsuite.TablesWith(t, in.schema, forms, func(query string, args ...any) []string {
				rows, err := pool.Query(t.Context(), query, args...)
				if err != nil {
					t.Fatal(err)
				}
				texts, err := pgx.CollectRows(rows, pgx.RowTo[string])
				if err != nil {
					t.Fatal(err)
				}
				return texts
			})
		}
	}
	exec := func(in *fixture) func(testing.TB, string) {
		return func(t testing.TB, text string) {
			t.Helper()
			if _, err := pool.Exec(t.Context(), strings.ReplaceAll(text, "{prefix}", `"`+in.schema+`".semel_`)); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Run("handle", func(t *testing.T) {
		in := newFixture(t, pool)
		sqlsuite.Encrypted(t, sqlsuite.Encrypting[pgx.Tx]{Where: where(in), Exec: exec(in), Open: func(t testing.TB, c store.Cipher, since time.Time) sqlsuite.EncryptingStore[pgx.Tx] {
			return opened(t, in, c, since)
		}})
	})
	t.Run("queue", func(t *testing.T) {
		in := newFixture(t, pool)
		sqlsuite.Encrypted(t, sqlsuite.Encrypting[*pgxstore.Queue]{Where: where(in), Exec: exec(in), Open: func(t testing.TB, c store.Cipher, since time.Time) sqlsuite.EncryptingStore[*pgxstore.Queue] {
			return opened(t, in, c, since).Queued()
		}})
	})
}
