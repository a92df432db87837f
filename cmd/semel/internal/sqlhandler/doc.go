// Package sqlhandler turns the SQL of a policy into a handler: statements with named parameters whose
// values come from the message.
//
// A statement writes :name for a parameter, on every database; the package replaces it by the
// database's own placeholder. Quoted text, comments and casts (::) are not changed.
//
// Values keep their exact value. A whole number of 64 bits is bound as an integer; another number as a
// float if that is exact, and otherwise as its decimal text. Text is bound as text, true and false as
// booleans, an object or array as its JSON text. A value that is missing or null ends the message as
// "missing parameter", because an accidental NULL would be a wrong effect; only a selector with ? at
// its end gives NULL.
//
// The handler never begins, commits or rolls back: Check refuses statements that would.
package sqlhandler
