// Package rebuild fills a generation of a consumer beside the one that is active, switches to
// it when it has come as far as the source, and removes what was before.
package rebuild
