package database

import (
	"errors"
	"fmt"
	"testing"

	"github.com/semel-go/semel/internal/sqlstate"
	"github.com/semel-go/semel/store"
)

// driven is an error like the errors of drivers, whose methods panic on a nil pointer.
type driven struct{ SQL, ConstraintName, Routine string }

func (e *driven) Error() string { return e.SQL }

func (e *driven) SQLState() string { return e.SQL }

func (e *driven) Code() int { return len(e.SQL) }

// calm is an error whose method Error works even if the pointer is nil.
type calm struct{ driven }

func (*calm) Error() string { return "calm" }

// hollow is an error that embeds a nil pointer of a driver's error type.
type hollow struct{ *driven }

func (hollow) Error() string { return "hollow" }

func (hollow) SQLState() string { return "23505" }

func (hollow) Code() int { return 2067 }

// loud is an error whose methods panic when package errors calls them.
type loud struct{}

func (loud) Error() string { return "loud" }

func (loud) As(any) bool { panic("as") }

func (loud) Is(error) bool { panic("is") }

// deep is an error whose method Unwrap panics.
type deep struct{}

func (deep) Error() string { return "deep" }

func (deep) Unwrap() error { panic("unwrap") }

func TestPanickingErrors(t *testing.T) {
	postgres, err := open(nil, postgresDialect(statements), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, odd := range map[string]error{"nil": (*driven)(nil), "calm": (*calm)(nil), "loud": loud{}, "deep": deep{}} {
		for _, err := range []error{odd, fmt.Errorf("wrapped: %w", odd), errors.Join(errors.New("joined"), odd)} {
			t.Run("trap_T84_an_error_that_cannot_be_read_is_the_handlers_own/"+name, func(t *testing.T) {
				for _, s := range []*DB{postgres, sqliteStore(t)} {
					if class := s.Classify(err); class != store.ClassRetry || s.IsStoreFault(err) {
						t.Errorf("%s: of class %d, exonerated %t", s.Dialect.Name, class, s.IsStoreFault(err))
					}
					if class := s.Classify(&Error{"begin", store.ClassDown, err}); class != store.ClassDown {
						t.Errorf("%s: what the store has decided becomes %d", s.Dialect.Name, class)
					}
				}
				if Violates(err, "x") || Remedy(err, true) != "" || PostgresRefused(err) || postgresOutdated(err) {
					t.Error("something is read from it")
				}
			})
		}
	}
	t.Run("an_error_that_wraps_a_nil_of_the_drivers_has_a_code_and_no_fields", func(t *testing.T) {
		if state := SQLState(hollow{}); state != sqlstate.UniqueViolation || fieldOf(hollow{}, "ConstraintName") != "" || Violates(hollow{}, "x") {
			t.Errorf("its code is %q, its constraint %q", state, fieldOf(hollow{}, "ConstraintName"))
		}
		there := hollow{&driven{ConstraintName: "x"}}
		if !Violates(fmt.Errorf("wrapped: %w", there), "x") {
			t.Error("the constraint is not found in what is embedded")
		}
	})
}
