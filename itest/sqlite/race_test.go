//go:build race

package sqlite

// raced says that the race detector watches, under which SQLite in Go takes
// eleven times as long: make test runs one way of opening a file with it, and the
// others (the Makefile's forms) without.
const raced = true
