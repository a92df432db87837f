package sqlsuite

import (
	"context"
	"testing"

	"github.com/semel-go/semel/sqlstore"
)

// Agrees runs the deep check on the rows of the consumer "billing". No row may contradict its marker or its
// stream.
func Agrees(t testing.TB, s interface {
	Denials(ctx context.Context, consumer string, after int64, most int) (sqlstore.Looked, error)
}) {
	t.Helper()
	found, err := s.Denials(t.Context(), "billing", 0, 10_000)
	if err != nil || len(found.Denied) > 0 || found.Rows == 0 {
		t.Errorf("the deep check looked at %d rows, and finds %+v, %v", found.Rows, found.Denied, err)
	}
}
