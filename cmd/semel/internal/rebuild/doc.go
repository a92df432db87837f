// Package rebuild fills a new generation of a consumer while the active generation keeps running. When the
// new generation has reached the end of the source, the package makes the new generation active. The package
// can also remove the previous generation.
package rebuild
