// Package audit seals the audit records of operators' changes (store.Act) into a hash chain. The package
// computes the hash of each line, links each line to the line before it, and verifies a chain.
//
// The hash of each line includes the hash of the line before it. So a line cannot be changed, removed,
// inserted or moved without computing new hashes for all lines after it. A person who can write the table can
// do that. Verification detects such a change with a head that was kept elsewhere, or with a key, because
// nobody can compute the hashes of keyed lines without the key.
package audit
