// Package sqlhandler runs the SQL statements of a policy for messages. The values of a statement's named
// parameters come from the message.
//
// A statement uses :name for a parameter, in every database. The package replaces :name with the placeholder
// of the database. Quoted text, comments and casts (::) do not change.
//
// Values are exact:
//
//   - A 64-bit integer is passed as an integer.
//   - Another number is passed as a float if the float has exactly the same value, otherwise as decimal text.
//   - A string is passed as text. true and false are passed as booleans.
//   - An object or array is passed as JSON text.
//
// If a value is missing or null, the message ends with the reason "missing parameter", because an accidental
// NULL would be a wrong effect. Only a selector that ends with ? allows NULL.
//
// A handler does not begin, commit or roll back transactions. Check rejects statements that do so.
package sqlhandler
