package assembly

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/cmd/semel/internal/sqlhandler"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/sqlstore"
	_ "modernc.org/sqlite" // registers the driver
)

// sqlite is a SQLite database file.
type sqlite struct {
	db    *sql.DB
	path  string
	store *sqlstore.Store
}

// openSQLite opens the database file. If the file is missing and may be created, openSQLite creates the file
// so that only the owner has access. openSQLite does not read or write the database.
func openSQLite(p *policy.SQLite, o openOptions) (tables, database, error) {
	create := o.create
	if err := checkFile(p.Path, create); err != nil {
		return nil, nil, err
	}
	if create {
		if err := createFile(p.Path); err != nil {
			return nil, nil, err
		}
	}
	place := address(p.Path) + journal(p, create)
	if o.patient {
		place = strings.Replace(place, "busy_timeout(5000)", "busy_timeout(60000)", 1)
	}
	return openAddress(p, place, sqlstore.Options{Prefix: p.Prefix, Cipher: o.cipher, EncryptedSince: o.encryptedSince})
}

// createFile creates an empty file, which SQLite accepts as an empty database. An existing file is not
// changed. Other users of the machine cannot read the new file, because the database will contain payloads.
// SQLite gives its journal files the permissions of the database file.
func createFile(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, os.ErrExist) {
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			return nil // opening and closing the file here would drop this process's locks on the database
		}
		f, err = os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600) // the path is a symbolic link to a missing file
	}
	if err != nil {
		return fmt.Errorf("%w; check that its folder is writable", err)
	}
	return f.Close()
}

func openAddress(p *policy.SQLite, address string, o sqlstore.Options) (tables, database, error) {
	db, err := sql.Open("sqlite", address)
	if err != nil {
		return nil, nil, err
	}
	store, err := sqlstore.SQLite(db, o)
	for tries := 0; err != nil && strings.Contains(err.Error(), "SQLITE_BUSY") && tries < 50; tries++ {
		time.Sleep(100 * time.Millisecond) // another process is switching the file to WAL
		store, err = sqlstore.SQLite(db, o)
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("%s: %w", p.Path, err), db.Close())
	}
	return store, &sqlite{db, p.Path, store}, nil
}

func checkFile(path string, create bool) error {
	switch info, err := os.Stat(path); {
	case err == nil && info.IsDir():
		return fmt.Errorf("%s is a directory; name a database file in it", path)
	case err == nil && !info.Mode().IsRegular():
		return fmt.Errorf("%s is no regular file; name a database file", path)
	case errors.Is(err, os.ErrNotExist) && !create:
		return fmt.Errorf("%s: %w", path, errNoDatabase)
	case errors.Is(err, os.ErrNotExist):
		if _, err := os.Stat(filepath.Dir(path)); err != nil {
			return fmt.Errorf("%w; create the folder first", err)
		}
	case err != nil:
		return err
	}
	return nil
}

// address returns the data source name of a database file, with the settings that every connection needs.
func address(path string) string {
	escape := strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23")
	return "file:" + escape.Replace(filepath.ToSlash(path)) +
		"?_txlock=immediate&_pragma=busy_timeout(5000)&_pragma=foreign_keys(1)"
}

// journal returns the setting for WAL mode, for databases that have Semel's tables or will get them. WAL
// mode stays in the file, so a database that was named by mistake must not be changed.
func journal(p *policy.SQLite, create bool) string {
	const wal = "&_pragma=journal_mode(WAL)"
	if create {
		return wal
	}
	db, err := sql.Open("sqlite", address(p.Path)+"&mode=ro")
	if err != nil {
		return ""
	}
	defer db.Close()
	var n int
	if db.QueryRow("select 1 from sqlite_master where name = ?", cmp.Or(p.Prefix, "semel_")+"scopes").Scan(&n) != nil {
		return ""
	}
	return wal
}

// openNothing opens a store without its database. For SQLite, openNothing uses an empty database in memory,
// because opening the file would create the file.
func openNothing(p *policy.Store) (*Store, error) {
	if p.SQLite == nil {
		return openStore(p, openOptions{connections: 1})
	}
	tables, database, err := openAddress(p.SQLite, ":memory:", sqlstore.Options{Prefix: p.SQLite.Prefix})
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", p.Name, err)
	}
	return &Store{tables: tables, database: database, policy: p}, nil
}

func (d *sqlite) describe() string        { return d.path }
func (d *sqlite) explain(err error) error { return err }
func (d *sqlite) Close() error            { return d.db.Close() }

// Notify does nothing, because consumers with SQLite poll for due rows.
func (d *sqlite) Notify(context.Context, string) error { return nil }

func (d *sqlite) try(ctx context.Context, h *sqlhandler.Handler, _ *policy.Consumer) (int, error) {
	return h.Try(ctx, d.db)
}

func (d *sqlite) consumer(_ context.Context, h handlers, _ *policy.Consumer, config consumer.Config) (Consumer, error) {
	w, err := consumer.NewIntents(d.store)
	if err != nil {
		return nil, err
	}
	return newTxConsumer(d.store, h, runSeparately, w, config)
}

func (d *sqlite) newLeasedConsumer(call caller, config consumer.Config) (Consumer, error) {
	return consumer.NewLeased(d.store, call, config)
}

func (d *sqlite) newEffectsConsumer(ask asker, effects *sqlhandler.Effects, config consumer.Config) (Consumer, error) {
	w, err := consumer.NewIntents(d.store)
	if err != nil {
		return nil, err
	}
	return consumer.NewCalling(d.store, ask, newAnswerHandler(effects.Handle, w), config)
}

// violationCheck compares columns with the columns in SQLite's error, "table.column, table.column". The
// commas in columns are optional.
func (d *sqlite) violationCheck(columns string) func(error) bool {
	columns = strings.Join(strings.Fields(strings.ReplaceAll(columns, ",", " ")), ",")
	return func(err error) bool { return sqlstore.Violates(err, columns) }
}
