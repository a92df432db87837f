package sqlstore

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/semel-go/semel/internal/sqlform"
)

// The hash of the texts that drivers send in sqlform.Revision12.
const ofThisRevision = "5c5181bc450a8423"

// If this test fails, the text of a statement has changed. The change may be correct, but the author must check that a
// driver written for the old text still works with the new text.
func TestTheRevisionIsOfTheseStatements(t *testing.T) {
	opened, err := Postgres(nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := opened.db
	adopted, err := s.Dialect.Load(s.Names, "adopted.sql")
	if err != nil {
		t.Fatal(err)
	}
	if err := sqlform.Fill(&sqlform.Adopted{}, adopted); err != nil {
		t.Error(err)
	}
	dated, err := s.Dialect.Load(s.Names, "dated.sql")
	if err != nil {
		t.Fatal(err)
	}
	if err := sqlform.Fill(&sqlform.Dated{}, dated); err != nil {
		t.Error(err)
	}
	moving, err := s.Dialect.Load(s.Names, "moving.sql")
	if err != nil {
		t.Fatal(err)
	}
	if err := sqlform.Fill(&sqlform.Moving{}, moving); err != nil {
		t.Error(err)
	}
	sum := sha256.New() // only texts that drivers send; drivers do not send the statements that move markers
	for _, texts := range []map[string]string{sqlform.ByName(s.Postgres), adopted, dated} {
		for _, name := range slices.Sorted(maps.Keys(texts)) {
			fmt.Fprintf(sum, "%s\n%s\n", name, texts[name])
		}
	}
	if got := fmt.Sprintf("%x", sum.Sum(nil)[:8]); got != ofThisRevision {
		t.Errorf("the statements are %s, not %s: rename sqlform.Revision12 if what one takes, returns or changes is another now, "+
			"as its comment says; then write the new sum here", got, ofThisRevision)
	}
}
