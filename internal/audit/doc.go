// Package audit seals acts of operators into a hash chain: it computes the hash of each line,
// links each line to the one before, and verifies a chain.
//
// The hash of each line covers the hash of the line before it. So a line cannot be changed,
// removed, inserted or moved without computing new hashes for all lines after it. A person who
// can write the table can do that. Verification detects it with a head that was kept
// elsewhere, or with a key: without the key nobody can compute the hashes of keyed lines.
package audit
