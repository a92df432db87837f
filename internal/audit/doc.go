// Package audit is the chain into which acts of operators are sealed: what a line's hash is
// of, which line follows which, and what of a chain is not as it was sealed.
//
// Each line has the hash of the line before in its own, so that a line cannot be changed,
// removed, inserted or moved without another hash for every line behind it. Who can write
// the table can compute those anew. That is found with a head that was kept elsewhere, or
// with a key: lines under a key nobody computes who does not have it.
package audit
