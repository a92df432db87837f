// Package rebuild fills a new generation of a consumer beside the active one, switches to it when it
// has reached the end of the source, and removes the previous one.
package rebuild
