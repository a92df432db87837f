package assembly

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/policy/shape"

	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/timing"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

// Change is what Up did to a store.
type Change struct {
	Store string `json:"store"`
	// Applied are the migrations; Setup is the file whose statements ran.
	Applied []string `json:"applied"`
	Setup   string   `json:"setup,omitempty"`
}

// Prepare makes the stores ready for a run: it migrates those that say so, or
// all, and refuses those whose tables do not fit.
func (a *Assembly) Prepare(ctx context.Context, migrate bool) error {
	if err := a.spareUnanswering(ctx); err != nil {
		return err
	}
	for _, s := range a.Stores {
		if !migrate && !s.policy.Migrate || a.unfit[s.Name()] != nil {
			continue
		}
		if _, err := s.Up(ctx, a.options.Who, "at the start of a run", []byte(a.policy.Audit.Key)); err != nil && (ctx.Err() != nil || !a.without(s.Name(), err)) {
			return err
		}
	}
	var faults []error
	for _, s := range a.Stores {
		if a.unfit[s.Name()] != nil {
			continue
		}
		if err := a.CheckStore(ctx, s); err != nil && (ctx.Err() != nil || !a.without(s.Name(), err)) {
			faults = append(faults, err)
			continue
		}
		a.noteNewer(ctx, s)
		a.warnOfRights(ctx, s)
	}
	return errors.Join(faults...)
}

// noteNewer logs the migrations of a store that only a newer release knows.
func (a *Assembly) noteNewer(ctx context.Context, s *Store) {
	all, err := s.Status(ctx)
	if err != nil {
		return // it was checked a moment ago; the run meets the same, and says it
	}
	for _, m := range all {
		if m.SQL == "" {
			a.options.Logger.Info("the tables have a migration of a newer release; this one works beside it", "store", s.Name(), "migration", m.String())
		}
	}
}

// Check refuses stores whose tables do not fit and says what to do, of all of
// them.
func (a *Assembly) Check(ctx context.Context) error {
	var faults []error
	for _, s := range a.Stores {
		faults = append(faults, a.CheckStore(ctx, s))
	}
	return errors.Join(faults...)
}

// warnOfRights logs what rights in Semel's tables the role lacks. What cannot be read now, the run
// meets and says.
func (a *Assembly) warnOfRights(ctx context.Context, s *Store) {
	lacking, _ := s.tables.LackingRights(ctx)
	for _, warning := range lacking {
		a.options.Logger.Warn(warning, "store", s.Name())
	}
}

// WarnOfRoles logs in which schemas of a store's search_path other roles may create objects, and
// what rights in Semel's tables the store's role lacks. A store that does not answer is not warned
// of, nor is one that told has already.
func (a *Assembly) WarnOfRoles(ctx context.Context, told *sync.Map) {
	for _, s := range a.Stores {
		if _, already := told.LoadOrStore(s.Name(), true); already {
			continue
		}
		a.warnOfRights(ctx, s)
		open, err := s.tables.OpenSchemas(ctx)
		if err != nil {
			continue
		}
		for _, warning := range open {
			a.options.Logger.Warn(warning, "store", s.Name())
		}
	}
}

// CheckStore is Check of one of them.
func (a *Assembly) CheckStore(ctx context.Context, s *Store) error {
	err := s.Check(ctx)
	if err != nil && s.lacksMigration(ctx) {
		remedy := "semel migrate up --config " + a.policy.File
		if a.policy.Bare {
			remedy = "the program that owns it migrates it"
		}
		err = fmt.Errorf("%w (%s)", err, remedy)
	}
	return s.Failed(err)
}

// Up applies the missing migrations and then, once, the user's own setup, and records what
// was done, by whom and why. Where it made the table of seals, it begins the chain of acts under
// the key, if there is one: nobody else does without being told to.
func (s *Store) Up(ctx context.Context, who, why string, key []byte) (Change, error) {
	change, err := s.up(ctx)
	if what := change.text(); what != "" {
		if why != "" {
			what += ": " + why
		}
		failed := s.Record(ctx, store.Act{Verb: "migrate", Who: who, Why: what})
		if failed == nil && len(key) > 0 && slices.Contains(change.Applied, makesSeals) {
			failed = s.beginChain(ctx, key)
		}
		err = errors.Join(err, s.Failed(failed))
	}
	return change, err
}

// beginChain seals the act of the first migration. A consumer that looks for acts at that moment keeps
// others from sealing, and may not begin the chain itself.
func (s *Store) beginChain(ctx context.Context, key []byte) error {
	for range 100 {
		done, err := s.Seal(ctx, admin.Sealing{Key: key, Whole: true})
		if err != nil || !done.Elsewhere {
			return err
		}
		if !timing.Wait(ctx, 50*time.Millisecond) {
			return ctx.Err()
		}
	}
	return errors.New("the chain of acts has not begun, because another process has been sealing for seconds: run semel audit seal --begin")
}

// makesSeals is the migration that creates the table of seals.
const makesSeals = "0001_first"

// text says what was done, as it is recorded. It is empty if nothing was done.
func (c Change) text() string {
	var parts []string
	if len(c.Applied) > 0 {
		parts = append(parts, "applied "+strings.Join(c.Applied, ", "))
	}
	if c.Setup != "" {
		parts = append(parts, "ran "+c.Setup)
	}
	return strings.Join(parts, ", ")
}

func (s *Store) up(ctx context.Context) (Change, error) {
	change := Change{Store: s.Name(), Applied: []string{}}
	applied, err := s.Migrate(ctx)
	change.Applied = append(change.Applied, applied...)
	if err != nil {
		return change, s.Failed(err)
	}
	if s.policy.Setup == "" {
		return change, nil
	}
	text, err := shape.ReadFile(s.policy.Setup)
	if err != nil {
		return change, fmt.Errorf("store %s: setup: %w; name a readable file of SQL statements", s.Name(), err)
	}
	ran, err := s.Setup(ctx, s.policy.Setup, string(text))
	if err != nil {
		return change, fmt.Errorf("store %s: %w", s.Name(), s.explain(err))
	}
	if ran {
		change.Setup = s.policy.Setup
	}
	return change, nil
}

// Seed makes markers of the ids of another table; see sqlstore.Store.Seed.
func (s *Store) Seed(ctx context.Context, o sqlstore.Seed) (sqlstore.Seeded, error) {
	sum, err := s.tables.Seed(ctx, o)
	return sum, s.Failed(err)
}

// Status returns the migrations of a store, which need not exist. Its error
// wraps semel.ErrSchema where something is missing or does not fit; the
// migrations are returned all the same if they could be read.
func Status(ctx context.Context, p *policy.Store) ([]sqlstore.Migration, error) {
	s, err := openIfThere(p)
	if err != nil {
		return nil, err
	}
	all, err := s.Status(ctx)
	if err == nil {
		err = s.Check(ctx)
	}
	return all, errors.Join(s.Failed(err), s.Close())
}

func openIfThere(p *policy.Store) (*Store, error) {
	if p.SQLite != nil {
		if _, err := os.Stat(p.SQLite.Path); errors.Is(err, os.ErrNotExist) {
			return openNothing(p)
		}
	}
	return openStore(p, opening{connections: 1})
}

// Print writes the SQL of a store's migrations, without its database.
func Print(w io.Writer, p *policy.Store) error {
	s, err := openNothing(p)
	if err != nil {
		return err
	}
	return errors.Join(s.Print(w), s.Close())
}
