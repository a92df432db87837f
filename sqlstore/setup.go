package sqlstore

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/semel-go/semel/internal/sqltext"
	"github.com/semel-go/semel/sqlstore/internal/database"
)

// Setup runs the user's own statements once, in one transaction with a record of the statements' hash. The result ran
// is true if this call ran the statements. The parameter name is only for people. The driver must accept several
// statements in one text. Set-ups of several processes run one after the other, so they may create the same table "if
// not exists".
//
// Setup rejects statements that would begin or end a transaction, and returns an error with the line and column of the
// statement. After an error, no statement has taken effect, with two exceptions, which the error names. If the outcome
// is unknown, call Setup again, which runs the statements if they have not run. If the text has a ROLLBACK that Setup
// did not recognise, the statements after the ROLLBACK may have taken effect.
func (s *Store) Setup(ctx context.Context, name, statements string) (ran bool, err error) {
	sum := sha256.Sum256([]byte(statements))
	hash := hex.EncodeToString(sum[:])
	var known bool
	// Setup first checks whether the statements have run, so that a start on a busy or read-only database does not need
	// to write.
	if err := s.db.Pool.QueryRowContext(ctx, s.db.SQL.SetupKnown, hash).Scan(&known); err == nil && known {
		return false, nil
	}
	if err = checkTransactionControl(s.db.Dialect, statements); err == nil {
		err = s.db.Write(ctx, func(tx *sql.Tx) (err error) {
			ran, err = setup(ctx, s.db, tx, hash, name, statements)
			return err
		})
	}
	var unknown *database.UnknownError
	switch {
	case errors.As(err, &unknown):
		return false, fmt.Errorf("sqlstore: setup %s: start again, which runs it if it has not run: %w", name, s.db.Hint(err))
	case errors.Is(err, errRolledBackItself):
		return false, fmt.Errorf("sqlstore: setup %s: %w", name, err)
	case err != nil:
		return false, fmt.Errorf("sqlstore: setup %s: nothing of it ran: %w", name, s.db.Hint(err))
	}
	return ran, nil
}

// errRolledBackItself means that the setup file contained a ROLLBACK that was recognised only after
// it had run.
var errRolledBackItself = errors.New("its statements ended their transaction: those before the ROLLBACK were undone, " +
	"those after it may have taken effect: remove the ROLLBACK and what the file already created")

// setup runs the statements under a guard. If the statements contain a COMMIT that was not recognised, the guard makes
// this COMMIT fail, and all statements are rolled back.
func setup(ctx context.Context, db *database.DB, tx *sql.Tx, hash, name, statements string) (ran bool, err error) {
	if _, err := tx.ExecContext(ctx, db.SQL.LockSetup); err != nil {
		return false, err
	}
	if n, err := database.Affected(tx.ExecContext(ctx, db.SQL.Setup, hash, name)); err != nil || n == 0 {
		return false, err
	}
	guards, err := database.Affected(tx.ExecContext(ctx, db.SQL.Guard))
	if err != nil {
		return false, err
	}
	if _, err := tx.ExecContext(ctx, statements); err != nil {
		return false, err
	}
	left, err := database.Affected(tx.ExecContext(ctx, db.SQL.Unguard))
	if err == nil && left != guards {
		err = errRolledBackItself
	}
	return err == nil, err
}

// checkTransactionControl returns an error if the text is not valid, or if a statement begins or ends a transaction.
// The error has the line and column of the statement.
func checkTransactionControl(d *database.Dialect, text string) error {
	tokens, err := d.Text.Scan(text)
	if err != nil {
		return err
	}
	var faults []error
	for _, s := range sqltext.Split(tokens) {
		place := placeOf(text, s[0].Start)
		switch {
		case !s.Begins():
			faults = append(faults, fmt.Errorf("%s: %+q does not begin a statement; begin with an SQL word and plain blanks", place, text[s[0].Start:s[0].End]))
		case s.Ends(), s[0].Is("begin"), s[0].Is("start"):
			faults = append(faults, fmt.Errorf("%s: %s controls the transaction, in which all statements of the file run with the record that they ran; remove it",
				place, strings.ToUpper(text[s[0].Start:s[0].End])))
		}
	}
	return errors.Join(faults...)
}

// placeOf returns the line and column of a byte in a text. Lines and columns are counted from 1; columns are counted in
// characters.
func placeOf(text string, at int) string {
	before := text[:at]
	line := strings.Count(before, "\n") + 1
	column := len([]rune(before[strings.LastIndexByte(before, '\n')+1:])) + 1
	return fmt.Sprintf("line %d, column %d", line, column)
}
