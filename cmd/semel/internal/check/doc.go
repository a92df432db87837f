// Package check answers the questions of a design review about consumers: what makes the effect happen once,
// and does this protection work? A table lists the questions. The number of a question never changes. The
// answers use the policy, the database and the broker, and the package changes nothing.
//
// The result of a question is pass, fail, cannot_know or not_applicable. Each answer has evidence and a
// remedy. If a database or a broker cannot be read, questions about this database or broker have the result
// cannot_know, never fail.
package check
