package operate

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

func TestGroupsAreCountedOverManyPagesLargestFirst(t *testing.T) {
	f := newParkedInbox(3*page + 7)
	for i := range f.rows {
		f.rows[i].Reason, f.rows[i].LastError = semel.ReasonPermanent, "error "+letters(min(i/page, 1))
	}
	groups, err := (Box{Store: "shop", Inbox: f}).Failures(context.Background(), store.RowFilter{})
	if err != nil || len(groups) != 2 || groups[0].Count != 2*page+7 || groups[0].Error != "error b" || groups[1].Count != page || groups[1].Consumer != "billing" {
		t.Errorf("%v, %+v", err, groups)
	}
}

// letters writes a number with letters instead of digits. Digits would not be part of the error's class.
func letters(n int) string {
	return strings.Map(func(digit rune) rune { return digit - '0' + 'a' }, strconv.Itoa(n))
}

func TestManyDifferentErrorsDoNotExhaustMemory(t *testing.T) {
	f := newParkedInbox(mostGroups + 500)
	for i := range f.rows {
		f.rows[i].LastError = "error " + letters(i)
	}
	groups, err := (Box{Inbox: f}).Failures(context.Background(), store.RowFilter{})
	if err != nil || len(groups) != mostGroups+1 || groups[0].Error != furtherErrors || groups[0].Count != 500 {
		t.Errorf("%v, %d groups, the first %+v", err, len(groups), groups[0])
	}
}

func TestErrorClasses(t *testing.T) {
	for _, one := range []struct{ a, b, class string }{
		{`ERROR: duplicate key value violates unique constraint "invoices_number_key" (SQLSTATE 23505)`, `ERROR: duplicate key value violates unique constraint "invoices_number_key" (SQLSTATE 23505)`,
			`ERROR: duplicate key value violates unique constraint "invoices_number_key" (SQLSTATE …)`},
		{`new row for relation "payments_2026_10" violates check constraint "amount_2_check"`, `new row for relation "payments_2026_11" violates check constraint "amount_2_check"`,
			`new row for relation … violates check constraint "amount_2_check"`},
		{`null value in column "amount" of relation "a" violates`, `null value in column "amount" of relation "b" violates`, `null value in column "amount" of relation … violates`},
		{`invalid input syntax for type integer: "Ana"`, `invalid input syntax for type integer: "Bo"`, `invalid input syntax for type integer: …`},
		{"no account 'a' at 10.0.0.1:5432", "no account `b` at 10.0.0.2:5432", "no account … at …:…"},
	} {
		if a, b := ErrorClass(one.a), ErrorClass(one.b); a != one.class || b != one.class {
			t.Errorf("%q and %q, want %q", a, b, one.class)
		}
	}
	if a, b := ErrorClass(`violates unique constraint "a_key"`), ErrorClass(`violates unique constraint "b_key"`); a == b {
		t.Errorf("two constraints are one class: %q", a)
	}
}
