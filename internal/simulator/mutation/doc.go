// Package mutation changes functions of the module, one at a time, and runs the changed program. Package mutation does
// not change the source tree.
//
// A Change replaces a part of one function. Plant writes files that contain each changed function several
// times: unchanged, and once for each change under another name. An overlay passes these files to the
// compiler. So one build contains all changes, and an environment variable switches one of them on.
//
// A change is made by an Edit or by Mutants. An Edit changes a statement of a named function, which it finds by the
// names that the code uses. Mutants lists all small mistakes that are possible in a function.
package mutation
