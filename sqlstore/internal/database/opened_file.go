package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"

	"github.com/semel-go/semel/store"
)

// openedFile is the file that a SQLite database was opened in. SQLite goes on
// reading and writing a file whose name was removed, and says that it commits:
// what it writes then is gone when the last connection closes.
type openedFile struct {
	path   string
	opened os.FileInfo
}

// openedFileOf asks a connection for its file. It is nil for a database that
// has none, as one in memory.
func openedFileOf(ctx context.Context, conn *sql.Conn, statement string) (*openedFile, error) {
	var path string
	if err := conn.QueryRowContext(ctx, statement).Scan(&path); err != nil {
		return nil, fmt.Errorf("sqlstore: reading the path of the database: %w", err)
	}
	if path == "" {
		return nil, nil
	}
	opened, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("sqlstore: the database has no file: %w: open one that is there", err)
	}
	return &openedFile{path, opened}, nil
}

// Check reports whether the path still names the file. Its error is the store's.
// Another file is never taken while the store lives: whoever uses it keeps
// numbers of scopes and positions that are the first one's.
func (f *openedFile) Check() error {
	if f == nil {
		return nil
	}
	there, err := os.Stat(f.path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		err = fmt.Errorf("the database file %s was moved or deleted: "+
			"move it back with its -wal file, or stop, restore a backup there and start again", f.path)
	case err != nil:
		err = fmt.Errorf("the database file cannot be looked at: %w", err)
	case !os.SameFile(f.opened, there):
		err = fmt.Errorf("the database file %s was replaced by another file: "+
			"move the first one back with its -wal file, or start again to work with the one that is there", f.path)
	default:
		return nil
	}
	return &Error{"the file", store.ClassDown, err}
}
