package postgres

import (
	"context"
	"database/sql"
	"strings"
	"testing"

	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/sqlstore"
)

func TestVersionsTakeEffectInTheirOrder(t *testing.T) {
	db := newDatabase(t)
	s := newFixture(t, db, sqlstore.Options{})
	s.execAll(t, []string{"create table in.history (n bigint generated always as identity, stream text not null, version bigint not null)"})
	followed := sqlsuite.Followed[*sql.Tx]{
		Store: s.store,
		Append: func(ctx context.Context, tx *sql.Tx, stream string, version int) error {
			_, err := tx.ExecContext(ctx, s.inSchema("insert into in.history (stream, version) values ($1, $2)"), stream, version)
			return err
		},
		Versions: func(t testing.TB, stream string) []int {
			return sqlsuite.Column(t, db, s.inSchema("select version from in.history where stream = $1 order by n"), stream)
		},
	}
	sqlsuite.Versions(t, followed)
	sqlsuite.Drawn(t, followed)
}

// SQL that creates many rows of one stream that wait for earlier versions.
const followers = `insert into in.semel_inbox (revision, scope, id, conflict, version, surrogate, state, reason, topic, partition, "offset",
  broker_id, type, schema, envelope, payload, received_at, changed_at, due_at, started, finished, repeated, first_error, last_error, stream, stream_version)
select 1, (select number from in.semel_scopes), ('\x00'::bytea || n::text::bytea), '', 0, false, 'BLOCKED', 'gap', '', 0, n, '', '', '', '{}', ''::bytea, now(), now(),
  now() + interval '1 hour', 0, 0, 0, '', '', 'a', n
from generate_series(3, 100000) n`

func TestAStreamWithManyFollowers(t *testing.T) {
	db := newDatabase(t)
	t.Run("B9_is_not_read_whole_when_one_is_freed", func(t *testing.T) {
		s := newFixture(t, db, sqlstore.Options{})
		if _, err := s.store.Scope(t.Context(), "history", "", 0); err != nil {
			t.Fatal(err)
		}
		s.execAll(t, []string{followers, "insert into in.semel_markers (scope, id, outcome, version, at) select scope, id, 2, 0, now() from in.semel_inbox",
			"insert into in.semel_streams (scope, name, last, version, changed_at) select scope, 'a', 1, 0, now() from in.semel_inbox limit 1", "analyze in.semel_inbox", "analyze in.semel_markers"})
		text := plan(t, db, "explain (analyze, buffers) "+sqlstore.Statements(s.store, sqlform.Revision12{}).MoveStreams, "{1}", `{"a"}`, "{2}", "{0}", "{NULL}", "{1,1}", "{2,3}")
		if strings.Contains(text, "Seq Scan") || !strings.Contains(text, "semel_inbox_blocked") {
			t.Errorf("the plan:\n%s", text)
		}
	})
}
