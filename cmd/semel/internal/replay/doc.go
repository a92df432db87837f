// Package replay has a consumer process again what its source had: it reads a part of the
// source beside the consumer's own reader, gives it to the consumer's handler, and keeps in
// the store how far it has come, so that a replay that was killed goes on.
package replay
