// Package ended contains the error that the SQL stores return if a handler has ended its transaction. Package
// semeltest recognises this error.
package ended

import "errors"

// Err means that a handler ended its transaction with COMMIT or ROLLBACK.
var Err = errors.New("the handler committed or rolled back itself: return nil to commit, an error to roll back")
