// Package ended has the error of a handler that ended its transaction, which the SQL stores return and
// semeltest recognises.
package ended

import "errors"

// Err says that a handler ended its transaction with a COMMIT or ROLLBACK of its own.
var Err = errors.New("the handler committed or rolled back itself: return nil to commit, an error to roll back")
