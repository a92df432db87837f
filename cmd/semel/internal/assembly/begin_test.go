package assembly

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

// sealedElsewhere is a new database. During the first attempts to seal (to extend the audit chain), another
// process holds the lock. The field looks is the number of attempts that find the lock taken.
type sealedElsewhere struct {
	tables
	database
	looks, sealed int
	applied       string
}

func (*sealedElsewhere) describe() string        { return "database x" }
func (*sealedElsewhere) explain(err error) error { return err }

func (*sealedElsewhere) Record(context.Context, store.Act) error              { return nil }
func (*sealedElsewhere) Status(context.Context) ([]sqlstore.Migration, error) { return nil, nil }

func (s *sealedElsewhere) Migrate(context.Context) ([]string, error) { return []string{s.applied}, nil }

func (s *sealedElsewhere) Seal(context.Context, admin.Sealing) (admin.Sealed, error) {
	if s.looks--; s.looks >= 0 {
		return admin.Sealed{Elsewhere: true}, nil
	}
	s.sealed++
	return admin.Sealed{Lines: 1}, nil
}

func TestTheFirstMigrationBeginsTheChainOfActs(t *testing.T) {
	for name, c := range map[string]struct {
		applied       string
		looks, sealed int
		fault         string
	}{
		// If somebody deleted audit records, the first start of the next release must not add the remaining records
		// to the audit chain again.
		"and_with_no_other": {applied: "0002_later"},
		"although_another_process_looks_for_acts_at_that_moment": {applied: makesSeals, looks: 3, sealed: 1},
		"or_the_migration_says_that_it_has_not_begun":            {applied: makesSeals, looks: 1 << 20, fault: "semel audit seal --begin"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := &sealedElsewhere{looks: c.looks, applied: c.applied}
				s := &Store{tables: db, database: db, policy: &policy.Store{Name: "shop"}}
				_, err := s.Up(t.Context(), "ana", "", []byte("key"))
				if db.sealed != c.sealed || (err != nil) != (c.fault != "") || err != nil && !strings.Contains(err.Error(), c.fault) {
					t.Errorf("sealed %d, %v", db.sealed, err)
				}
			})
		})
	}
}
