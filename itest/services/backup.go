package services

import (
	osexec "os/exec"
	"path/filepath"
	"testing"
)

// Dump writes a backup of a database to a file with pg_dump. The database may be in use.
func Dump(t testing.TB, dsn, file string) {
	t.Helper()
	program(t, "pg_dump", "--format=custom", "--file", file, "--dbname", dsn)
}

// DumpText returns a backup of a database as SQL.
func DumpText(t testing.TB, dsn string) []byte {
	t.Helper()
	out, err := osexec.CommandContext(t.Context(), filepath.Join(bin(), "pg_dump"), "--format=plain", "--dbname", dsn).Output()
	if err != nil {
		t.Fatalf("pg_dump: %v", err)
	}
	return out
}

// Restored restores a backup into a new database with pg_restore and returns its connection
// string. The database is dropped when the test ends.
func Restored(t testing.TB, file string) string {
	t.Helper()
	dsn := Postgres(t)
	program(t, "pg_restore", "--exit-on-error", "--dbname", dsn, file)
	return dsn
}

// Swap replaces a database that is in use by another one, and closes the connections to the replaced database. For
// clients, the swap looks like a failover to a server that has lost commits. The two databases exchange their names.
func Swap(t testing.TB, live, restored string) {
	t.Helper()
	server := withDatabase(t, live, "postgres")
	one, two := databaseOf(t, live), databaseOf(t, restored)
	Exec(t, server, `alter database "`+one+`" with allow_connections false`,
		`select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = '`+one+`'`,
		`alter database "`+one+`" rename to "`+one+`-lost"`, `alter database "`+two+`" rename to "`+one+`"`,
		`alter database "`+one+`-lost" rename to "`+two+`"`, `alter database "`+two+`" with allow_connections true`)
}

func program(t testing.TB, name string, args ...string) {
	t.Helper()
	if out, err := osexec.CommandContext(t.Context(), filepath.Join(bin(), name), args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
}
