//go:build race

package sqlite

// raced says that the race detector watches, under which SQLite in Go takes
// eleven times as long: make test runs all ways of opening a file without it,
// and one with it.
const raced = true
