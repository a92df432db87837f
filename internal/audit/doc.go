// Package audit seals the audit records of operators' changes (store.Act) into a hash chain: the package
// computes the hash of each line, links each line to the previous line, and verifies a chain.
//
// The hash of each line covers the hash of the previous line. So nobody can change, remove, insert or move a
// line without computing new hashes for all later lines. A person who can write the table can do that.
// Verification detects this in two ways: with a head of the chain that was kept elsewhere, or with a key.
// Without the key nobody can compute the hashes of keyed lines.
package audit
