package pgxstore

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/semel-go/semel"
)

func TestOneRow(t *testing.T) {
	refused := errors.New("refused")
	for tag, want := range map[string]bool{"UPDATE 1": true, "INSERT 0 1": true, "UPDATE 0": false, "DELETE 2": false, "SET": false} {
		err := OneRow(pgconn.NewCommandTag(tag), nil)
		var unmet *semel.HandlerError
		if want && err != nil || !want && (!errors.As(err, &unmet) || unmet.Decision != semel.DecidePreconditionFailed) {
			t.Errorf("B6: %s: %v", tag, err)
		}
		if err := OneRow(pgconn.NewCommandTag(tag), refused); err != refused {
			t.Errorf("%s with an error: %v", tag, err)
		}
	}
}
