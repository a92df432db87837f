// Package sqlhandler turns the SQL of a policy into a handler: statements with
// named parameters whose values come from the message.
//
// A statement writes :name for a parameter, on every database; the package
// puts the database's own placeholders in its place. Text in quotes, comments
// and casts (::) is left as it is.
//
// Values keep what the producer said. A whole number in the range of 64 bits
// is bound as one; another number as a float only if that loses nothing, and
// otherwise as its exact decimal text. Text is bound as text, true and false
// as booleans, an object or array as its JSON text. A value that is missing or
// null ends the message as "missing parameter", because NULL by accident is an
// effect nobody asked for; only a selector with ? at its end gives NULL.
//
// The handler never begins, commits or rolls back: Check refuses statements
// that would.
package sqlhandler
