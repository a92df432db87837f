// Package audit copies the audit records of operators' changes (store.Act) into the lines of a hash chain (sealing).
// The package computes the hash of each line, which includes the hash of the previous line, and verifies a chain.
//
// A line of the chain cannot be changed, removed, inserted or moved unless the hashes of all later lines are computed
// again. A person who can write the table can compute new hashes. Verification detects new hashes if the hash of the
// last line was saved outside the database, or if the lines have a key, because nobody can compute the hashes of keyed
// lines without the key.
package audit
