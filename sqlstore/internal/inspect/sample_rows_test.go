package inspect

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/semel-go/semel/sqlstore/internal/database"
	"github.com/semel-go/semel/sqlstore/internal/mute"
	"github.com/semel-go/semel/store"
)

// waiting is a driver for a database with waiting rows of the consumers billing and audit. The driver counts rows up to
// the requested limit.
type waiting struct {
	mute.Conn
	billing, audit int64
	asked          int64 // the requested limit
}

func (w *waiting) Connect(context.Context) (driver.Conn, error) { return w, nil }

// ExecContext implements driver.ExecerContext.
func (*waiting) ExecContext(context.Context, string, []driver.NamedValue) (driver.Result, error) {
	return driver.ResultNoRows, nil
}

var limit = regexp.MustCompile(`limit (\d+)`)

// QueryContext implements driver.QueryerContext.
func (w *waiting) QueryContext(_ context.Context, query string, _ []driver.NamedValue) (driver.Rows, error) {
	found := limit.FindStringSubmatch(query)
	if found == nil {
		return nil, fmt.Errorf("no limit in %s", query)
	}
	most, err := strconv.ParseInt(found[1], 10, 64)
	w.asked = most
	billing := min(w.billing, most)
	return &counts{all: [][]driver.Value{{[]byte("billing"), billing, int64(60_000_000), nil, int64(2)}, {[]byte("audit"), min(w.audit, most-billing), int64(-5), int64(30_000_000), int64(0)}}}, err
}

// counts is the result of a query for counts.
type counts struct{ all [][]driver.Value }

func (c *counts) Columns() []string { return make([]string, 5) }

func (c *counts) Close() error { return nil }

func (c *counts) Next(to []driver.Value) error {
	if len(c.all) == 0 {
		return io.EOF
	}
	copy(to, c.all[0])
	c.all = c.all[1:]
	return nil
}

func TestMoreRowsThanAreCounted(t *testing.T) {
	for level, most := range sampleFewer {
		for _, c := range []struct {
			name           string
			billing, audit int64
			atLeast        bool
			rows           int64 // number of rows of consumer billing
		}{
			{"fewer", 3, 4, false, 3},
			{"as_many", int64(most) - 4, 4, false, int64(most) - 4},
			{"one_more", int64(most) - 4, 5, true, int64(most) - 4},
			{"one_more_of_one", int64(most) + 1, 0, true, int64(most)},
			{"many_more", 1 << 40, 0, true, int64(most)},
		} {
			t.Run(fmt.Sprintf("trap_T81_K4_up_to_%d_%s", most, c.name), func(t *testing.T) {
				w := &waiting{billing: c.billing, audit: c.audit}
				db := sql.OpenDB(w)
				defer func() { _ = db.Close() }()
				opened, err := database.OpenPostgres(db, statements, database.Options{})
				if err != nil {
					t.Fatal(err)
				}
				s := New(opened)
				s.sampled = map[store.RowState]sampledTo{store.StateReceived: {level: level}}
				out, err := s.SampleRows(t.Context(), store.StateReceived)
				b, a := out.Consumers["billing"], out.Consumers["audit"]
				if err != nil || out.AtLeast != c.atLeast || b.Rows != c.rows || b.Oldest != time.Minute || b.Gap != 0 || b.Suppressed != 2 || a.Oldest != 0 || a.Gap != 30*time.Second {
					t.Errorf("%+v: %v", out, err)
				}
				if w.asked != int64(most)+1 {
					t.Errorf("it reads %d rows", w.asked)
				}
			})
		}
	}
}
